"""The tables of the README and the docs that are written from the code and from what was measured.

    make tables

What a method, a data set, an option, a setting, a metric or a check is, the code says and nothing
else does. A page has a table between two comments, ``<!-- NAME: begin -->`` and
``<!-- NAME: end -->``, and everything between them is replaced. A test fails when one is out of
date.
"""

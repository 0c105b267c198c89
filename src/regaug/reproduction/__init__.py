"""The tables and figures of the FOMA paper: what it prints, and what is measured."""

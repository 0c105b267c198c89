"""The table of methods is that of the code and the results."""

import re

from benchmarks.atlas.field import ENOUGH
from benchmarks.atlas.field_page import PAGE, make_known_page
from benchmarks.methods_table import make_table

from regaug.methods.table import MAKERS, OWN


def cells(rows):
    """Return the cells of a table by the name of its method."""
    found = (re.split(r"(?<!\\) \| ", row.strip("| ")) for row in rows if row.startswith("| `"))
    return {row[0].strip("`"): row[1:] for row in found}


def test_the_page_of_the_field_is_up_to_date():
    assert PAGE.read_text() == make_known_page(), "make field"


def test_every_method_is_described():
    table = cells(make_table([], {}))
    assert set(table) == {*OWN, "smogn"}
    for name, (call, summary, formula, paper, place, step, worth) in table.items():
        method = {**OWN, **MAKERS}[name]
        assert method.formula, f"{name} has no formula"
        assert method.paper, f"{name} has no paper"
        assert (summary, formula) == (method.summary, f"`{method.formula}`")
        assert re.search(r"\b(19|20)\d\d\b", paper), f"{name}: no year in {paper!r}"
        assert call or name in MAKERS
        assert "" not in (place, step, worth)


def test_it_says_where_a_method_acts_and_what_makes_it():
    table = cells(make_table([], {}))
    assert [table[name][4] for name in ("erm", "mixup", "manifold-mixup", "rare", "smogn")] == [
        "nothing",
        "inputs",
        "a hidden layer",
        "batches (`rare`)",
        "rows of a table",
    ]
    assert table["foma"][4] == "inputs or a layer, batches (`nearest`)"
    assert table["k-mixup"][0] == '`Mixup(pairs="assignment")`'
    assert "[arXiv 1710.09412](https://arxiv.org/abs/1710.09412)" in table["mixup"][3]


def test_what_was_measured_stands_there():
    plain = [1.0, 2.0]
    known = [
        {"table": f"t{number}", "errors": {"erm": plain, "ada": [0.9 + number / 1e4, 1.8]}}
        for number in range(ENOUGH)
    ]
    table = cells(make_table(known, {"ada": {"defaults": 1.5}}))
    told = "-10.0 % (-10.0 to -9.9; 20 tables): told apart"
    assert table["ada"][5:] == ["x1.50", told.replace("-", "\N{MINUS SIGN}")]
    assert table["cems"][5:] == ["not measured yet"] * 2
    assert cells(make_table(known[:-1], {}))["ada"][6] == "not measured yet"

"""Every method has a page, and the figures of the pages are those of the results."""

import pytest
from benchmarks.atlas.field import ENOUGH
from benchmarks.method_pages import make_block, names_in, pages, put_in

from regaug.methods.table import OWN


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_figures_are_up_to_date(page):
    text = page.read_text()
    assert put_in(text) == text, "make field"


def test_every_method_has_one_page():
    found = [name for page in pages() for name in names_in(page.read_text())]
    assert sorted(found) == sorted({*OWN, "smogn"} - {"erm"})


def test_a_page_says_what_is_missing():
    block = make_block(["mixup", "smogn"], [], {"trees": []}, {})
    assert "For nets: not measured yet (`mixup`)." in block
    assert "As rows for boosting and trees: not measured yet." in block
    assert '| `smogn` | `AugmentingSampler("smogn")` | rows of a table | Branco' in block


def test_what_was_measured_stands_there():
    plain = [1.0, 2.0]
    known = [
        {"table": f"t{number}", "errors": {"erm": plain, "ada": [0.9 + number / 1e4, 1.8]}}
        for number in range(ENOUGH)
    ]
    block = make_block(["ada", "cems"], known, {}, {"ada": {"defaults": 1.5}})
    row = "| `ada` | -10.0 % | -10.0 to -9.9 | < 0.001 | 20 of 20 | 0 | 0 | x1.50 |"
    assert row.replace("-", "\N{MINUS SIGN}") in block
    assert "over 20 tables; told from it: ada." in block
    assert "not measured yet (`cems`)" in block
    assert "told from it" not in make_block(["ada"], known[:-1], {}, {})


def test_new_rows_for_regressors_stand_there():
    rows = {"no-rows": [1.0, 1.0], "ada": [1.1, 1.1]}
    known = [{"table": f"t{number}", "errors": rows} for number in range(4)]
    block = make_block(["ada"], [], {"trees": known}, {})
    assert "| rows of | trees (4 tables) |" in block
    assert "| `ada` | +10.0 % (+10.0 to +10.0) |" in block

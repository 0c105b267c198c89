"""What tells new rows from those of a table."""

import numpy as np
import pandas as pd
import pytest

from regaug.data import load, read_table
from regaug.data.tabular.generation import generate
from regaug.data.tabular.moments import Moments


def make_frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.normal(5.0, 2.0, n), "rooms": rng.integers(1, 9, n)})
    frame["city"], frame["garden"] = rng.choice(["Oslo", "Rome"], n), rng.random(n) < 0.5
    frame["price"] = 3.0 * frame["size"] + rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def table():
    return read_table(make_frame(), target="price")


def test_they_are_the_textbook_figures(table):
    old, new = make_frame(), make_frame(90, seed=1)
    found = Moments.of(table, new)
    names = ["size", "rooms", "price"]
    assert list(found.means) == list(found.spreads) == list(found.ranges) == names
    for name in names:
        a, b = old[name], new[name]
        assert found.means[name] == pytest.approx((b.mean() - a.mean()) / a.std(ddof=0))
        assert found.spreads[name] == pytest.approx(b.std(ddof=0) / a.std(ddof=0) - 1)
        assert found.ranges[name] == pytest.approx(np.ptp(b) / np.ptp(a))
    for (a, b), own in found.correlations.items():
        expected = np.corrcoef(new[a], new[b])[0, 1] - np.corrcoef(old[a], old[b])[0, 1]
        assert own == pytest.approx(expected)
    assert len(found.correlations) == 3
    ratios = [1 + own for own in found.spreads.values()]
    assert found.spread == pytest.approx(np.prod(ratios) ** (1 / 3) - 1)


def test_the_table_itself_differs_by_nothing(table):
    found = Moments.of(table, make_frame())
    assert (found.mean, found.correlation) == (pytest.approx(0), pytest.approx(0))
    assert (found.spread, found.range) == (pytest.approx(0), 1.0)
    assert found.advice("mixup") == ""


def test_gaps_are_left_out_of_the_figures():
    frame = make_frame()
    frame.loc[::3, "size"] = np.nan
    found = Moments.of(read_table(frame, target="price"), frame)
    assert found.spreads["size"] == pytest.approx(0)


def test_mixup_varies_less_by_what_its_formula_says_and_epbeta_does_not(table):
    mixed, kept = (
        Moments.of(table, generate(table, method=name, rows=3000))
        for name in ("mixup", "epbeta-mixup")
    )
    # A third of the variance is lost with lambda from [0, 1].
    assert mixed.spreads["size"] == pytest.approx(np.sqrt(2 / 3) - 1, abs=0.05)
    assert mixed.is_narrow
    assert abs(kept.spread) < 0.07
    assert "less than the table" in mixed.advice("mixup")
    assert "epbeta-mixup keeps the spread" in mixed.advice("mixup")
    assert kept.advice("epbeta-mixup") == ""


def test_few_rows_may_vary_less_by_chance(table):
    few = Moments(8, {"a": 0.0}, {"a": -0.3}, {}, {"a": 0.4})
    assert not few.is_narrow
    many = Moments(80, {"a": 0.0}, {"a": -0.3}, {}, {"a": 0.4})
    assert many.is_narrow
    assert "such as cems" in many.advice("epbeta-mixup")


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_ugly_tables_have_lines_without_nan(rows):
    frame = pd.DataFrame({"flat": 1.0, "city": ["a", "b"] * 20, "y": np.arange(40.0)})
    found = Moments.of(read_table(frame.sample(frac=1, random_state=0), target="y"), frame[:rows])
    assert list(found.means) == ["y"]
    assert "nan" not in " ".join(found.lines()).lower()
    assert found.to_dict()["columns"].keys() == {"y"}


def test_the_columns_of_a_named_table_are_numbered():
    data = load("synthetic-sine", n=60)
    found = Moments.of(data, generate(data, method="mixup", rows=50))
    assert "target" in found.means
    assert "x1" in found.means

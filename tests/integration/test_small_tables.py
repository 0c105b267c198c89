"""Tables of 20 rows and more, of one column and more: whatever is not asked for adapts to them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import regaug
from regaug import methods
from regaug.data import read_table
from regaug.data.tabular.generation import generate
from regaug.ensemble import blend, entry
from regaug.exceptions import ArgumentError
from regaug.integrations.sklearn import AugmentedMLPRegressor, AugmentingSampler
from regaug.training import Settings, fit_many, recipe

ROWS, COLUMNS, TARGETS = (20, 21, 25, 30, 40), (1, 2, 60), (1, 2)


def often(sizes):
    """Give all sizes, of which those of the fewest rows are tried every time."""
    return [
        pytest.param(*own, marks=[] if own[0] == min(ROWS) else pytest.mark.slow) for own in sizes
    ]


METRICS = ("rmse", "mae", "mape", "r2", "pearson")
MAKING_ROWS = [name for name in methods.names() if methods.get(name).as_maker() is not None]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    """One epoch for every training, and two quick baselines."""
    usual = recipe.default_recipe
    for module in (recipe, entry):
        monkeypatch.setattr(
            module, "default_recipe", lambda rows: replace(usual(rows), epochs=1, relevance=False)
        )
    monkeypatch.setattr(
        "regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge")
    )
    monkeypatch.setattr(blend, "BASELINES", ("ridge",))


def make_frame(n, columns=2, *, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, columns)), columns=[f"c{i}" for i in range(columns)])
    frame["y"] = 2 * frame["c0"] + rng.normal(size=n)
    frame["z"] = 1e3 * rng.normal(size=n)
    return frame


def make_table(n, columns=2, targets=1, **named):
    frame = make_frame(n, columns)
    frame["place"] = np.arange(n) % 4
    frame["when"] = np.arange(n)
    wanted = ["y", "z"][:targets]
    used = {*wanted, *named.values()}
    drop = [name for name in ("z", "place", "when") if name not in used]
    return read_table(frame, target=wanted, drop=drop, **named)


def check(model, data):
    """A model that predicts finite numbers in intervals of the level that its rows allow."""
    prediction = model.predict(data.frame, interval=model.calibration.highest)
    for part in (prediction.mean, prediction.low, prediction.high):
        assert part.isfinite().all()


@pytest.mark.parametrize(("n", "columns", "targets"), often(product(ROWS, COLUMNS, TARGETS)))
def test_every_method_fits_every_small_table(n, columns, targets):
    data = make_table(n, columns, targets)
    for name in methods.names():
        check(regaug.fit(data, method=name, members=1), data)


@pytest.mark.parametrize("named", [{"group": "place"}, {"time": "when"}], ids=str)
@pytest.mark.parametrize("n", [20, pytest.param(25, marks=pytest.mark.slow)])
def test_every_method_fits_groups_and_times(n, named):
    data = make_table(n, **named)
    for name in (*methods.names(), "ridge", "auto"):
        check(regaug.fit(data, method=name, members=1, quick=True), data)


@pytest.mark.parametrize(("n", "columns"), often(product(ROWS, COLUMNS)))
def test_every_small_table_can_be_compared(n, columns):
    number = ROWS.index(n) + COLUMNS.index(columns)
    targets, metric = TARGETS[number % 2], METRICS[number % 5]
    study = regaug.compare(make_table(n, columns, targets), trials=2, splits=2, metric=metric)
    assert not any(row.n_failed for row in study.comparison.rows)
    assert {row.name for row in study.comparison.rows} >= set(methods.usual())


@pytest.mark.parametrize("named", [{"group": "place"}, {"time": "when"}], ids=str)
def test_groups_and_times_can_be_compared(named):
    study = regaug.compare(make_table(20, **named), trials=2, splits=2)
    assert not any(row.n_failed for row in study.comparison.rows)


@pytest.mark.parametrize("search", ["random", "tpe"])
def test_no_setting_that_is_drawn_asks_for_more_than_there_is(search):
    study = regaug.compare(
        make_table(20), methods=["erm", "ada"], trials=8, splits=1, search=search
    )
    own = [record.run for record in study.records if record.run.method == "ada"]
    clusters = {run.settings.method_settings["clusters"] for run in own}
    assert clusters == {4, 8}  # 12 rows to train on
    assert all(record.scores for record in study.records)


@pytest.mark.parametrize(("n", "columns"), often(product([20, 30], COLUMNS)))
def test_rows_are_made_from_every_small_table(n, columns):
    data = make_table(n, columns, 2)
    x, y = data.frame.filter(like="c"), data.frame["y"]
    for name in MAKING_ROWS:
        assert len(generate(data, method=name, rows=7)) == 7
        more, _ = AugmentingSampler(name, rows=5, random_state=0).fit_resample(x, y)
        assert len(more) == n + 5


@pytest.mark.parametrize("n", [2, 5, 20, 30])
def test_the_estimator_takes_few_rows(n):
    frame = make_frame(n, 1)
    for name in (*methods.names(), "auto"):
        model = AugmentedMLPRegressor(name, members=1, max_iter=1, relevance=False, random_state=0)
        assert np.isfinite(model.fit(frame[["c0"]], frame["y"]).predict(frame[["c0"]])).all()


UGLY = {
    "two values": lambda n: np.arange(n) % 2 == 0,
    "text": lambda n: np.array(["a", "b"])[np.arange(n) % 2],
    "three values": lambda n: np.arange(n) % 3,
    "a grid": lambda n: np.arange(n) * 1.0,
}


@pytest.mark.parametrize("column", UGLY)
def test_rows_that_are_hardly_different_are_no_trouble(column):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c0": UGLY[column](20), "y": rng.integers(0, 3, 20)})
    data = read_table(frame.sample(frac=1.0, random_state=0), target="y")
    for name in methods.names():
        check(regaug.fit(data, method=name, members=1), data)
    for name in MAKING_ROWS:
        assert len(generate(data, method=name, rows=7)) == 7


def test_a_group_with_almost_all_rows_is_trained_on():
    frame = make_frame(20).assign(city=["Oslo"] * 18 + ["Rome", "Lima"]).drop(columns="z")
    data = read_table(frame, target="y", group="city")
    for seed in range(5):
        assert len(data.split(seed).train) >= 3
    study = regaug.compare(data, methods=["ada", "cems"], trials=1, splits=2)
    assert study.comparison.row("ada").mean is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda data, own: regaug.fit(data, method="ada", members=1, method_settings=own),
        lambda data, own: generate(data, method="ada", rows=5, method_settings=own),
        lambda data, own: AugmentedMLPRegressor("ada", method_settings=own).fit(
            data.frame[["c0"]], data.frame["y"]
        ),
        lambda data, own: fit_many(
            regaug.data.standardize(data.split()), "ada", [Settings(method_settings=own)]
        ),
    ],
    ids=["fit", "generate", "estimator", "fit_many"],
)
def test_a_setting_that_was_asked_for_and_cannot_be_had_is_named(call):
    with pytest.raises(ArgumentError, match="`clusters` must be from 1 to .*, got 50"):
        call(make_table(20), {"clusters": 50})

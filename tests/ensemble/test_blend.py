"""The blend: any table, the same model whatever the jobs, shares that follow the errors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from regaug.data import load, read_table
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.splits import random_split
from regaug.ensemble import Ensemble, blend, calibration_rows, fit, fit_blend
from regaug.ensemble.blend import Amounts
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DivergedError,
    UnknownNameError,
)
from regaug.training import recipe

AMOUNTS, ALL = Amounts.of, blend.BASELINES


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    usual = recipe.default_recipe
    monkeypatch.setattr(recipe, "default_recipe", lambda rows: replace(usual(rows), epochs=4))
    monkeypatch.setattr(Amounts, "of", lambda rows, **quick: Amounts(3, 2, 1))
    monkeypatch.setattr(blend, "METHODS", ("mixup",))
    monkeypatch.setattr(blend, "BASELINES", ("ridge", "gp"))  # the others take seconds


def make_frame(n=60, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, columns)), columns=[f"c{i}" for i in range(columns)])
    frame["y"] = 2 * frame["c0"] + np.sin(3 * frame[f"c{columns - 1}"]) + 0.1 * rng.normal(size=n)
    return frame


def check(model, frame):
    """A model that predicts finite numbers within intervals, and whose shares sum to one."""
    assert sum(model.shares.values()) == pytest.approx(1.0)
    prediction = model.predict(frame, interval=model.calibration.highest)
    for part in (prediction.mean, prediction.spread, prediction.low, prediction.high):
        assert part.shape == (len(frame), len(model.targets))
        assert part.isfinite().all()
    assert (prediction.low <= prediction.mean).all()
    assert (prediction.mean <= prediction.high).all()


def make_arrays(frame):
    x, y = frame.filter(like="c").to_numpy(), frame["y"].to_numpy()
    info = Info(name="made", task="table", metric="rmse", split="At random.")
    return ArrayData(x, y, info=info, rule=lambda seed: random_split(len(y), seed=seed))


@pytest.mark.parametrize("n", [10, 24])
def test_few_rows_are_enough(n, monkeypatch):
    monkeypatch.setattr(blend, "BASELINES", ALL)
    data = make_arrays(make_frame(n))
    check(fit(data), data.x)


@pytest.mark.parametrize(("n", "columns"), [(40, 1), (50, 1000)])
def test_any_number_of_columns(n, columns):
    frame = make_frame(n, columns)
    check(fit(read_table(frame, target="y")), frame)


def test_two_targets():
    frame = make_frame().assign(z=lambda own: 1e3 * own["c1"])
    model = fit(read_table(frame, target=["y", "z"]))
    check(model, frame)
    assert model.held_out.n == len(model.calibration)


@pytest.mark.parametrize("rule", ["group", "time"])
def test_groups_and_times(rule):
    frame = make_frame().assign(place=lambda own: np.arange(len(own)) // 5)
    check(fit(read_table(frame, target="y", **{rule: "place"})), frame)


def test_three_groups_one_of_them_with_most_of_the_rows():
    frame = make_frame().assign(place=["a"] * 44 + ["b"] * 8 + ["c"] * 8)
    for seed in range(3):
        check(fit(read_table(frame, target="y", group="place"), seed=seed), frame)


def test_a_constant_target_is_predicted():
    data = make_arrays(make_frame().assign(y=7.0))
    model = fit(data)
    check(model, data.x)
    torch.testing.assert_close(model.predict(data.x).mean, torch.full((60, 1), 7.0).double())


def test_categories_and_missing_values(houses, new_houses):
    check(fit(read_table(houses, target=["price", "tax"])), new_houses)


def test_a_skewed_target_has_models_of_its_logarithm_and_positive_intervals():
    frame = make_frame(80).assign(y=lambda own: np.exp(2 * own["y"]))
    model = fit(read_table(frame, target="y"))
    check(model, frame)
    assert model.scale.log
    assert any(own.models.scale.log for own in model.components)
    prediction = model.predict(frame, interval=0.9)
    assert (prediction.low > 0).all()
    assert (prediction.mean > 0).all()


def test_a_row_put_aside_without_a_logarithm_is_no_error():
    frame = make_frame(80).assign(y=lambda own: np.exp(2 * own["y"]))
    frame.loc[calibration_rows(read_table(frame, target="y"))[0], "y"] = -1.0
    assert not fit(read_table(frame, target="y")).scale.log


def test_the_model_does_not_depend_on_the_jobs():
    frame = make_frame(40)
    one, two = (fit(read_table(frame, target="y"), jobs=jobs) for jobs in (1, 2))
    assert one.shares == two.shares
    assert torch.equal(one.predict(frame).mean, two.predict(frame).mean)


def test_calibration_rows_influence_nothing_but_the_intervals():
    frame = make_frame()
    held_out = calibration_rows(read_table(frame, target="y"), seed=3)
    changed = frame.copy()
    changed.loc[held_out, "y"] = 1e6
    changed.loc[held_out, "c0"] = 5.0
    models = [fit(read_table(own, target="y"), seed=3) for own in (frame, changed)]
    before, after = (model.predict(frame, interval=0.9) for model in models)
    assert torch.equal(before.mean, after.mean)
    assert (after.high - after.low > 100 * (before.high - before.low)).all()


def test_it_comes_back_from_its_folder_bit_by_bit(tmp_path):
    frame = make_frame()
    model = fit(read_table(frame, target="y"))
    model.save(tmp_path / "model")
    same = Ensemble.load(tmp_path / "model")
    for part in ("mean", "spread", "low", "high"):
        mine, other = (getattr(own.predict(frame, interval=0.8), part) for own in (model, same))
        assert torch.equal(mine, other)
    assert same.describe() == model.describe()
    assert same.shares == model.shares


def test_a_linear_table_goes_to_what_is_linear(monkeypatch):
    monkeypatch.setattr(blend, "BASELINES", ALL)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])
    frame["y"] = frame @ [1.0, 2.0, 3.0] + 0.01 * rng.normal(size=100)
    shares = fit(read_table(frame, target="y")).shares
    assert shares.get("trees", 0.0) + shares.get("boosting", 0.0) < 0.1


def test_nets_have_no_baselines_and_a_baseline_has_no_nets():
    data = load("synthetic-plane", n=60)
    nets = fit_blend(data, method="nets")
    assert not any(own.is_baseline for own in nets.components)
    assert {"erm", "mixup"} & nets.shares.keys()
    for name in ("ridge", "boosting", "trees", "gp"):
        model = fit_blend(data, method=name)
        assert (model.shares, len(model), model.method) == ({name: 1.0}, 3, name)


def test_small_shares_are_dropped():
    kept = blend._large([("a", 0.6), ("b", 0.009), ("c", 0.391)])
    assert [name for name, _ in kept] == ["a", "c"]
    assert sum(share for _, share in kept) == pytest.approx(1.0)


def test_where_every_net_diverges_the_baselines_are_the_model(monkeypatch):
    usual = recipe.default_recipe
    bad = {"learning_rate": 1e30, "linear": False, "frequencies": 0}
    monkeypatch.setattr(blend, "draw_recipes", lambda *_, rows, **__: [replace(usual(rows), **bad)])
    frame = make_frame()
    model = fit(read_table(frame, target="y"))
    check(model, frame)
    assert all(own.is_baseline for own in model.components)
    with pytest.raises(DivergedError, match="No model could be fitted"):
        fit(read_table(frame, target="y"), method="nets")


def test_progress_begins_with_an_estimate_and_ends_with_all():
    seen = []
    fit(load("synthetic-plane", n=50), progress=seen.append)
    assert (seen[0].done, seen[0].method) == (0, "")
    assert seen[0].seconds_left > 0
    assert seen[-1].done == seen[-1].total == 3 * (2 + 2 + 1)
    assert [event.done for event in seen] == sorted(event.done for event in seen)


def test_many_rows_have_fewer_candidates_and_few_rows_fewer_folds():
    amounts = [AMOUNTS(rows) for rows in (10, 24, 25, 2_000, 3_000, 10**6)]
    assert [own.folds for own in amounts] == [3, 3, 8, 8, 5, 3]
    assert [own.recipes for own in amounts] == [4, 4, 4, 4, 4, 3]


def test_names_and_settings_are_checked():
    data = load("synthetic-plane", n=50)
    with pytest.raises(UnknownNameError, match="Did you mean 'boosting'"):
        fit(data, method="bosting")
    for method in ("auto", "gp"):
        with pytest.raises(ArgumentError, match=r"`method_settings` must be left out .* Name a"):
            fit(data, method=method, method_settings={"rho": 0.9})
    with pytest.raises(ArgumentError, match="`jobs` must be"):
        fit(data, jobs=0)


def test_a_path_and_a_frame_with_a_target_are_the_table_they_hold(tmp_path):
    frame = make_frame().assign(group=np.arange(60) % 6, extra=1.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    columns = {"target": "y", "group": "group", "drop": "extra"}
    expected = fit(read_table(frame, **columns), method="ridge").predict(frame).mean
    for source in (frame, tmp_path / "t.csv", str(tmp_path / "t.csv")):
        assert fit(source, **columns, method="ridge").predict(frame).mean.equal(expected)


def test_what_is_no_table_needs_a_target_and_a_table_has_its_own():
    with pytest.raises(ArgumentTypeError, match="a path or a frame with `target`, got DataFrame"):
        fit(make_frame())
    with pytest.raises(
        ArgumentError, match="`target` must be None for data that knows its columns"
    ):
        fit(read_table(make_frame(), target="y"), target="y")


def test_a_model_reads_new_rows_as_its_table_was_written(tmp_path):
    frame = make_frame(80)
    rows = (frame * 1000).round(1)
    german = rows.map(
        lambda v: f"{v:,.1f} kg".replace(",", "_").replace(".", ",").replace("_", ".")
    )
    model = fit(german, target="y", method="ridge")
    model.save(tmp_path / "model")
    again = Ensemble.load(tmp_path / "model")
    expected = fit(rows, target="y", method="ridge").predict(rows).mean
    assert again.predict(german).mean.equal(expected)
    assert again.predict(german.iloc[[7]]).mean.equal(expected[[7]])
    german.iloc[[7]].to_csv(tmp_path / "one.csv", index=False, sep=";")
    assert again.predict(tmp_path / "one.csv").mean.equal(expected[[7]])
    rows.to_csv(tmp_path / "plain.csv", index=False)
    assert again.predict(tmp_path / "plain.csv").mean.equal(expected)
    assert again.preparation.encoder.read(german)["y"].tolist() == rows["y"].tolist()

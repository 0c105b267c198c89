"""The figures: their numbers, and that they can be drawn again from them."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import ANY

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.augment import FOMA
from regaug.data.base import Part, Split
from regaug.data.datasets import files
from regaug.exceptions import ArgumentError, DataNotFoundError
from regaug.functional.foma import foma
from regaug.reproduction.figures import FIGURES, figure1, figure2, perturbation, sweep, trainings
from regaug.reproduction.figures.base import Plan, compact, spread
from regaug.reproduction.figures.trainings import NO2_ERM, SAME, foma_settings
from regaug.training.recipe import default_recipe

COMMITTED = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "reproduction"
# Minutes for which a figure is small enough for a test.
QUICK = {"figure1": None, "figure2": 0.03, "figure3": 0.03, "figure4": 0.03, "perturbation": None}


def make_part(n=23, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(n, d, generator=generator), torch.randn(n, 1, generator=generator)
    return Part(x=x, y=y, rows=np.arange(n))


class Plain(torch.nn.Module):
    def forward(self, x):
        return x.flatten(1).sum(1, keepdim=True)


@pytest.fixture(scope="module")
def computed():
    """The numbers of a figure, computed once and put through JSON."""
    known = {}

    def compute(name):
        if name not in known:
            numbers = FIGURES[name].compute(seeds=1, max_minutes=QUICK[name])
            known[name] = json.loads(json.dumps(numbers))
        return known[name]

    return compute


# --- all figures


def test_the_figures_of_the_issue_are_all_there():
    assert list(FIGURES) == ["figure1", "figure2", "figure3", "figure4", "perturbation"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "figure4" else ()) for name in QUICK],
)
def test_a_figure_is_computed_drawn_and_told(name, computed, real_data, monkeypatch, tmp_path):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    numbers = computed(name)
    svg, png = FIGURES[name].draw(numbers, tmp_path / "new folder" / name)
    assert svg.read_text().lstrip().startswith("<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert numbers["note"].endswith(".")
    assert FIGURES[name].caption(numbers).endswith((".", ".)"))


@pytest.mark.parametrize("name", FIGURES)
def test_the_committed_numbers_can_be_drawn_again(name, tmp_path):
    numbers = json.loads((COMMITTED / f"{name}.json").read_text())
    svg, png = FIGURES[name].draw(numbers, tmp_path / name)
    assert svg.exists()
    assert png.stat().st_size < 150_000
    assert numbers["seeds"] == 3
    assert "Scaled down" not in numbers["note"]
    assert "nan" not in FIGURES[name].caption(numbers)


def test_the_same_numbers_give_the_same_files(computed, tmp_path):
    numbers = computed("figure1")
    first, again = (FIGURES["figure1"].draw(numbers, tmp_path / stem) for stem in ("a", "b"))
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "figure1"])
def test_a_figure_without_its_data_says_what_is_missing(name, tmp_path, monkeypatch):
    def no_network(address, target, *, checks, limit):
        raise DataNotFoundError(f"Could not fetch {address}: no network.")

    monkeypatch.setenv("REGAUG_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("REGAUG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "download", no_network)
    with pytest.raises(DataNotFoundError):
        FIGURES[name].compute(seeds=1, max_minutes=0.01)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_needs_a_seed(name):
    with pytest.raises(ArgumentError, match="`seeds` must be"):
        FIGURES[name].compute(seeds=0)


def test_matplotlib_is_imported_by_drawing_only(fresh):
    code = "import regaug.reproduction.figures, sys; print('matplotlib' in sys.modules)"
    assert fresh(code) == "False"


# --- minutes and rounding


@given(st.integers(1, 9), st.floats(1e-3, 1e3), st.floats(1e-2, 1e2))
def test_a_plan_stays_within_its_minutes(seeds, most, minutes):
    plan = Plan.make(seeds, most, minutes)
    assert 1 <= plan.seeds <= seeds
    assert 0 < plan.share <= 1
    assert plan.seeds * plan.share * minutes <= most * (1 + 1e-9)
    is_whole = plan.seeds == seeds and plan.share == 1
    assert bool(plan.words) == (not is_whole)


def test_without_a_limit_a_figure_has_its_full_size():
    assert Plan.make(3, None, 100.0) == Plan(3)


def test_seeds_are_given_up_before_epochs():
    plan = Plan.make(3, 2.0, 1.0)
    assert (plan.seeds, plan.share) == (2, 1.0)
    assert plan.words == "Scaled down to 2 minutes: 2 of 3 seeds."
    assert Plan.make(3, 0.5, 1.0).part_of(100) == 50


def test_something_is_always_left():
    assert Plan.make(3, 1e-6, 1.0).part_of(100) == 1
    assert Plan.make(3, 1e-6, 1.0).part_of(128, least=32) == 32


@pytest.mark.parametrize("minutes", [0.0, -1.0])
def test_there_must_be_some_time(minutes):
    with pytest.raises(ArgumentError, match="`max_minutes` must be"):
        Plan.make(1, minutes, 1.0)


def test_one_run_has_no_spread():
    assert spread([[1.0, 2.0]]) == {"mean": [1.0, 2.0], "sd": [0.0, 0.0]}


def test_numbers_keep_five_digits_whatever_their_size():
    assert compact([[1.23456789e-7, 123456.789]]) == [[1.2346e-07, 123460.0]]


# --- figure 1


def test_a_point_stands_beside_what_becomes_of_it():
    made = dict(figure1._augment_all(0))
    old, new = made["Gaussian noise"]
    assert (new - old).abs().max() < 1.0  # several deviations of the noise
    old, new = made["CEMS"]
    assert (new - old).norm(dim=1).median() < 0.5


def test_points_on_the_curve_are_on_it():
    assert figure1._distance(figure1._make_points(1)) < 1e-3


def test_distance_is_measured_across_the_curve():
    above = torch.tensor([[torch.pi / 2, 1.5]])
    assert figure1._distance(above) == pytest.approx(0.5, abs=1e-3)


def test_figure_1_orders_the_methods_by_their_distance():
    far = {name: m["distance"] for name, m in figure1.FIGURE.compute(seeds=2)["methods"].items()}
    assert far["CEMS"] < 0.1 * far["FOMA about the mean"]
    assert far["FOMA about the mean"] < far["FOMA"] < far["mixup"]


# --- figure 2


def test_figure_2_says_so_when_it_is_scaled_down(computed, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    numbers = computed("figure2")
    assert "Scaled down to 0.03 minutes: 10 % of the epochs." in numbers["note"]
    assert len(numbers["curves"]["foma"]["test"]["mean"]) == 10


def test_the_gap_is_the_test_error_minus_the_train_error(computed, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    for curves in computed("figure2")["curves"].values():
        train, test, gap = (np.array(curves[part]["mean"]) for part in ("train", "test", "gap"))
        np.testing.assert_allclose(gap, test - train, atol=1e-3)


def test_settings_are_those_of_the_paper(computed, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    settings = computed("figure2")["settings"]
    rates = {name: (own["learning_rate"], own["batch_size"]) for name, own in settings.items()}
    assert rates == {"erm": (1e-2, 32), SAME: (1e-3, 64), "foma": (1e-3, 64)}
    own = settings["foma"]["method_settings"]
    assert (own["alpha"], own["k"], own["scale"]) == (0.9, "two_nn", "trailing")
    assert (own["anneal"], own["p"], own["place"]) == (None, 1.0, "input")
    assert NO2_ERM.epochs == foma_settings("no2").epochs == 100


def test_labels_of_figure_2_say_the_rates_of_its_settings(computed, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    for name, own in computed("figure2")["settings"].items():
        said = f"rate {own['learning_rate']:g}, batch {own['batch_size']}"
        assert figure2.LABELS[name].endswith(said)


def test_the_recipe_is_that_of_a_study_and_foma_as_above_it():
    numbers = json.loads((COMMITTED / "figure2.json").read_text())
    usual = replace(default_recipe(200), patience=None).to_dict() | {"method_settings": ANY}
    assert numbers["recipe"]["settings"] == {SAME: usual, "foma": usual}
    own = numbers["recipe"]["settings"]["foma"]["method_settings"]
    assert foma_settings("no2").method_settings.items() <= own.items()


def test_a_part_of_the_recipe_comes_alone(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    splits = trainings.standardized_splits("no2", 1)
    runs = trainings.train_by_recipe("no2", splits, Plan(1), epochs=1, part="a linear part")
    own = runs["foma"][0].settings
    assert (own.linear, own.frequencies, own.relevance, own.average) == (True, 0, False, 0.0)
    assert (own.learning_rate, own.epochs) == (default_recipe(200).learning_rate, 1)


def test_foma_keeps_the_error_from_rising_as_far_and_has_no_better_epoch():
    recipe = json.loads((COMMITTED / "figure2.json").read_text())["recipe"]
    whole, parts = recipe["facts"], recipe["parts"].values()
    for own in (whole, *parts):
        assert own["foma"]["last_test"] < own[SAME]["last_test"]
    lower = [own["foma"]["test"] < own[SAME]["test"] for own in (whole, *parts)]
    assert not lower[0]
    assert sum(lower) <= 1


# --- sweeps over lambda


def test_nets_of_the_recipe_predict_what_their_trainings_did(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    splits = trainings.standardized_splits("no2", 1)
    runs = trainings.train_by_recipe("no2", splits, Plan(1), epochs=3)
    nets, unit = sweep.make_recipe_nets(runs, splits), float(splits[0].y_scaler.std[0])
    found = sweep.sweep(nets, [{"test": splits[0].test}], 64, units=[unit])["test"]
    for name, (run,) in runs.items():
        expected = run.scores["test"].rmse ** 2
        assert found[name][sweep.JOINT]["mean"][-1] == pytest.approx(expected, rel=1e-3)


@given(st.integers(0, 99), st.floats(0.0, 1.0))
def test_scaled_batches_are_what_foma_makes_of_them(seed, lam):
    part = make_part(n=12, seed=seed)
    scaled = sweep.Scaled(part, batch_size=12, seed=seed)
    x, y = foma(scaled.x, scaled.y, lam=lam, k=scaled.cuts[0])
    for found, expected in zip(scaled.at(lam), (x, y), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_every_row_is_scaled_once_in_batches_of_about_one_size():
    part = make_part(n=23)
    scaled = sweep.Scaled(part, batch_size=10)
    assert len(scaled.cuts) == 3
    assert sorted(scaled.y.flatten().tolist()) == sorted(part.y.flatten().tolist())


def test_inputs_alone_are_scaled_without_the_targets():
    scaled = sweep.Scaled(make_part(), batch_size=23)
    u, s, vh = torch.linalg.svd(scaled.x, full_matrices=False)
    s[scaled.cuts[0] :] *= 0.25
    x, y = scaled.at(0.25, sweep.INPUTS)
    torch.testing.assert_close(x, (u * s) @ vh, atol=1e-5, rtol=1e-4)
    assert torch.equal(y, scaled.y)


def test_targets_can_be_kept_while_the_joint_rows_are_scaled():
    scaled = sweep.Scaled(make_part(), batch_size=8)
    x, y = scaled.at(0.0, sweep.KEPT)
    assert torch.equal(x, scaled.at(0.0)[0])
    assert torch.equal(y, scaled.y)
    assert not torch.equal(y, scaled.at(0.0)[1])


def test_a_batch_whose_dimension_cannot_be_estimated_stays_as_it_is():
    part = Part(x=torch.ones(4, 2), y=torch.ones(4, 1), rows=np.arange(4))
    scaled = sweep.Scaled(part, batch_size=4)
    for what in (sweep.JOINT, sweep.INPUTS):
        x, y = scaled.at(0.0, what)
        torch.testing.assert_close((x, y), (part.x, part.y))


@pytest.mark.parametrize(
    ("share", "epochs", "windows"), [(1.0, 2, 40), (0.6, 1, 40), (0.15, 1, 12), (0.001, 1, 1)]
)
def test_less_time_than_an_epoch_takes_is_an_epoch_of_fewer_windows(
    monkeypatch, share, epochs, windows
):
    part = Part(torch.zeros(40, 30, 2), torch.zeros(40, 2), np.arange(40))
    whole = SimpleNamespace(split=lambda protocol: Split(part, part, part))
    trained = []
    monkeypatch.setattr(trainings, "load", lambda name: whole)
    monkeypatch.setattr(trainings, "fit", lambda *a, **options: trained.append(a))
    split, nets = trainings.train_exchange_rate(Plan(1, share))
    assert len(split.train) == windows
    assert len(split.test) == 40
    for _, own, _, settings in trained:
        assert (len(own.train), settings.epochs) == (windows, epochs)
    assert len(trained) == len(nets) == 2


def test_series_keep_their_shape():
    part = make_part(n=16, d=6)
    windows = Part(x=part.x.reshape(16, 3, 2), y=part.y, rows=part.rows)
    flat, shaped = (sweep.Scaled(p, batch_size=8) for p in (part, windows))
    assert shaped.at(0.5)[0].shape == (16, 3, 2)
    np.testing.assert_allclose(shaped.errors(Plain()), flat.errors(Plain()), rtol=1e-4)


def test_at_one_the_error_is_that_on_the_data():
    part = make_part()
    errors = sweep.Scaled(part, batch_size=8).errors(Plain())
    assert len(errors) == 100
    assert errors[-1] == pytest.approx((Plain()(part.x) - part.y).square().mean().item(), rel=1e-5)


def test_only_the_plain_net_has_controls():
    found = sweep.sweep({SAME: [Plain()], "foma": [Plain()]}, [{"train": make_part()}], 8)
    assert {name: list(ways) for name, ways in found["train"].items()} == {
        SAME: [sweep.JOINT, sweep.INPUTS],
        "foma": [sweep.JOINT],
    }


# --- perturbation


@given(st.integers(0, 999), st.integers(1, 6))
def test_noise_stays_within_the_bounds_of_the_theorem(seed, columns):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(20, columns, generator=generator, dtype=torch.float64)
    errors = 0.3 * torch.randn(5, 20, columns, generator=generator, dtype=torch.float64)
    before = torch.linalg.svdvals(rows)
    low, high = perturbation._bounds(rows, errors, before)
    after = torch.linalg.svdvals(rows + errors)
    assert bool(((low <= after + 1e-9) & (after <= high + 1e-9)).all())


def test_noise_raises_small_values_and_foma_lowers_them(computed, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    numbers = computed("perturbation")
    assert numbers["share_inside"] == 1.0
    assert numbers["share_risen"] > 0.95
    assert numbers["smallest"]["noise"][0] > 1.1
    assert numbers["smallest"]["foma"][0] == pytest.approx(0.5, rel=1e-3)
    assert numbers["smallest"]["grown"][0] == pytest.approx(1.5, rel=1e-3)
    assert numbers["largest"]["foma"][0] == pytest.approx(1.0, rel=1e-6)


def test_after_foma_the_values_are_the_scaled_ones_in_order(computed, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    batch = computed("perturbation")["batch"]
    for name, lam in perturbation.FACTORS.items():
        expected = [s if j < batch["k"] else lam * s for j, s in enumerate(batch["before"])]
        np.testing.assert_allclose(batch[name], sorted(expected, reverse=True), rtol=1e-3)


def test_noise_moves_standardized_rows_less(computed, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    numbers = computed("perturbation")
    own = numbers["standardized"]
    assert 1.0 < own["smallest"]["noise"][0] < numbers["smallest"]["noise"][0]
    assert own["smallest"]["foma"][0] == pytest.approx(0.5, rel=1e-3)
    assert own["share_inside"] == 1.0


def test_lam_range_of_one_value_is_that_value():
    augment = FOMA(k=1, lam_range=figure1.HALF)
    augment(torch.randn(8, 2, generator=torch.Generator().manual_seed(0)), torch.ones(8))
    assert augment.params.lam == 0.5

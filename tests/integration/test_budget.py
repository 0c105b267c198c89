"""The study of a network from end to end: planned, halved, repeated, continued."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from regaug.data.base import Part, Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import ArgumentError, StoreError
from regaug.problems import LoadedSplits, Problem
from regaug.runs.store import Store
from regaug.studies import plan as plan_module
from regaug.studies.compare import compare
from regaug.studies.study import Study
from regaug.training.pace import Pace

METHODS = ["mixup", "foma-rho"]
SIZE = {"methods": METHODS, "trials": 1, "epochs": 8}

BASELINES = "regaug.studies.eligibility.baseline_names"


def make_net(split):
    return nn.Sequential(nn.Linear(split.train.x.shape[1], 8), nn.ReLU(), nn.Linear(8, 1))


def make_split(seed=0, n=120):
    return make_manifold("paraboloid", n=n, noise=0.3).split(seed)


def make_problem(splits=1, **options):
    own = [make_split(seed) for seed in range(splits)]
    return Problem(own, make_net, name="bowl", **{"places": ["1"], **options})


@pytest.fixture(autouse=True)
def _few_baselines(monkeypatch):
    monkeypatch.setattr(BASELINES, lambda split: ("mean", "ridge"))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A study of one split, with nothing asked for but its length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BASELINES, lambda split: ("mean", "ridge"))
        return compare(make_problem(), out=tmp_path_factory.mktemp("one"), **SIZE)


def table_of(study):
    return {row.name: row.errors for row in study.comparison.rows}


def test_one_split_is_repeated_with_other_seeds(one):
    assert (one.config.splits, one.config.repeats) == (5, 5)
    assert one.comparison.repeated
    errors = table_of(one)
    assert len(set(errors["erm"])) == 5
    assert len(set(errors["ridge"])) == 1  # nothing about it depends on a seed
    assert one.comparison.row("mixup").change_low is not None


def test_verdict_leaderboard_and_report_say_that_only_seeds_vary(one):
    assert "say how much seeds vary, not how other test rows would turn out" in one.verdict.text
    assert "one split, 5 repetitions with other seeds" in str(one)
    page = (one.folder / "report.html").read_text(encoding="utf-8")
    assert "5, repetitions of one split with other seeds; other test rows are not covered" in page
    assert "intervals say how much seeds vary, and nothing of other test rows" in page
    assert "Repetition by repetition" in page
    assert "widened for the rows" not in page
    assert "every method got the same epochs: 8" in page
    assert "Plan: 5 repetitions of the one split" in page


def test_recipes_are_halved_and_those_that_end_early_have_not_been_trained_on(one):
    recipes = [own for own in one.records if own.run.stage == "recipe"]
    lengths = sorted(own.epochs for own in recipes if own.run.split == 0)
    assert lengths == [2, 2, 2, 2, 4, 4, 8]
    assert one.config.rungs == (2, 4)
    methods = [own for own in one.records if own.run.stage == "method"]
    assert {own.epochs for own in methods} == {8}
    best = next(own for own in recipes if own.run.split == 0 and own.epochs == 8)
    rates = {own.run.settings.learning_rate for own in methods if own.run.split == 0}
    assert rates == {best.run.settings.learning_rate}
    assert not (one.folder / "checkpoints").exists()


def test_a_study_is_read_back_as_it_was(one):
    again = Study.open(one.folder)
    assert again.comparison == one.comparison
    assert again.verdict == one.verdict
    assert again.planned == one.planned
    assert again.config.is_repeated
    assert one.planned[0].startswith(
        "Plan: 5 repetitions of the one split, with other seeds; on each"
    )


@pytest.mark.slow
@pytest.mark.serial
def test_the_table_does_not_depend_on_the_number_of_workers(one, tmp_path):
    # Halved recipes go on in another process than they began in.
    study = compare(make_problem(), jobs=2, out=tmp_path, **SIZE)
    assert table_of(study) == table_of(one)
    assert study.verdict == one.verdict


def test_without_a_folder_it_is_the_same(one):
    assert table_of(compare(make_problem(), **SIZE)) == table_of(one)


def test_several_splits_are_what_they_were():
    study = compare(make_problem(splits=3), **SIZE)
    assert (study.config.splits, study.config.repeats) == (3, 1)
    assert not study.comparison.repeated
    assert "seeds" not in study.verdict.text
    assert study.comparison.test_share > 0


def test_some_of_the_splits_are_enough_if_asked_for():
    assert compare(make_problem(splits=3), splits=2, **SIZE).config.splits == 2
    with pytest.raises(ArgumentError, match="`splits` must be at most 3"):
        compare(make_problem(splits=3), splits=4, **SIZE)


def make_grouped(seed):
    parts = []
    for number, n in enumerate((60, 24, 24)):
        rng = np.random.default_rng(100 * seed + number)
        x = torch.from_numpy(rng.standard_normal((n, 2)).astype(np.float32))
        groups = np.array(["a", "b"])[np.arange(n) % 2]
        parts.append(Part(x, x.sum(1, keepdim=True), np.arange(n), groups))
    return Split(*parts)


def test_groups_of_a_repeated_split_have_their_own_scores():
    study = compare(Problem([make_grouped(0)], make_net, name="g", places=["1"]), **SIZE)
    scores = study.scores["erm"]
    assert len(scores) == 5
    assert all(own.groups.keys() == {"a", "b"} for own in scores)


# A budget.


@pytest.fixture
def measured(monkeypatch):
    """Count warm-ups, and let them find a slow machine: the study is small, and soon over."""
    calls = []

    def measure(problem, names, *, seed):
        calls.append(names)
        return {name: Pace(1.0, 4.0, 1.0) for name in names}

    monkeypatch.setattr(plan_module, "measure_paces", measure)
    return calls


def test_the_same_call_continues_the_same_plan_without_measuring(tmp_path, measured, monkeypatch):
    asked = {"methods": ["mixup"], "max_minutes": 10.0, "out": tmp_path}
    study = compare(make_problem(), **asked)
    assert (study.config.splits, study.config.trials, study.config.recipes) == (3, 1, 0)
    path = next(study.folder.glob("runs-*.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    monkeypatch.setattr(plan_module, "measure_paces", None)  # nobody measures again
    again = compare(make_problem(), **asked)
    assert again.folder == study.folder
    assert again.config == study.config
    assert table_of(again) == table_of(study)
    assert len(Store.open(study.folder).records()) == len(lines)


def test_another_budget_is_another_study(tmp_path, measured):
    asked = {"methods": ["mixup"], "out": tmp_path}
    small, large = (compare(make_problem(), max_minutes=m, **asked) for m in (8.0, 16.0))
    assert small.folder != large.folder
    assert small.folder.name == "full-mixup-8-minutes"
    assert large.config.splits * max(large.config.epochs) > small.config.splits * max(
        small.config.epochs
    )
    assert len(measured) == 2


def test_a_plan_is_told_before_anything_runs(tmp_path, measured):
    told = []
    compare(make_problem(), max_minutes=10.0, methods=["mixup"], progress=told.append)
    first = told[0]
    assert not first.records
    words = " ".join(first.notes)
    assert "Plan: " in words
    assert "Every method gets the same number of epochs." in words
    assert "Measured: a step of plain training takes" in words
    assert "Planned for 10 minutes: it takes about" in words
    assert 100 < first.seconds_left < 600


def test_a_study_that_runs_out_of_time_is_judged_by_the_splits_that_are_finished(
    tmp_path, monkeypatch
):
    whole = compare(make_problem(splits=3), out=tmp_path, **SIZE)
    path = next(whole.folder.glob("runs-*.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    # The methods of the last split, and what stands beside, were not begun.
    kept = [line for line in lines if not _is_late(json.loads(line)["record"]["run"])]
    path.write_bytes(b"".join(kept))
    study = Study.open(whole.folder)
    assert study.comparison.n_splits == 2
    assert not study.is_complete
    assert study.config == whole.config
    for name in ("erm", "mixup"):
        assert table_of(study)[name] == table_of(whole)[name][:2]
    page = study.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "not complete: 2 of 3 splits are finished" in page
    again = compare(make_problem(splits=3), out=tmp_path, **SIZE)
    assert table_of(again) == table_of(whole)


def _is_late(run):
    return run["settings"] is None or (run["stage"] == "method" and run["split"] == 2)


def test_a_study_without_a_single_finished_split_says_so(tmp_path):
    with pytest.raises(StoreError, match="no setting yet"):
        compare(make_problem(), max_minutes=1e-6, out=tmp_path, methods=["mixup"])


def test_the_same_time_is_fewer_epochs_for_slower_methods(tmp_path, monkeypatch):
    def measure(problem, names, *, seed):
        pace = Pace(0.1, 0.2, 0.01)
        return {name: replace(pace, epoch=0.2 * (1 + n)) for n, name in enumerate(names)}

    monkeypatch.setattr(plan_module, "measure_paces", measure)
    study = compare(make_problem(), fair="time", out=tmp_path, **SIZE)
    assert study.config.epochs == (8, 4, 3)
    lengths = {own.run.method: own.epochs for own in study.records if own.run.stage == "method"}
    assert lengths == {"erm": 8, "mixup": 4, "foma-rho": 3}
    page = (study.folder / "report.html").read_text(encoding="utf-8")
    assert "about the same time, slower ones fewer epochs: erm 8, mixup 4, foma-rho 3" in page
    assert study.settings_of("mixup").epochs == 4
    assert study.folder.name.startswith("full-mixup+foma-rho-trials-1-epochs-8-same-time")


def test_splits_on_demand_that_are_one_are_repeated():
    problem = Problem(LoadedSplits(lambda number: make_split(), 10), make_net, places=["1"])
    study = compare(problem, splits=3, **SIZE)
    assert (study.config.splits, study.config.repeats) == (3, 3)


@pytest.mark.parametrize(
    ("options", "name"), [({"epochs": 5}, "epochs"), ({"fair": "time"}, "fair")]
)
def test_a_table_has_no_length_and_no_times(options, name):
    with pytest.raises(
        ArgumentError, match=f"`{name}` must be .* for a table.*networks of your own"
    ):
        compare([make_split(seed) for seed in range(2)], **options)


@pytest.mark.slow
@pytest.mark.serial
def test_a_study_fits_into_its_time(tmp_path):
    start = time.monotonic()
    study = compare(make_problem(splits=5), max_minutes=1.0, jobs=2, out=tmp_path)
    assert time.monotonic() - start < 1.25 * 60
    assert study.is_complete
    assert study.verdict.text

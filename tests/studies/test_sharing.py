"""Runs that two studies have in common are done once, and change nothing."""

from dataclasses import replace

import pytest

from regaug.data.datasets.synthetic import make_manifold
from regaug.problems import Problem
from regaug.runs import origins as origins_module
from regaug.runs.division import left_of
from regaug.runs.origins import Origins
from regaug.runs.store import Store
from regaug.runs.tasks import make_tasks
from regaug.runs.worker import Worker
from regaug.studies.compare import compare
from regaug.studies.plan import make_plan


@pytest.fixture(autouse=True)
def _small(monkeypatch, shorten):
    monkeypatch.setattr(
        "regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge")
    )
    shorten(monkeypatch, 4, 2)


@pytest.fixture
def counted(monkeypatch):
    """The runs that are done, as they are."""
    done = []
    real = Worker.do
    monkeypatch.setattr(Worker, "do", lambda self, t: done.extend(t) or real(self, t))
    return done


def make_data(n=60, seed=0):
    return make_manifold("paraboloid", n=n, noise=0.3, seed=seed)


def study(out, *methods, data=None, splits=3, seed=0, metric="rmse", progress=None):
    """Make a small study of a problem, which leaves no model."""
    problem = Problem.from_table(data or make_data(), splits=splits, seed=seed, metric=metric)
    return compare(problem, methods=methods, trials=2, seed=seed, out=out, progress=progress)


def scores_of(study):
    """Return everything that came out of the runs of a study."""
    found = Store.open(study.folder).records()
    return {key: (own.scores, own.epochs, own.ending) for key, own in found.items()}


def test_more_methods_use_the_runs_of_fewer_and_find_the_same(tmp_path, counted):
    few = study(tmp_path / "runs", "mixup")
    counted.clear()
    seen = []
    both = study(tmp_path / "runs", "mixup", "foma-rho", progress=seen.append)
    assert {run.method for run in counted} == {"foma-rho"}
    assert len(counted) == 2 * 3
    assert f"{len(few.records)} runs taken from {few.folder}." in seen[0].notes
    assert sum(seen[0].done.values()) == len(few.records)
    alone = study(tmp_path / "alone", "mixup", "foma-rho")
    assert scores_of(both) == scores_of(alone)
    assert both.comparison == alone.comparison
    assert len(both.records) == len(alone.records)


def test_fewer_methods_use_the_runs_of_more(tmp_path, counted):
    study(tmp_path, "mixup", "foma-rho")
    counted.clear()
    study(tmp_path, "foma-rho")
    assert counted == []


def test_more_splits_use_the_baselines_alone_and_find_the_same(tmp_path, counted):
    # A net depends on those it is trained beside, which are others with more splits.
    study(tmp_path / "runs", "mixup")
    counted.clear()
    wide = study(tmp_path / "runs", "mixup", splits=4)
    baselines = [run for run in counted if run.is_baseline]
    assert {run.split for run in baselines} == {3}
    assert len(counted) - len(baselines) == (6 + 2 * 2) * 4
    assert wide.comparison == study(None, "mixup", splits=4).comparison


def test_a_study_does_not_depend_on_those_it_has_borrowed_from(tmp_path):
    few = study(tmp_path, "mixup")
    both = study(tmp_path, "mixup", "foma-rho")
    few.folder.rename(tmp_path / "elsewhere")
    assert scores_of(both).keys() == {own.run.key for own in both.records}


@pytest.mark.parametrize(
    "change",
    [{"data": make_data(seed=3)}, {"data": make_data(n=70)}, {"seed": 1}, {"metric": "mae"}],
    ids=["other rows", "more rows", "seed", "metric"],
)
def test_nothing_is_borrowed_if_anything_that_matters_differs(tmp_path, counted, change):
    study(tmp_path, "mixup")
    counted.clear()
    assert len(study(tmp_path, "mixup", **change).records) == len(counted)


def test_nothing_is_borrowed_from_another_version(tmp_path, counted, monkeypatch):
    study(tmp_path, "mixup")
    counted.clear()
    monkeypatch.setattr(origins_module, "versions", lambda: {"regaug": "99"})
    assert len(study(tmp_path, "mixup", "ada").records) == len(counted)


def test_nothing_is_borrowed_from_a_damaged_study(tmp_path, counted, monkeypatch):
    monkeypatch.setattr("regaug.runs.store.PATIENCE", 0.0)
    first = study(tmp_path, "mixup")
    (first.folder / "study.json").write_text("{")
    counted.clear()
    assert len(study(tmp_path, "mixup", "ada").records) == len(counted)


# Origins


def make_problem(**changes):
    return replace(Problem.from_table(make_data(), splits=3), **changes)


def tasks_of(problem, **options):
    plan = make_plan(problem, methods=["mixup"], trials=2, **options)
    return make_tasks(plan.runs, {problem.name: problem})


def origins_of(problem, tasks=None):
    named = Origins([problem])
    return [named.of(task) for task in tasks or tasks_of(problem)]


def test_an_origin_is_the_same_every_time_and_each_run_has_one():
    problem = make_problem()
    found = origins_of(problem)
    assert found == origins_of(make_problem())
    for task, own in zip(tasks_of(problem), found, strict=True):
        assert own.keys() == {run.key for run in task}
        assert len(set(own.values())) == (len(task) if task[0].is_baseline else 1)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": (9,)},
        {"metric": "r2"},
        {"is_scaled": True},
        {"splits": Problem.from_table(make_data(seed=1), splits=3).splits},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_origin_differs_with_all_that_decides(change):
    tasks = tasks_of(make_problem())
    before, after = origins_of(make_problem(), tasks), origins_of(make_problem(**change), tasks)
    for own, other in zip(before, after, strict=True):
        assert not set(own.values()) & set(other.values())


def test_groups_decide_too():
    problem = make_problem()
    split = problem.splits[0]
    labels = [f"group {i % 2}" for i in range(len(split.test))]
    grouped = replace(split, test=replace(split.test, groups=labels))
    other = replace(problem, splits=[grouped, *problem.splits[1:]])
    tasks = tasks_of(problem)
    assert origins_of(problem, tasks)[0] != origins_of(other, tasks)[0]


def test_a_network_of_ones_own_lends_nothing():
    problem = make_problem(model=lambda split: None)
    assert origins_of(problem, tasks_of(make_problem())) == [{} for _ in tasks_of(make_problem())]


def test_baselines_that_are_done_are_left_out_and_nets_stay_together():
    tasks = tasks_of(make_problem())
    done = {task[0].key for task in tasks}
    for task in tasks:
        assert left_of(task, done) == (task[1:] if task[0].is_baseline else task)
        assert left_of(task, {run.key for run in task}) == ()

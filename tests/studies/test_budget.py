"""How large the study of a network is: what fits, what was asked for, and that it is said."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.exceptions import ArgumentError, StoreError
from regaug.runs.run import Run
from regaug.studies.budget import Asked, Budget, Extent
from regaug.studies.ladder import LADDER, MARGIN, REPEATS, choose_budget
from regaug.training.pace import Pace
from regaug.training.recipe import network_epochs
from regaug.training.settings import Settings

METHODS = ("erm", "mixup", "foma", "cems")
FEWER = ("erm", "mixup")
EXTENT = Extent(splits=10, rows=2_000, train_rows=1_200, baselines={"mean": 0.0, "gp": 1.0})
ONE = replace(EXTENT, splits=1)
PACES = {
    "erm": Pace(0.1, 0.2, 0.01),
    "mixup": Pace(0.1, 0.2, 0.01),
    "foma": Pace(0.1, 0.4, 0.02),
    "cems": Pace(2.0, 0.8, 0.04),
}


def slower(times):
    return {name: Pace(own.start, times * own.epoch, own.step) for name, own in PACES.items()}


def choose(asked=None, extent=EXTENT, paces=PACES, *, jobs=1, **options):
    asked = asked or Asked(**options)
    return choose_budget(asked, METHODS, extent, paces, fewer=FEWER, jobs=jobs)


@given(
    st.floats(0.5, 600.0),
    st.floats(0.01, 30.0),
    st.integers(1, 8),
    st.sampled_from(["epochs", "time"]),
    st.sampled_from([EXTENT, ONE, replace(EXTENT, splits=2)]),
)
def test_what_is_planned_fits_or_that_is_said(minutes, times, jobs, fair, extent):
    budget = choose(extent=extent, paces=slower(times), jobs=jobs, max_minutes=minutes, fair=fair)
    beside = budget.wall(jobs, 1.0 if "gp" in budget.baselines else 0.0)
    is_small = (budget.splits, budget.trials, budget.recipes) == (min(3, budget.splits), 1, 0)
    assert beside <= MARGIN * 60 * minutes * 1.2 or is_small
    if beside > 60 * minutes:
        assert "Even this small study" in " ".join(budget.notes)
    assert "erm" in budget.methods
    assert len(budget.epochs) == len(budget.methods)
    assert min(budget.epochs) >= 1


def test_more_time_is_a_larger_study():
    sizes = [choose(max_minutes=minutes) for minutes in (0.5, 1, 2, 5, 10, 30, 100, 1000)]
    work = [own.wall(1) for own in sizes]
    assert work == sorted(work)
    last = sizes[-1]
    assert (last.splits, last.trials, last.recipes) == LADDER[-1][:3]
    assert last.methods == METHODS
    assert set(last.epochs) == {network_epochs(1_200)}


def test_more_workers_do_more_in_the_same_time():
    one, four = (choose(max_minutes=5, jobs=jobs) for jobs in (1, 4))
    assert four.wall(1) > 2 * one.wall(1)


def test_without_a_limit_the_study_does_not_depend_on_the_machine():
    one, two = (choose(paces=slower(times)) for times in (1.0, 7.0))
    assert replace(one, paces={}, notes=()) == replace(two, paces={}, notes=())
    assert (one.splits, one.trials, one.recipes) == (10, 2, 4)
    assert choose(paces={}).epochs == one.epochs


def test_the_time_of_a_study_without_a_limit_is_announced():
    short, long = (choose(paces=slower(times)) for times in (0.1, 100.0))
    assert "That takes about" in short.notes[-1]
    assert "max_minutes" not in short.notes[-1]
    assert "Give max_minutes to have it planned for less" in long.notes[-1]


def test_what_was_asked_for_is_done():
    asked = Asked(("erm", "foma"), trials=7, splits=4, epochs=9, max_minutes=1)
    budget = choose_budget(asked, asked.methods, EXTENT, slower(50.0), fewer=FEWER)
    assert (budget.methods, budget.trials, budget.splits) == (("erm", "foma"), 7, 4)
    assert budget.epochs == (9, 9)


def test_a_single_split_is_repeated_as_often_as_there_is_time():
    assert choose(extent=ONE).splits == REPEATS
    assert choose(extent=ONE, quick=True).splits == 3
    assert choose(extent=ONE, max_minutes=1000).splits == 10
    assert (
        choose(extent=ONE, max_minutes=1000)
        .notes[0]
        .startswith("Plan: 10 repetitions of the one split, with other seeds")
    )
    assert choose(extent=replace(EXTENT, splits=2), max_minutes=1000).splits == 2


def test_methods_are_left_out_before_rows_and_both_are_said():
    some = choose(paces=slower(2.0), max_minutes=2)
    assert some.methods == FEWER
    assert some.rows is None
    assert "There is no time for foma" in " ".join(some.notes)
    few = choose(paces=slower(15.0), max_minutes=2)
    assert few.methods == FEWER
    assert 600 <= few.rows < 2_000
    assert f"looks at {few.rows:,} of the 2,000 rows" in " ".join(few.notes)


def test_methods_that_were_named_are_never_left_out():
    named = choose(methods=METHODS, paces=slower(3.0), max_minutes=2)
    assert named.methods == METHODS


def test_slow_baselines_are_left_out_where_they_would_take_the_time():
    slow = replace(EXTENT, baselines={"mean": 0.0, "ridge": 0.5, "gp": 500.0})
    budget = choose(extent=slow, max_minutes=10)
    assert budget.baselines == ("mean", "ridge")
    assert "gp (baseline)" in " ".join(budget.notes)
    assert choose(extent=slow).baselines == ("mean", "ridge", "gp")


def test_the_same_time_gives_slower_methods_fewer_epochs():
    budget = choose(fair="time", epochs=40)
    assert dict(zip(budget.methods, budget.epochs, strict=True)) == {
        "erm": 40,
        "mixup": 40,
        "foma": 20,
        "cems": 10,
    }
    assert "the same time, slower ones fewer epochs: erm 40" in " ".join(budget.notes)
    same = choose(epochs=40)
    assert set(same.epochs) == {40}
    assert "Every method gets the same number of epochs." in same.notes


@pytest.mark.parametrize(
    ("recipes", "epochs", "rungs", "spent"),
    [
        (0, 20, (), 0),
        (2, 20, (10,), 2 * 10 + 10),
        (4, 20, (5, 10), 4 * 5 + 2 * 5 + 10),
        (6, 20, (5, 10), 6 * 5 + 3 * 5 + 2 * 10),
        (4, 1, (), 4),
        (4, 2, (1,), 4 + 2),
    ],
)
def test_half_of_the_recipes_end_at_every_rung(recipes, epochs, rungs, spent):
    pace = Pace(start=0.0, epoch=1.0, step=0.1)
    budget = Budget(("erm",), (), 1, 1, recipes, (epochs,), paces={"erm": pace})
    assert budget.rungs == rungs
    start = 4.0
    assert budget.wall(1) == pytest.approx(start + spent + epochs)
    runs = [
        Run("p", "erm", 0, 0, Settings(epochs=epochs), n, stage="recipe") for n in range(recipes)
    ]
    assert budget.seconds(runs) == pytest.approx(spent)
    assert budget.trainings == recipes + 1


def test_workers_that_wait_for_the_last_one_are_counted():
    budget = Budget(("erm",), (), 1, 1, 0, (10,), paces={"erm": Pace(0.0, 1.0, 0.1)})
    assert budget.wall(4) >= 10.0


def test_a_budget_goes_through_json():
    budget = choose(max_minutes=3, extent=ONE)
    assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget


@pytest.mark.parametrize("values", [{}, {"paces": 3}, {"methods": ["erm"], "paces": {}}])
def test_what_is_no_budget_is_refused_with_the_way_out(values):
    with pytest.raises(StoreError, match=r"plan of the study cannot be read.*--out"):
        Budget.from_dict(values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"trials": 0}, "`trials` must be at least 1"),
        ({"splits": -1}, "`splits` must be at least 1"),
        ({"fair": "luck"}, "`fair` must be one of 'epochs', 'time', got 'luck'"),
        ({"max_minutes": 0.0}, "`max_minutes` must be greater than 0"),
    ],
)
def test_what_cannot_be_done_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        Asked(**options)


def test_nothing_is_started_that_would_end_too_late():
    budget = Budget(("erm",), (), 3, 1, 0, (10,), paces={"erm": Pace(0.0, 12.0, 0.1)})
    assert budget.latest(20.0) == pytest.approx(1.2 * 20 - 2)  # a training takes two minutes
    assert budget.latest(20.0, spent=3.0) == pytest.approx(1.2 * 20 - 2 - 3)
    assert budget.latest(1.0) == pytest.approx(0.9)


def test_what_was_measured_takes_from_the_time():
    whole, rest = (
        choose_budget(Asked(max_minutes=5), METHODS, EXTENT, PACES, fewer=FEWER, spent=spent)
        for spent in (0.0, 200.0)
    )
    assert rest.wall(1, 10.0) < whole.wall(1, 10.0)
    assert rest.wall(1) <= MARGIN * 100

"""Which runs count: choices by validation, judgment by test, all trials alike."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from regaug.exceptions import StoreError
from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig
from regaug.studies.selection import choose, mean_ranks, select
from regaug.training.settings import Settings

CONFIG = StudyConfig("houses", ("erm", "mixup"), ("mean",), 3, 2, "rmse", 0.25)
# (validation, test) of every trial on every split; no trial is the best on both.
ERRORS = {
    "erm": [[(3.0, 1.0), (2.0, 5.0), (4.0, 0.5)], [(1.0, 7.0), (2.0, 6.0), (3.0, 0.1)]],
    "mixup": [[(9.0, 0.2), (8.0, 0.3), (7.0, 4.0)], [(5.0, 0.1), (4.0, 8.0), (6.0, 0.2)]],
}


def make_record(method, trial, split, validation, test):
    settings = None if trial is None else Settings(batch_size=16 + trial)
    pairs = {"validation": validation, "test": test}
    scores = {
        part: Scores(9, value, value, None, 0, value, value)
        for part, value in pairs.items()
        if value is not None
    }
    run = Run("houses", method, split, 7 * split, settings, trial)
    return RunRecord(run, scores, "finished", 1, 1, 0.5, (6, 2, 2), {})


def make_records(errors=ERRORS):
    records = [
        make_record(method, trial, split, *pair)
        for method, splits in errors.items()
        for split, trials in enumerate(splits)
        for trial, pair in enumerate(trials)
    ]
    return records + [make_record("mean", None, split, 9.0, 9.0) for split in range(2)]


def without(records, **parts):
    return [own for own in records if any(getattr(own.run, name) != v for name, v in parts.items())]


def trials_of(selection):
    return {name: [own.run.trial for own in selection.chosen[name]] for name in ("erm", "mixup")}


def errors_of(selection, name, metric="rmse"):
    return [own.score("test", metric) for own in selection.chosen[name]]


def test_each_split_chooses_by_its_own_validation_error():
    selection = select(CONFIG, make_records())
    assert trials_of(selection) == {"erm": [1, 0], "mixup": [2, 1]}
    assert errors_of(selection, "erm") == [5.0, 7.0]
    assert errors_of(selection, "mixup") == [4.0, 8.0]
    assert errors_of(selection, "mean") == [9.0, 9.0]
    assert selection.trials == 3


def test_test_errors_decide_nothing():
    others = {
        name: [[(validation, 100.0 / test) for validation, test in trials] for trials in splits]
        for name, splits in ERRORS.items()
    }
    selection, other = (select(CONFIG, make_records(errors)) for errors in (ERRORS, others))
    assert trials_of(other) == trials_of(selection)
    assert other.best == selection.best
    assert errors_of(other, "erm") == [100.0 / 5.0, 100.0 / 7.0]


def test_the_order_of_the_records_does_not_matter():
    selection, other = (
        select(CONFIG, records) for records in (make_records(), make_records()[::-1])
    )
    assert trials_of(other) == trials_of(selection)
    assert other.best == selection.best


@pytest.mark.parametrize("metric", ["r2", "pearson"])
def test_a_higher_value_is_chosen_where_higher_is_better(metric):
    selection = select(replace(CONFIG, metric=metric), make_records())
    assert trials_of(selection) == {"erm": [2, 2], "mixup": [0, 2]}
    assert selection.best["mixup"].trial == 0  # the first and the second best; others do worse


@pytest.mark.parametrize("missing", [{"method": "mixup", "trial": 0, "split": 1}, {"trial": 0}])
def test_a_trial_counts_only_if_all_methods_have_finished_it_on_all_splits(missing):
    selection = select(CONFIG, without(make_records(), **missing))
    assert selection.trials == 2
    assert trials_of(selection) == {"erm": [1, 1], "mixup": [2, 1]}
    assert errors_of(selection, "erm") == [5.0, 6.0]


def test_a_study_without_a_whole_trial_says_so():
    records = make_records()
    for trial in range(3):
        records = without(records, method="erm", split=0, trial=trial)
    for few in (records, []):
        with pytest.raises(StoreError, match=r"no setting yet that was tried .* to continue it\."):
            select(CONFIG, few)


def test_a_baseline_that_is_not_finished_is_left_out():
    selection = select(CONFIG, without(make_records(), method="mean", split=1))
    assert selection.chosen.keys() == {"erm", "mixup"}


def test_of_two_fits_of_a_baseline_each_split_chooses_the_better():
    config = replace(CONFIG, baselines=("ridge",))
    pairs = [[(2.0, 5.0), (1.0, 6.0)], [(2.0, 3.0), (4.0, 1.0)]]
    records = [
        make_record("ridge", trial, split, *pair)
        for split, own in enumerate(pairs)
        for trial, pair in enumerate(own)
    ]
    chosen = select(config, make_records() + records).chosen["ridge"]
    assert [own.score("test", "rmse") for own in chosen] == [6.0, 3.0]


def test_a_run_without_a_validation_error_is_not_chosen():
    errors = {**ERRORS, "erm": [[(3.0, 1.0), (None, 0.01), (4.0, 0.5)], ERRORS["erm"][1]]}
    selection = select(CONFIG, make_records(errors))
    assert trials_of(selection)["erm"] == [0, 0]
    assert errors_of(selection, "erm") == [1.0, 7.0]


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_method_whose_runs_have_all_failed_does_not_stop_the_study(value):
    errors = {**ERRORS, "mixup": [[(value, None)] * 3] * 2}
    selection = select(CONFIG, make_records(errors))
    assert errors_of(selection, "mixup") == [None, None]
    assert trials_of(selection)["mixup"] == [0, 0]


def test_the_best_run_is_the_best_over_all_splits_by_rank():
    # By mean error the first split, with its large errors, would decide alone: for trial 1.
    errors = {
        "erm": [
            [(900.0, 1.0), (100.0, 1.0), (950.0, 1.0)],
            [(1.0, 1.0), (3.0, 1.0), (2.0, 1.0)],
            [(1.0, 1.0), (3.0, 1.0), (2.0, 1.0)],
        ]
    }
    config = StudyConfig("houses", ("erm",), (), 3, 3, "rmse", 0.25)
    selection = select(config, make_records(errors))
    assert selection.best["erm"].settings.batch_size == 16
    assert [own.run.trial for own in selection.chosen["erm"]] == [1, 0, 0]


RECIPES = [[3.0, 1.0, 2.0], [2.0, 1.0, 3.0]]


def make_recipes(errors=RECIPES):
    """Records of the first stage: plain training by recipes of other rates."""
    found = []
    for split, own in enumerate(errors):
        for number, error in enumerate(own):
            record = make_record("erm", number, split, error, 50.0 + number)
            settings = Settings(learning_rate=0.1 + number)
            run = replace(record.run, settings=settings, stage="recipe", log=number == 1)
            found.append(replace(record, run=run))
    return found


def test_the_first_stage_is_no_trial_of_plain_training():
    config = replace(CONFIG, recipes=3)
    selection = select(config, [*make_records(), *make_recipes()])
    assert trials_of(selection) == {"erm": [1, 0], "mixup": [2, 1]}
    assert errors_of(selection, "erm") == [5.0, 7.0]
    rates = [[own.run.settings.learning_rate for own in split] for split in selection.recipes]
    assert rates == [[0.1, 1.1, 2.1]] * 2
    tried = {name: [len(split) for split in own] for name, own in selection.tried.items()}
    assert tried == {"erm": [3, 3], "mixup": [3, 3]}


def test_the_best_run_has_the_recipe_that_is_best_over_all_splits():
    selection = select(replace(CONFIG, recipes=3), [*make_records(), *make_recipes()])
    plain = select(CONFIG, make_records())
    for name in ("erm", "mixup"):
        run, own = selection.best[name], plain.best[name]
        assert (run.method, run.trial, run.seed) == (own.method, own.trial, own.seed)
        assert run.settings.learning_rate == 1.1
        assert run.settings.method_settings == own.settings.method_settings
        assert run.log
        assert not own.log


def test_a_study_without_all_its_recipes_says_so():
    config, records = replace(CONFIG, recipes=3), [*make_records(), *make_recipes()[1:]]
    with pytest.raises(StoreError, match="no setting yet"):
        select(config, records)


def test_of_equal_errors_the_first_is_chosen():
    records = [make_record("erm", trial, 0, 1.0, trial) for trial in range(3)]
    assert choose(records, "rmse") is records[0]
    assert choose(records[::-1], "rmse") is records[2]


errors = st.floats(0.0, 9.0) | st.just(math.inf)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(errors, min_size=n, max_size=n), min_size=1, max_size=4)
    )
)
def test_mean_ranks_are_the_mean_of_the_ranks(table):
    places = [rankdata(split) for split in table]
    expected = [sum(column) / len(table) for column in zip(*places, strict=True)]
    assert mean_ranks(table) == pytest.approx(expected)

"""What a study makes of its runs: choices by validation, judgment by test, all trials alike."""

import math

import pytest

from regaug.exceptions import StoreError
from regaug.runs.store import Store, StoredRun, run_key
from regaug.studies.study import Study

CONFIGURATION = {
    "methods": ["erm", "mixup"],
    "baselines": ["mean"],
    "reference": "erm",
    "trials": 3,
    "splits": 2,
    "metric": "rmse",
    "test_share": 0.25,
    "independent": False,
}
# (validation, test) of every trial on every split; no trial is the best on both.
ERRORS = {
    "erm": [[(3.0, 1.0), (2.0, 5.0), (4.0, 0.5)], [(1.0, 7.0), (2.0, 6.0), (3.0, 0.1)]],
    "mixup": [[(9.0, 0.2), (8.0, 0.3), (7.0, 4.0)], [(5.0, 0.1), (4.0, 8.0), (6.0, 0.2)]],
}


def make_run(method, trial, split, validation, test, metric="rmse"):
    run = {"method": method, "split": split, "seed": 0}
    if trial is not None:
        run |= {"trial": trial, "log": False, "settings": {"batch_size": 16 + trial}}
    result = {"scores": {"validation": {metric: validation}, "test": {metric: test}}}
    return StoredRun(run_key(run), run, result)


def make_runs(errors=ERRORS, metric="rmse"):
    runs = [
        make_run(method, trial, split, *pair, metric)
        for method, splits in errors.items()
        for split, trials in enumerate(splits)
        for trial, pair in enumerate(trials)
    ]
    return runs + [make_run("mean", None, split, 9.0, 9.0, metric) for split in range(2)]


def without(runs, **parts):
    return [run for run in runs if any(run.run.get(name) != v for name, v in parts.items())]


def chosen_trials(study):
    return {name: [run.run["trial"] for run in study.chosen[name]] for name in ("erm", "mixup")}


def test_each_split_chooses_by_its_own_validation_error_and_its_test_error_counts():
    study = Study.read(CONFIGURATION, make_runs())
    assert chosen_trials(study) == {"erm": [1, 0], "mixup": [2, 1]}
    assert study.comparison.row("erm").errors == (5.0, 7.0)
    assert study.comparison.row("mixup").errors == (4.0, 8.0)
    assert study.comparison.row("mean").errors == (9.0, 9.0)
    assert study.comparison.row("mean").is_baseline
    assert study.trials == 3


def test_test_errors_decide_nothing():
    others = {
        name: [[(validation, 100.0 / test) for validation, test in trials] for trials in splits]
        for name, splits in ERRORS.items()
    }
    study, other = (Study.read(CONFIGURATION, make_runs(e)) for e in (ERRORS, others))
    assert chosen_trials(other) == chosen_trials(study)
    assert other.settings == study.settings
    assert other.comparison.row("erm").errors == (100.0 / 5.0, 100.0 / 7.0)


def test_the_order_of_the_runs_does_not_matter():
    study, other = (Study.read(CONFIGURATION, r) for r in (make_runs(), make_runs()[::-1]))
    assert other.comparison == study.comparison
    assert other.verdict == study.verdict
    assert other.settings == study.settings


def test_a_higher_value_is_chosen_where_higher_is_better():
    errors = {
        name: [[(v / 10, t / 10) for v, t in trials] for trials in splits]
        for name, splits in ERRORS.items()
    }
    study = Study.read(CONFIGURATION | {"metric": "r2"}, make_runs(errors, "r2"))
    assert chosen_trials(study) == {"erm": [2, 2], "mixup": [0, 2]}
    assert study.comparison.unit == "points"
    assert study.settings["mixup"]["trial"] == 0  # the first and the second best; others do worse


@pytest.mark.parametrize("missing", [{"method": "mixup", "trial": 0, "split": 1}, {"trial": 0}])
def test_a_trial_counts_only_if_all_methods_have_finished_it_on_all_splits(missing):
    study = Study.read(CONFIGURATION, without(make_runs(), **missing))
    assert study.trials == 2
    assert chosen_trials(study) == {"erm": [1, 1], "mixup": [2, 1]}
    assert study.comparison.row("erm").errors == (5.0, 6.0)


def test_a_study_without_a_whole_trial_says_so():
    runs = make_runs()
    for trial in range(3):
        runs = without(runs, method="erm", split=0, trial=trial)
    with pytest.raises(StoreError, match=r"no setting yet that was tried .* to continue it\."):
        Study.read(CONFIGURATION, runs)
    with pytest.raises(StoreError, match="no setting yet"):
        Study.read(CONFIGURATION, [])


def test_a_baseline_that_is_not_finished_is_left_out():
    study = Study.read(CONFIGURATION, without(make_runs(), method="mean", split=1))
    assert [row.name for row in study.comparison.rows] == ["erm", "mixup"]


def with_error(method, trial, split, *pair):
    errors = {name: [list(trials) for trials in splits] for name, splits in ERRORS.items()}
    errors[method][split][trial] = pair
    return make_runs(errors)


def test_a_run_without_a_validation_error_is_not_chosen():
    study = Study.read(CONFIGURATION, with_error("erm", 1, 0, None, 0.01))
    assert chosen_trials(study)["erm"] == [0, 0]
    assert study.comparison.row("erm").errors == (1.0, 7.0)


def test_a_chosen_run_without_a_test_error_has_failed():
    study = Study.read(CONFIGURATION, with_error("mixup", 2, 0, 7.0, None))
    row = study.comparison.row("mixup")
    assert row.errors == (None, 8.0)
    assert (row.n_failed, row.mean) == (1, None)
    assert study.verdict.recommended == "erm"


def test_a_method_whose_runs_have_all_failed_does_not_stop_the_study():
    errors = ERRORS | {"mixup": [[(None, None)] * 3] * 2}
    study = Study.read(CONFIGURATION, make_runs(errors))
    assert study.comparison.row("mixup").n_failed == 2
    assert "Left out" in study.verdict.text or "No augmentation worked" in study.verdict.text


def test_settings_are_the_best_over_all_splits_by_rank():
    # By mean error the first split, with its large errors, would decide alone: for trial 1.
    errors = {
        "erm": [
            [(900.0, 1.0), (100.0, 1.0), (950.0, 1.0)],
            [(1.0, 1.0), (3.0, 1.0), (2.0, 1.0)],
            [(1.0, 1.0), (3.0, 1.0), (2.0, 1.0)],
        ]
    }
    configuration = CONFIGURATION | {"methods": ["erm"], "baselines": [], "splits": 3}
    study = Study.read(configuration, make_runs(errors))
    assert study.settings["erm"]["settings"] == {"batch_size": 16}
    assert [run.run["trial"] for run in study.chosen["erm"]] == [1, 0, 0]


def test_a_study_is_read_from_its_folder(tmp_path):
    store = Store(tmp_path, CONFIGURATION)
    for run in make_runs():
        store.add(run.key, run.run, run.result)
    study, other = Study.open(tmp_path), Study.read(CONFIGURATION, make_runs())
    assert study.comparison == other.comparison
    assert study.verdict == other.verdict


def test_changes_are_those_of_the_chosen_runs():
    study = Study.read(CONFIGURATION, make_runs())
    expected = 100 * math.expm1((math.log(4 / 5) + math.log(8 / 7)) / 2)
    assert study.comparison.row("mixup").change == pytest.approx(expected)

"""The rounds of a study: recipes first, then every method at each split's own best ones."""

from dataclasses import replace

import pytest

from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.studies.config import StudyConfig
from regaug.studies.plan import plan_runs
from regaug.studies.rounds import BEST_RECIPES, best_recipes, plan_rounds
from regaug.studies.search import draw_settings
from regaug.training.settings import Settings

CONFIG = StudyConfig("p", ("erm", "mixup"), ("mean",), 4, 2, "rmse", 0.25, recipes=5)
RECIPES = [Settings(epochs=3, batch_size=10 + number) for number in range(5)]
# Validation errors of the five recipes on two splits.
ERRORS = [[3.0, 1.0, 2.0, 5.0, 4.0], [1.0, 5.0, 4.0, 3.0, None]]


def make_runs(config=CONFIG, *, recipes=RECIPES, may_log=False):
    own = {
        name: [replace(RECIPES[0], method_settings=v) for v in draw_settings(name, 4, seed=0)]
        for name in config.methods
    }
    return plan_runs(config, recipes, own, may_log=may_log)


def make_record(run, errors=ERRORS):
    value = errors[run.split][run.trial] if run.stage == "recipe" else 1.0
    scores = {} if value is None else {"validation": Scores(9, value, 0.0, None, 0, value, None)}
    return RunRecord(run, scores, "finished", 1, 1, 0.0, (6, 2, 2), {})


def do(runs, config=CONFIG, errors=ERRORS):
    """Return the rounds, each done before the next is asked for."""
    found, rounds = {}, []
    for current in plan_rounds(runs, lambda: found, config=config):
        rounds.append(list(current))
        # In another order than they were asked for.
        found.update({run.key: make_record(run, errors) for run in current[::-1]})
    return rounds


def sizes_of(runs, method="mixup", split=0):
    return [run.settings.batch_size for run in runs if (run.method, run.split) == (method, split)]


def test_baselines_and_recipes_come_first_then_all_methods():
    runs = make_runs()
    first, second = do(runs)
    assert first == [run for run in runs if run.stage != "method"]
    assert {run.stage for run in first} == {None, "recipe"}
    assert len(first) + len(second) == len(runs)


def test_each_split_has_its_own_best_recipes_in_turn():
    _, second = do(make_runs())
    for method in CONFIG.methods:
        assert sizes_of(second, method, 0) == [11, 12, 10, 11]
        assert sizes_of(second, method, 1) == [10, 13, 12, 10]


def test_a_run_keeps_all_but_its_recipe():
    runs = make_runs()
    _, second = do(runs)
    planned = [run for run in runs if run.stage == "method"]
    for run, new in zip(planned, second, strict=True):
        assert new == replace(run, settings=new.settings)
        assert new.settings.method_settings == run.settings.method_settings
        assert new.settings.seed == new.seed == run.seed


def test_a_method_fits_the_logarithm_if_the_recipe_does():
    _, second = do(make_runs(may_log=True))
    logs = [run.log for run in second if (run.method, run.split) == ("mixup", 0)]
    assert logs == [True, False, False, True]  # recipes 1, 2, 0, 1


def test_a_higher_value_is_better_where_it_is():
    runs, config = make_runs(), replace(CONFIG, metric="r2")
    found = {run.key: make_record(run) for run in runs}
    best = best_recipes(runs, found, config=config)
    assert [run.trial for run in best[0]] == [3, 4, 0]
    assert len(best[0]) == BEST_RECIPES


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([None, 2.0, 1.0, None, None], [2, 1]),
        ([None] * 5, [0]),
        ([float("nan"), 1.0, float("inf"), None, 1.0], [1, 4]),
    ],
)
def test_recipes_that_failed_are_left_out(errors, expected):
    runs = make_runs()
    found = {run.key: make_record(run, [errors, errors]) for run in runs}
    best = best_recipes(runs, found, config=CONFIG)
    assert [[run.trial for run in own] for own in best] == [expected] * 2


def test_without_recipes_there_is_one_round_and_all_is_as_planned():
    config = replace(CONFIG, recipes=0)
    runs = make_runs(config, recipes=[])
    assert do(runs, config) == [runs]


def test_a_search_that_learns_does_so_after_the_recipes():
    config = replace(CONFIG, search="tpe")
    runs = make_runs(config)
    assert do(runs, config) == do(runs)  # four trials are one round of it
    one = replace(config, recipes=0)
    runs = make_runs(one, recipes=[])
    assert do(runs, one) == [runs[:2], runs[2:]]


# Halving.

RUNGS = replace(CONFIG, rungs=(1, 2), epochs=(3, 3))


def halved(errors=ERRORS):
    return do(make_runs(RUNGS), RUNGS, errors)


def trials_of(runs, split):
    return [run.trial for run in runs if run.stage == "recipe" and run.split == split]


def test_the_better_half_of_every_splits_recipes_goes_on():
    first, second, third, _ = halved()
    for runs, stop in ((first, 1), (second, 2), (third, None)):
        assert {run.settings.stop_after for run in runs} == {stop}
        assert {run.settings.epochs for run in runs} == {3}
    assert [trials_of(runs, 0) for runs in (first, second, third)] == [
        [0, 1, 2, 3, 4],
        [0, 1, 2],
        [1, 2],
    ]
    assert [trials_of(runs, 1) for runs in (first, second, third)] == [
        [0, 1, 2, 3, 4],
        [0, 2, 3],
        [0, 3],
    ]


def test_methods_follow_recipes_that_were_trained_to_the_end_and_do_not_pause():
    *_, last = halved()
    assert sizes_of(last, "erm", 0) == [11, 12, 10, 11]
    runs = [run for run in last if run.stage == "method"]
    assert {run.settings.stop_after for run in runs} == {None}


def test_a_worse_recipe_that_was_trained_further_comes_first():
    runs = make_runs(RUNGS)
    found = {}
    for current in plan_rounds(runs, lambda: found, config=RUNGS):
        for run in current:
            record = make_record(run)
            if run.stage == "recipe" and run.settings.stop_after is None:
                # What seemed good half-way becomes bad at the end.
                record = replace(
                    record, scores={"validation": Scores(9, 50.0, 0, None, 0, 50.0, None)}
                )
            found[run.key] = record
    best = best_recipes(runs, found, config=RUNGS)
    assert [run.trial for run in best[0]] == [1, 2, 0]


def test_no_recipe_that_has_failed_goes_on():
    rounds = halved([[None] * 5, [1.0, None, None, None, None]])
    assert [trials_of(runs, 0) for runs in rounds[1:3]] == [[], []]
    assert [trials_of(runs, 1) for runs in rounds[1:3]] == [[0], [0]]
    assert sizes_of(rounds[-1], "mixup", 0) == [10] * 4  # the first recipe, whatever it is worth


def test_where_nets_take_long_baselines_come_last():
    rounds = halved()
    baselines = [[run for run in runs if run.is_baseline] for runs in rounds]
    assert [len(runs) for runs in baselines] == [0, 0, 0, 2]
    learning = replace(RUNGS, search="tpe", recipes=0)
    assert [run.method for run in do(make_runs(learning, recipes=[]), learning)[-1]] == ["mean"] * 2


def test_a_method_keeps_its_own_number_of_epochs():
    config = replace(RUNGS, fair="time", epochs=(3, 2))
    runs = [
        replace(run, settings=replace(run.settings, epochs=2)) if run.method == "mixup" else run
        for run in make_runs(config)
    ]
    *_, last = do(runs, config)
    lengths = {run.method: run.settings.epochs for run in last if run.settings}
    assert lengths == {"erm": 3, "mixup": 2}

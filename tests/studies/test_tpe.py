"""The search that learns: in rounds, from the seed and the results alone."""

import json
import math

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

from regaug import data, methods
from regaug.cli.main import app
from regaug.exceptions import ArgumentError, StoreError
from regaug.methods import Between
from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.studies.compare import compare
from regaug.studies.config import StudyConfig
from regaug.studies.latest import find_study
from regaug.studies.search import draw_settings
from regaug.studies.tpe import ROUND, learn_rounds, suggest_settings
from regaug.training.settings import Settings

METHODS = methods.names()


def draw(method, trials=ROUND, *, seed=0):
    return draw_settings(method, trials, seed=seed)


def some_errors(trials, splits=3, seed=0):
    return np.random.default_rng(seed).uniform(1, 2, (trials, splits)).tolist()


def runs_of(*names, trials=2 * ROUND, splits=2):
    """Runs of the second stage: each split has a recipe of its own."""
    return [
        Run(
            "sine",
            name,
            split,
            100 * split + number,
            Settings(epochs=3 + split, method_settings=own),
            number,
            stage="method",
        )
        for name in names
        for number, own in enumerate(draw(name, trials))
        for split in range(splits)
    ]


def rounds_of(runs, records):
    config = StudyConfig("sine", ("erm",), (), 2 * ROUND, 2, "rmse", 0.25, search="tpe")
    return learn_rounds(runs, records, config=config)


def records_of(runs, error):
    """Return what a store would: runs with made-up validation errors."""

    def record(run):
        value = error(run)
        scores = {} if value is None else {"validation": Scores(9, value, 0.0, None, 0, None, None)}
        return RunRecord(run, scores, "finished", 1, 1, 0.0, (6, 2, 2), {})

    return {run.key: record(run) for run in runs}


def alpha_error(run):
    return run.settings.method_settings.get("alpha", 0.5) + run.split


def is_inside(choice, value):
    if isinstance(choice, Between):
        return choice.low <= value <= choice.high
    return value in choice.values


@pytest.mark.parametrize("method", METHODS)
def test_defaults_lie_in_the_space(method):
    known = methods.get(method)
    assert all(is_inside(choice, known.defaults[name]) for name, choice in known.space.items())


@pytest.mark.parametrize("method", METHODS)
def test_suggestions_lie_in_the_space(method):
    known = methods.get(method)
    suggested = suggest_settings(method, draw(method), some_errors(ROUND), 4, seed=0)
    assert len(suggested) == 4
    for own in suggested:
        assert own.keys() == known.defaults.keys()
        assert all(is_inside(choice, own[name]) for name, choice in known.space.items())


def test_suggestions_of_a_round_differ_from_each_other():
    suggested = suggest_settings("mixup", draw("mixup"), some_errors(ROUND), ROUND, seed=0)
    assert len({own["alpha"] for own in suggested}) == ROUND


def test_plain_training_has_nothing_to_be_learned():
    defaults = methods.get("erm").defaults
    assert suggest_settings("erm", draw("erm"), some_errors(ROUND), 2, seed=0) == [defaults] * 2


def test_the_same_seed_suggests_the_same_and_another_one_something_else():
    first, again, other = (
        suggest_settings("foma-rho", draw("foma-rho"), some_errors(ROUND), 3, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_a_split_with_large_errors_does_not_decide_alone():
    errors = np.array(some_errors(ROUND))
    scaled = errors * [1, 1000, 1e-6]
    suggested = [
        suggest_settings("mixup", draw("mixup"), e.tolist(), 3, seed=0) for e in (errors, scaled)
    ]
    assert suggested[0] == suggested[1]


@pytest.mark.parametrize(
    "errors", [[[math.inf] * 2] * ROUND, [[1.0, 1.0]] * ROUND, [[math.inf, 1.0]] * ROUND]
)
def test_errors_that_say_nothing_still_give_suggestions(errors):
    assert len(suggest_settings("ada", draw("ada"), errors, 2, seed=0)) == 2


@pytest.mark.parametrize("method", ["mixup", "manifold-mixup"])
def test_it_finds_a_better_setting_than_a_random_search(method):
    def error(own):
        return abs(math.log(own["alpha"] / 0.7))

    gains = []
    for seed in range(10):
        drawn = draw(method, 20, seed=seed)
        learned = drawn[:ROUND]
        while len(learned) < 20:
            errors = [[error(own)] for own in learned]
            learned = learned + suggest_settings(method, learned, errors, ROUND, seed=seed)
        late = [np.mean([error(own) for own in each[ROUND:]]) for each in (drawn, learned)]
        gains.append(late[0] - late[1])
    assert np.mean(gains) > 0
    assert np.mean(np.array(gains) > 0) >= 0.8


def test_the_first_round_is_that_of_the_random_search():
    runs = runs_of("erm", "mixup")
    assert next(rounds_of(runs, dict)) == [run for run in runs if run.trial < ROUND]


def test_later_rounds_change_settings_of_the_method_and_nothing_else():
    runs = runs_of("erm", "mixup", trials=2 * ROUND + 2)
    planned = []

    def records():
        return records_of(planned, alpha_error)

    for current in rounds_of(runs, records):
        planned.extend(current)
    by_place = {(run.method, run.split, run.trial): run for run in planned}
    assert len(planned) == len(by_place) == len(runs)
    for run in runs:
        new = by_place[run.method, run.split, run.trial]
        assert (new.seed, new.stage) == (run.seed, "method")
        assert new.settings.epochs == 3 + run.split  # that of the split's own recipe
        assert (new == run) == (run.method == "erm" or run.trial < ROUND)
    for number in range(2 * ROUND + 2):
        both = [by_place["mixup", split, number].settings.method_settings for split in (0, 1)]
        assert both[0] == both[1]


def second_round(runs, error):
    """Return the settings of the second round by method; records come in reverse order."""
    found = records_of([run for run in runs if run.trial < ROUND][::-1], error)
    _, second = rounds_of(runs, lambda: found)
    names = {run.method for run in second}
    return {
        name: [run.settings.method_settings for run in second if run.method == name]
        for name in names
    }


def test_a_round_depends_on_the_records_of_its_own_method_alone():
    def other_error(run):
        error = alpha_error(run)
        return -error if run.method == "mixup" else error

    runs = runs_of("manifold-mixup", "mixup")
    once, again = (second_round(runs, error) for error in (alpha_error, other_error))
    assert once["manifold-mixup"] == again["manifold-mixup"]
    assert once["mixup"] != again["mixup"]


def test_a_run_without_an_error_counts_as_the_worst():
    def no_error(run):
        return None if run.trial == 1 else alpha_error(run)

    def large_error(run):
        return 1e9 if run.trial == 1 else alpha_error(run)

    runs = runs_of("mixup")
    assert second_round(runs, no_error) == second_round(runs, large_error)


def make_table(patch, shorten):
    shorten(patch, 3)
    patch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    return data.load("synthetic-sine", n=60)


@pytest.fixture
def table(monkeypatch, shorten):
    return make_table(monkeypatch, shorten)


def search(table, out, *, trials=ROUND + 2, **options):
    study = compare(
        table, methods=["erm", "mixup"], trials=trials, splits=2, search="tpe", out=out, **options
    )
    return study.comparison.to_dict(), scores_in(out)


def scores_in(folder):
    records = Store.open(find_study(folder)).records().items()
    return {key: (record.run, record.scores) for key, record in records}


def test_the_configuration_says_which_search_it_is(table, tmp_path):
    search(table, tmp_path, trials=1)
    found = find_study(tmp_path)
    assert Store.open(found).configuration["search"] == "tpe"
    assert found.name == "full-mixup-trials-1-splits-2-tpe"
    other = compare(table, methods=["erm", "mixup"], trials=1, splits=2, out=tmp_path)
    assert other.folder.name == "full-mixup-trials-1-splits-2"


def test_an_unknown_search_is_refused(table):
    with pytest.raises(ArgumentError, match="`search` must be one of 'random', 'tpe'"):
        compare(table, search="grid")


def test_a_search_is_done_in_full(whole):
    _, scores = whole
    assert len(scores) == 2 * (ROUND + 2) * 2 + 2 * (ROUND + 2) * 2 + 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory, shorten):
    """A search that nothing has disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        return search(make_table(patch, shorten), tmp_path_factory.mktemp("search"))


@pytest.mark.parametrize("tasks", [1, 3, 5])
def test_an_interrupted_search_ends_as_one_that_was_not(table, tmp_path, whole, tasks):
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == tasks + 1:  # the first one tells that it begins
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(table, tmp_path, progress=interrupt)
    assert 0 < len(scores_in(tmp_path)) < len(whole[1])
    assert search(table, tmp_path) == whole


def test_no_time_left_in_a_round_starts_no_other_round(table, tmp_path):
    with pytest.raises(StoreError, match="Run the same command again"):
        search(table, tmp_path, max_minutes=1e-9)
    assert scores_in(tmp_path) == {}


def test_the_command_searches_and_knows_what_is_done(monkeypatch, tmp_path, shorten):
    shorten(monkeypatch, 2)
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ())
    options = ["--search", "tpe", "--trials", "6", "--splits", "2", "-m", "erm", "-j", "1"]
    command = ["compare", "diabetes", *options, "--out", str(tmp_path), "--json"]
    first, again = (CliRunner().invoke(app, command) for _ in range(2))
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert first.stdout == again.stdout
    assert json.loads(first.stdout)[0]["configuration"]["search"] == "tpe"
    assert "36 runs;" in first.stderr
    assert "36 runs, all of them done." in again.stderr


@pytest.mark.slow
def test_two_workers_find_the_same_as_one(table, tmp_path, whole):
    assert search(table, tmp_path, jobs=2) == whole


def test_it_leaves_the_users_optuna_as_it_is():
    before = optuna.logging.get_verbosity()
    suggest_settings("mixup", draw("mixup"), some_errors(ROUND), 1, seed=0)
    assert optuna.logging.get_verbosity() == before

"""The settings a study tries: the same for everybody, within their ranges, defaults first."""

import pytest

from regaug import methods
from regaug.methods import Between, OneOf
from regaug.studies.search import COMMON, FIRST, draw_trials
from regaug.training.settings import Settings

EVERY_METHOD = pytest.mark.parametrize("method", methods.names())


def draw(method="foma-rho", trials=12, seed=0, *, may_log=False, **more):
    settings = Settings(**({"epochs": 50, "patience": 5} | more))
    return draw_trials(method, trials, seed=seed, settings=settings, may_log=may_log)


def common(trial):
    return {name: getattr(trial.settings, name) for name in COMMON}


def is_within(choice, value):
    if isinstance(choice, OneOf):
        return value in choice.values
    assert isinstance(choice, Between)
    return choice.low * (1 - 1e-9) <= value <= choice.high * (1 + 1e-9)


@EVERY_METHOD
def test_the_first_trial_has_the_defaults(method):
    first = draw(method, seed=7)[0]
    assert common(first) == FIRST
    assert first.settings.method_settings == methods.get(method).defaults


@EVERY_METHOD
def test_common_settings_of_a_trial_are_those_of_plain_training(method):
    ours, plain = draw(method, trials=20, seed=3), draw("erm", trials=20, seed=3)
    assert [common(trial) for trial in ours] == [common(trial) for trial in plain]
    assert [trial.number for trial in ours] == list(range(20))
    assert {trial.method for trial in ours} == {method}


@EVERY_METHOD
def test_settings_are_within_their_ranges_and_vary(method):
    drawn, known = draw(method, trials=60), methods.get(method)
    for trial in drawn:
        assert all(is_within(choice, common(trial)[name]) for name, choice in COMMON.items())
        own = trial.settings.method_settings
        assert own.keys() == known.defaults.keys()
        assert all(is_within(choice, own[name]) for name, choice in known.space.items())
    assert {trial.settings.batch_size for trial in drawn} == {16, 32, 64}
    assert len({trial.settings.learning_rate for trial in drawn}) == 60
    for name in known.space:
        assert len({trial.settings.method_settings[name] for trial in drawn}) > 1


def test_two_methods_draw_their_own_settings_apart():
    mixup, manifold = draw("mixup"), draw("manifold-mixup")  # of the same space
    pairs = zip(mixup[1:], manifold[1:], strict=True)
    assert all(
        a.settings.method_settings["alpha"] != b.settings.method_settings["alpha"] for a, b in pairs
    )


def test_the_seed_decides():
    assert draw(seed=5) == draw(seed=5)
    pairs = zip(draw(seed=5)[1:], draw(seed=6)[1:], strict=True)
    assert all(a.settings != b.settings for a, b in pairs)


def test_more_trials_leave_the_first_ones_as_they_are():
    assert draw(trials=20)[:5] == draw(trials=5)


def test_every_other_trial_may_fit_the_logarithm():
    assert not any(trial.log for trial in draw())
    assert [trial.log for trial in draw(trials=4, may_log=True)] == [False, True, False, True]
    settings = [trial.settings for trial in draw()]
    assert [trial.settings for trial in draw(may_log=True)] == settings


def test_all_other_settings_are_passed_on():
    own = draw(trials=2, epochs=70, patience=9, metric="mae", schedule="cosine")[1].settings
    assert (own.epochs, own.patience, own.metric, own.schedule) == (70, 9, "mae", "cosine")


def test_good_starts_come_after_the_defaults_and_before_what_is_drawn():
    starts = methods.get("foma").starts
    drawn = draw("foma", 6)
    assert drawn[0].settings.method_settings == methods.get("foma").defaults
    for start, trial in zip(starts, drawn[1:], strict=False):
        assert start.items() <= trial.settings.method_settings.items()
        assert trial.settings.method_settings["p"] == 1.0
    assert all(drawn[-1].settings.method_settings[name] != value for name, value in [("p", 1.0)])

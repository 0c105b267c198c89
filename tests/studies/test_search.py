"""The settings of a method that a study tries: within their ranges, defaults first."""

import pytest

from regaug import methods
from regaug.exceptions import ArgumentError
from regaug.methods import Between, OneOf, Reach
from regaug.studies.search import draw_settings

EVERY_METHOD = pytest.mark.parametrize("method", methods.names())


def is_within(choice, value):
    if isinstance(choice, OneOf):
        return value in choice.values
    assert isinstance(choice, Between)
    return choice.low * (1 - 1e-9) <= value <= choice.high * (1 + 1e-9)


@EVERY_METHOD
def test_the_first_trial_has_the_defaults(method):
    assert draw_settings(method, 3, seed=7)[0] == methods.get(method).defaults


@EVERY_METHOD
def test_settings_are_within_their_ranges_and_vary(method):
    drawn, known = draw_settings(method, 60, seed=0), methods.get(method)
    for own in drawn:
        assert own.keys() == known.defaults.keys()
        assert all(is_within(choice, own[name]) for name, choice in known.space.items())
    for name in known.space:
        assert len({own[name] for own in drawn}) > 1


def test_two_methods_draw_their_own_settings_apart():
    mixup, manifold = (draw_settings(name, 9, seed=0) for name in ("mixup", "manifold-mixup"))
    # Both have the same space.
    pairs = zip(mixup[1:], manifold[1:], strict=True)
    assert all(a["alpha"] != b["alpha"] for a, b in pairs)


def test_the_seed_decides():
    once, again, other = (draw_settings("mixup", 9, seed=seed) for seed in (5, 5, 6))
    assert once == again
    assert all(a != b for a, b in zip(once[1:], other[1:], strict=True))


def test_more_trials_leave_the_first_ones_as_they_are():
    assert draw_settings("cems", 20, seed=0)[:5] == draw_settings("cems", 5, seed=0)


def test_good_starts_come_after_the_defaults_and_before_what_is_drawn():
    starts = methods.get("foma").starts
    drawn = draw_settings("foma", 6, seed=0)
    for start, own in zip(starts, drawn[1:], strict=False):
        assert start.items() <= own.items()
        assert own["p"] == 1.0
    assert drawn[-1]["p"] != 1.0


def test_settings_act_where_there_is_something_to_act_at():
    for reach, place in ((Reach(layers=False), "input"), (Reach(inputs=False), "layer")):
        drawn = draw_settings("foma", 30, seed=0, reach=reach)
        assert {own["place"] for own in drawn} == {place}
    assert draw_settings("foma", 30, seed=0, reach=Reach()) == draw_settings("foma", 30, seed=0)


def test_a_method_that_can_act_nowhere_is_refused():
    with pytest.raises(ArgumentError, match="able to act on the problem, got 'manifold-mixup'"):
        draw_settings("manifold-mixup", 1, seed=0, reach=Reach(layers=False))

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
def test_good_starts_come_first_then_the_defaults_then_what_is_drawn(method):
    known = methods.get(method)
    starts, drawn = known.starts, draw_settings(method, len(known.starts) + 2, seed=7)
    for start, own in zip(starts, drawn, strict=False):
        assert own == {**known.defaults, **start}
    assert drawn[len(starts)] == known.defaults
    assert not known.space or drawn[-1] not in drawn[:-1]


@EVERY_METHOD
def test_no_start_asks_for_more_rows_than_there_are(method):
    known = methods.get(method)
    for own in draw_settings(method, 4, seed=0, rows=3):
        assert all(own[name] <= 3 for name in known.counts)


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
    pairs = zip(mixup[4:], manifold[4:], strict=True)
    assert all(a["alpha"] != b["alpha"] for a, b in pairs)


def test_the_seed_decides():
    once, again, other = (draw_settings("mixup", 9, seed=seed) for seed in (5, 5, 6))
    assert once == again
    assert all(a != b for a, b in zip(once[4:], other[4:], strict=True))


def test_more_trials_leave_the_first_ones_as_they_are():
    assert draw_settings("cems", 20, seed=0)[:5] == draw_settings("cems", 5, seed=0)


def test_settings_act_where_there_is_something_to_act_at():
    for reach, place in ((Reach(layers=False), "input"), (Reach(inputs=False), "layer")):
        drawn = draw_settings("foma", 30, seed=0, reach=reach)
        assert {own["place"] for own in drawn} == {place}
    assert draw_settings("foma", 30, seed=0, reach=Reach()) == draw_settings("foma", 30, seed=0)


def test_a_method_that_can_act_nowhere_is_refused():
    with pytest.raises(ArgumentError, match="able to act on the problem, got 'manifold-mixup'"):
        draw_settings("manifold-mixup", 1, seed=0, reach=Reach(layers=False))

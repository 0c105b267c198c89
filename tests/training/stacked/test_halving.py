"""Successive halving inside a stack."""

from collections import Counter

import pytest

from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold
from regaug.training import Settings, fit_many

SMALL = (16, 16)


@pytest.fixture(scope="module")
def splits():
    roll = make_manifold("swiss-roll", n=120, noise=0.1)
    return [standardize(roll.split(seed)) for seed in range(2)]


def train(splits, epochs=15, halve=False):
    rates = [1e-5, 3e-3, 1e-5, 1e-2]
    settings = [
        Settings(epochs=epochs, learning_rate=rate, seed=split, halve=halve)
        for split in range(len(splits))
        for rate in rates
    ]
    data = [split for split in splits for _ in rates]
    return fit_many(data, "erm", settings, hidden=SMALL, record=())


def test_the_worse_half_of_each_split_ends_at_every_mark(splits):
    results = train(splits, halve=True)
    for split in range(2):
        own = results[4 * split : 4 * split + 4]
        assert [len(result.history) for result in own].count(3) == 2
        assert Counter(result.ending for result in own) == {"behind": 3, "finished": 1}
        assert {len(result.history) for result in own} == {3, 7, 15}
        # A rate of 1e-5 learns next to nothing.
        assert [len(result.history) for result in own][::2] == [3, 3]


def test_those_that_go_on_are_as_if_nobody_had_ended(splits):
    for result, whole in zip(train(splits, halve=True), train(splits), strict=True):
        done = len(result.history)
        expected = pytest.approx([line.validation for line in whole.history[:done]], rel=1e-4)
        assert [line.validation for line in result.history] == expected
        assert whole.ending == "finished"


def test_a_split_with_one_run_is_left_alone(splits):
    settings = [Settings(epochs=15, seed=seed, halve=True) for seed in range(2)]
    results = fit_many(splits, "erm", settings, hidden=SMALL)
    assert [result.ending for result in results] == ["finished"] * 2


def test_runs_that_ended_by_themselves_count(splits):
    settings = [
        Settings(epochs=15, learning_rate=rate, patience=patience, halve=True)
        for rate, patience in ((1e-2, None), (0.5, 1), (1e-5, None))
    ]
    results = fit_many(splits[0], "erm", settings, hidden=SMALL)
    assert results[1].ending == "early"
    assert results[0].ending == "finished"


def test_without_validation_rows_nobody_ends(splits):
    from dataclasses import replace

    bare = replace(splits[0], validation=splits[0].validation.take([]))
    settings = [Settings(epochs=15, learning_rate=rate, halve=True) for rate in (1e-5, 1e-2)]
    results = fit_many(bare, "erm", settings, hidden=SMALL)
    assert [result.ending for result in results] == ["finished"] * 2

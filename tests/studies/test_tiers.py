"""Tiers: rows that cannot be told from the best share its tier."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.metrics import METRICS
from regaug.studies.changes import PairedTest, holm
from regaug.studies.statistics import analyze
from regaug.studies.tiers import find_leaders, find_tiers

ERM = np.array([1.0, 1.2, 0.9, 1.1, 1.0, 1.3])
# Patterns over the splits whose means are zero, and that are at right angles to each other.
FIRST = 0.01 * np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
SECOND = 0.01 * np.array([1.0, 1.0, -1.0, -1.0, 0.0, 0.0])


def times(factor, noise=FIRST):
    return ERM * factor * np.exp(noise)


def tiers_of(errors, baselines=(), **options):
    found = analyze(errors, baselines=baselines, **{"test_share": 0.25, **options})
    return {row.name: row.tier for row in found.rows}


def test_rows_form_tiers_around_the_best_of_what_is_left():
    errors = {"erm": ERM, "ada": times(1.001), "mixup": times(1.3), "foma": times(1.3, SECOND)}
    assert tiers_of({**errors, "mean": times(2.0)}, baselines=["mean"]) == {
        "erm": 1,
        "ada": 1,
        "foma": 2,
        "mixup": 2,
        "mean": 3,
    }


def test_equal_rows_share_a_tier():
    assert tiers_of({"erm": ERM, "ada": ERM, "foma": ERM}) == {"erm": 1, "ada": 1, "foma": 1}


def test_a_row_that_failed_has_no_tier():
    errors = {"erm": ERM, "ada": [*ERM[:5], None]}
    assert tiers_of(errors) == {"erm": 1, "ada": None}
    assert tiers_of({"erm": [None] * 6}) == {"erm": None}


def test_a_single_split_tells_nothing_apart():
    assert tiers_of({"erm": [1.0], "ada": [2.0], "foma": [3.0]}) == {"erm": 1, "ada": 1, "foma": 1}


def test_of_an_agreement_the_highest_is_the_head():
    agreement = 0.5 + FIRST
    errors = {"erm": agreement, "ada": agreement + 0.2 + SECOND, "foma": agreement + 0.201}
    assert tiers_of(errors, metric="r2") == {"foma": 1, "ada": 1, "erm": 2}


def test_a_row_that_varies_much_may_share_the_tier_that_a_steady_better_one_does_not():
    errors = {"erm": ERM, "ada": times(1.1, 0.1 * SECOND), "foma": times(1.2, 20.0 * FIRST)}
    assert tiers_of(errors) == {"erm": 1, "ada": 2, "foma": 1}


def test_a_row_that_is_better_but_for_one_split_with_large_errors_is_not_left_out():
    # The head has the best mean; by the ratios, which are tested, the other one is better.
    scale = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 100.0])
    head = scale * np.exp(SECOND)
    other = head * np.array([0.8, 0.8, 0.8, 0.8, 0.8, 1.05])
    test = PairedTest("rmse", factor=1 / 6, level=0.95)
    assert head.mean() < other.mean()
    change = test.change(other, head)
    assert change.estimate < 0
    assert change.p < 0.05
    assert find_leaders({"head": head, "other": other}, test) == ("head", "other")


def test_the_correction_is_for_the_comparisons_with_the_head():
    rng = np.random.default_rng(0)
    names = ("erm", "a", "b", "c", "d")
    table = dict(zip(names, np.exp(0.05 * rng.standard_normal((5, 8))), strict=True))
    table["d"] *= 1.05
    found = analyze(table, test_share=0.0)
    head, *others = [row.name for row in found.rows]
    corrected = holm({name: found.paired(name, head).p for name in others})
    expected = [head, *(name for name in others if corrected[name] >= 0.05)]
    assert found.leaders(names) == tuple(expected)
    assert [row.name for row in found.rows if row.tier == 1] == expected


def test_leaders_are_those_of_the_named_rows_alone():
    errors = {"erm": ERM, "ada": times(1.3), "foma": times(1.31, SECOND), "cems": [None] * 6}
    found = analyze(errors, test_share=0.25)
    assert found.leaders(["erm", "ada", "foma"]) == ("erm",)
    assert found.leaders(["foma", "ada", "cems"]) == ("ada", "foma")
    assert found.leaders(["cems"]) == found.leaders([]) == ()


def test_there_are_no_tiers_without_rows():
    assert find_tiers({}, PairedTest("rmse", 0.35, 0.95)) == {}


VALUES = st.floats(0.1, 2.0) | st.sampled_from([1.0, 1.0, None])


@given(st.data(), st.integers(1, 6), st.sampled_from(sorted(METRICS)))
def test_tiers_are_numbered_by_their_heads_whatever_came(data, splits, metric):
    column = st.lists(VALUES, min_size=splits, max_size=splits)
    errors = {name: data.draw(column) for name in ("erm", "ada", "foma", "ridge", "auto")}
    options = {"metric": metric, "baselines": ["ridge"], "combined": ["auto"], "test_share": 0.25}
    rows = analyze(errors, **options).rows
    known = [row.tier for row in rows if row.mean is not None]
    firsts = list(dict.fromkeys(known))
    assert firsts == list(range(1, len(firsts) + 1))  # the best mean of what is left is the head
    assert all((row.tier is None) == (row.mean is None) for row in rows)
    mixed = {name: errors[name] for name in data.draw(st.permutations(sorted(errors)))}
    assert analyze(mixed, **options).rows == rows


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_the_best_row_is_in_the_first_tier(luck, errors_of, gap):
    rng = np.random.default_rng(4)
    errors = errors_of(rng, luck(rng, (300, 6, 10)))
    errors[:, 1:] *= 1.0 + gap
    names = ("erm", "a", "b", "c", "d", "e")
    options = {"test_share": 0.25}
    found = [analyze(dict(zip(names, table, strict=True)), **options) for table in errors]
    assert np.mean([each.row("erm").tier == 1 for each in found]) >= 0.96
    # What is a quarter worse is told apart, and not always from everything else.
    errors[:, 5] *= 1.25
    found = [analyze(dict(zip(names, table, strict=True)), **options) for table in errors[:100]]
    assert np.mean([each.row("e").tier == 1 for each in found]) <= 0.05

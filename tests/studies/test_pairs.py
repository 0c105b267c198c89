"""The table of pairs."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.metrics import METRICS
from regaug.studies.changes import holm
from regaug.studies.statistics import analyze

ERRORS = {
    "erm": [1.0, 2.0, 3.0, 4.0],
    "mixup": [1.0, 1.0, 4.0, 3.0],
    "ridge": [0.5, 1.1, 1.4, 2.1],
    "auto": [0.4, 1.0, 1.0, None],
}


def compare(errors=ERRORS, **options):
    options = {"baselines": ["ridge"], "combined": ["auto"], "test_share": 0.25, **options}
    return analyze(errors, **options)


def test_a_pair_has_the_splits_won_with_ties_shared():
    found = compare()
    assert found.pair("mixup", "erm").won == pytest.approx(2.5 / 4)
    assert found.pair("erm", "mixup").won == pytest.approx(1.5 / 4)
    assert found.pair("ridge", "erm").won == 1.0
    assert found.pair("auto", "ridge").won == 0.75  # who failed on a split has lost it
    higher = compare({**ERRORS, "auto": [9.0] * 4}, metric="r2")
    assert higher.pair("auto", "erm").won == 1.0


def test_every_pair_is_there_once_the_better_mean_first():
    found = compare()
    names = [row.name for row in found.rows]
    assert [(pair.name, pair.other) for pair in found.pairs] == list(combinations(names, 2))


def test_the_p_values_are_corrected_for_the_number_of_all_pairs():
    found = compare()
    expected = holm({(pair.name, pair.other): pair.p for pair in found.pairs})
    assert {(pair.name, pair.other): pair.p_holm for pair in found.pairs} == expected
    assert len(expected) == 6  # those with a failed row count
    for pair in found.pairs:
        assert pair.is_significant == (pair.p_holm is not None and pair.p_holm < 0.05)


def test_a_pair_says_what_the_paired_test_says():
    found = compare()
    for name, other in (("mixup", "erm"), ("erm", "ridge"), ("auto", "erm")):
        pair, change = found.pair(name, other), found.paired(name, other)
        own = (pair.change, pair.low, pair.high, pair.p)
        assert own == (change.estimate, change.low, change.high, change.p)


def test_rows_that_are_not_there_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'ridge'"):
        compare().pair("erm", "rigde")
    with pytest.raises(ArgumentError, match="`other` must be another row than `name`, got 'erm'"):
        compare().pair("erm", "erm")


VALUES = st.floats(0.0, 3.0) | st.sampled_from([None, 1.0, math.inf])


@given(st.data(), st.integers(1, 5), st.sampled_from(sorted(METRICS)))
def test_the_two_sides_of_a_pair_agree(data, splits, metric):
    column = st.lists(VALUES, min_size=splits, max_size=splits)
    found = compare({name: data.draw(column) for name in ERRORS}, metric=metric)
    for pair in found.pairs:
        back = found.pair(pair.other, pair.name)
        assert pair.won + back.won == pytest.approx(1.0)
        assert (back.p, back.p_holm, back.is_significant) == (
            pair.p,
            pair.p_holm,
            pair.is_significant,
        )
        if pair.change is not None and metric in ("r2", "pearson"):
            assert back.change == pytest.approx(-pair.change)
        elif pair.change is not None:
            product = (1 + pair.change / 100) * (1 + back.change / 100)
            assert product == pytest.approx(1.0, rel=1e-6)


def test_the_pairs_are_in_the_json():
    found = compare()
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(values["pairs"]) == 6
    assert values["pairs"][0]["name"] == found.pairs[0].name
    assert type(found).from_dict(values) == found
    assert np.isclose(values["pairs"][0]["won"], found.pairs[0].won)

"""Trees as arrays: against a slow descent, and against what cannot be trees."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.exceptions import DataError
from regaug.training.baselines import nodes as module
from regaug.training.baselines.nodes import MOST_DEPTH, Forest

SEEDS = st.integers(0, 10**6)


def make_children(rng, leaves):
    """Return left and right children of a random tree, parents before children, in any order."""
    left, right, free = [-1], [-1], [0]
    for _ in range(leaves - 1):
        node = free.pop(rng.integers(len(free)))
        left[node], right[node] = len(left), len(left) + 1
        free += [left[node], right[node]]
        left += [-1, -1]
        right += [-1, -1]
    return np.array(left), np.array(right)


def make_tree(rng, leaves, columns=3, outputs=2, dtype=np.float64):
    left, right = make_children(rng, leaves)
    n = len(left)
    # Few different numbers, so that inputs are equal to thresholds.
    threshold = rng.integers(-2, 3, n).astype(dtype)
    return left, right, rng.integers(0, columns, n), threshold, rng.standard_normal((n, outputs))


def descend(tree, row):
    left, right, feature, threshold, value = tree
    node = 0
    while left[node] > 0:
        node = left[node] if row[feature[node]] <= threshold[node] else right[node]
    return value[node]


def make_forest(rng, sizes, **options):
    trees = [make_tree(rng, size, **options) for size in sizes]
    return trees, Forest.join([Forest.grown(*tree) for tree in trees])


@given(SEEDS, st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 40))
def test_a_forest_predicts_what_a_descent_finds(seed, sizes, pairs):
    rng = np.random.default_rng(seed)
    trees, forest = make_forest(rng, sizes)
    x = rng.integers(-3, 4, (7, 3)).astype(float)
    before, module._PAIRS = module._PAIRS, pairs  # how many go down together does not matter
    try:
        found = forest.total(np.array([1.0, -1.0]), x)
    finally:
        module._PAIRS = before
    expected = np.tile([1.0, -1.0], (7, 1))
    for tree in trees:
        expected += [descend(tree, row) for row in x]
    assert np.array_equal(found, expected)
    assert len(forest) == len(sizes)


@given(SEEDS, st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_the_first_trees_are_the_first_stages(seed, sizes, data):
    rng = np.random.default_rng(seed)
    _, forest = make_forest(rng, sizes, outputs=1)
    few = data.draw(st.integers(1, len(sizes)))
    x = rng.standard_normal((5, 3))
    stages = [stage.copy() for stage in forest.add_to(np.zeros((5, 1)), x)]
    assert len(forest.first(few)) == few
    assert np.array_equal(forest.first(few).total(np.zeros(1), x), stages[few - 1])


def test_no_rows_are_predicted_as_no_rows():
    _, forest = make_forest(np.random.default_rng(0), [4])
    assert forest.total(np.zeros(2), np.empty((0, 3))).shape == (0, 2)


def test_inputs_are_compared_in_the_dtype_of_the_thresholds():
    tree = (np.array([1, 0, 0]), np.array([2, 0, 0]), np.zeros(3, int))
    value = np.array([0.0, 1.0, 2.0])
    just_above = np.array([[0.1 + 1e-12]])
    for dtype, expected in ((np.float32, 1.0), (np.float64, 2.0)):
        forest = Forest.grown(*tree, np.full(3, 0.1, dtype), value)
        assert forest.total(np.zeros(1), just_above).item() == expected
    # What float32 cannot hold is to the right of everything.
    forest = Forest.grown(*tree, np.full(3, 0.1, np.float32), value)
    assert forest.total(np.zeros(1), np.array([[1e300]])).item() == 2.0


def read(feature, threshold=None, value=None, *, inputs=3, outputs=1):
    feature = torch.tensor(feature, dtype=torch.int32)
    leaves = int((feature < 0).sum())
    if threshold is None:
        threshold = torch.zeros(len(feature) - leaves, dtype=torch.float64)
    if value is None:
        value = torch.arange(float(leaves * outputs), dtype=torch.float64).reshape(leaves, outputs)
    state = {"feature": feature, "threshold": threshold, "value": value}
    return Forest.from_state(state, inputs, outputs, torch.float64)


def test_a_state_comes_back():
    _, forest = make_forest(np.random.default_rng(0), [5, 1, 7])
    back = Forest.from_state(forest.to_state(), 3, 2, torch.float64)
    for name in ("feature", "threshold", "value"):
        assert np.array_equal(getattr(back, name), getattr(forest, name))


@pytest.mark.parametrize(
    ("feature", "trees"),
    [([-1], 1), ([-1, -1], 2), ([0, -1, -1], 1), ([-1, 0, -1, -1], 2), ([0, -1, 0, -1, -1], 1)],
)
def test_nodes_that_are_whole_trees_are_read(feature, trees):
    assert len(read(feature)) == trees


@pytest.mark.parametrize("feature", [[], [0], [0, -1], [0, 0, -1, -1], [-1, 0], [-1, 0, -1]])
def test_nodes_that_are_no_whole_trees_are_refused(feature):
    with pytest.raises(DataError, match="`feature` must be whole trees"):
        read(feature)


@pytest.mark.parametrize("column", [-2, 3, 2**31 - 1, -(2**31)])
def test_columns_that_are_not_there_are_refused(column):
    with pytest.raises(DataError, match="`feature` must be columns from 0 to 2"):
        read([column, -1, -1])


@pytest.mark.parametrize(
    ("threshold", "value", "match"),
    [
        (torch.zeros(2, dtype=torch.float64), None, "`threshold`.*shape"),
        (torch.zeros(1, dtype=torch.float32), None, "`threshold`.*float64"),
        (torch.tensor([torch.inf], dtype=torch.float64), None, "`threshold` must be finite"),
        (None, torch.zeros(2, 2, dtype=torch.float64), "`value`.*shape"),
        (None, torch.zeros(2, dtype=torch.float64), "`value`.*shape"),
        (None, torch.tensor([[0.0], [torch.nan]], dtype=torch.float64), "`value` must be finite"),
    ],
)
def test_numbers_that_do_not_belong_to_the_nodes_are_refused(threshold, value, match):
    with pytest.raises(DataError, match=match):
        read([0, -1, -1], threshold, value)


@pytest.mark.parametrize("step", [[0, -1], [-1, 0]])
def test_trees_that_are_too_deep_are_refused(step):
    # Left leaves all the way down, or all inner nodes first.
    chain = step * (MOST_DEPTH + 1) if step[0] == 0 else [0] * (MOST_DEPTH + 1)
    end = [-1] if step[0] == 0 else [-1] * (MOST_DEPTH + 2)
    with pytest.raises(DataError, match=f"at most {MOST_DEPTH} deep"):
        read([*chain, *end])
    just_right = [*chain[len(step) if step[0] == 0 else 1 :], *(end if step[0] == 0 else end[1:])]
    assert len(read(just_right)) == 1

"""Many decision trees as three arrays, with a predictor that needs nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from regaug.exceptions import DataError
from regaug.training.baselines.stored import check_keys, check_stored, stored_tensor

Array: TypeAlias = NDArray[Any]
# Deeper trees are neither grown nor read: how long a prediction takes has a bound.
MOST_DEPTH = 128
# Pairs of a row and a tree that go down together: few enough for the processor's cache.
_PAIRS = 16_384


@dataclass(frozen=True, eq=False)
class Forest:
    """Decision trees, node after node, each node before its left and its right branch.

    A node sends a row to the left if ``x[feature] <= threshold``. In this order the left child is
    the next node, and where the right one is follows from which nodes are leaves, so that a state
    holds no child that could lead astray.

    Attributes:
        feature: Column that a node looks at, -1 for a leaf, int32, ``(nodes,)``.
        threshold: What the inner nodes compare with, in their order, float32 or float64; inputs
            are compared in its dtype.
        value: What the leaves predict, in their order, ``(leaves, outputs)``, float64.
    """

    feature: Array = field(repr=False)
    threshold: Array = field(repr=False)
    value: Array = field(repr=False)

    @classmethod
    def grown(
        cls, left: Array, right: Array, feature: Array, threshold: Array, value: Array
    ) -> Self:
        """Return one tree from what scikit-learn keeps of each node, in any order, the root first.

        ``left`` and ``right`` are the children, ``left`` at most 0 for a leaf; ``value`` is
        ``(nodes,)`` or ``(nodes, outputs)``.
        """
        is_leaf = left <= 0
        arrays = [is_leaf, feature, threshold, value.reshape(len(value), -1)]
        # As scikit-learn grows them, depth first, the order is right already.
        if not _is_depth_first(left, right):
            order = _depth_first(left.tolist(), right.tolist())
            arrays = [array[order] for array in arrays]
        is_leaf, feature, threshold, value = arrays
        nodes = np.where(is_leaf, -1, feature).astype(np.int32)
        return cls(nodes, threshold[~is_leaf], value[is_leaf])

    @classmethod
    def join(cls, trees: Sequence[Self]) -> Self:
        """Return one forest with the trees of several."""
        names = ("feature", "threshold", "value")
        return cls(*(np.concatenate([getattr(tree, name) for tree in trees]) for name in names))

    def first(self, trees: int) -> Self:
        """Return the first of the trees."""
        nodes = len(self.feature) if trees >= len(self) else int(self._layout.roots[trees])
        leaves = int((self.feature[:nodes] < 0).sum())
        arrays = (self.feature[:nodes], self.threshold[: nodes - leaves], self.value[:leaves])
        return type(self)(*(array.copy() for array in arrays))

    @property
    def outputs(self) -> int:
        """Number of outputs of every leaf."""
        return int(self.value.shape[1])

    def __len__(self) -> int:
        return 2 * len(self.value) - len(self.feature)  # a tree has one more leaf than inner nodes

    def add_to(self, total: Array, x: Array) -> Iterator[Array]:
        """Add the trees' predictions for ``x``, one after the other, and yield after each.

        It is always the same array, ``total`` itself, ``(n, outputs)``. The order of the sum is
        that of scikit-learn, so that the last bit is too.
        """
        with np.errstate(over="ignore"):  # what float32 cannot hold is beyond every threshold
            x = x.astype(self.threshold.dtype)
        for leaves in self._leaves(x):
            for leaf in leaves:
                total += self.value[leaf]
                yield total

    def total(self, start: Array, x: Array) -> Array:
        """Return ``start``, a number per output, plus what all trees predict, ``(n, outputs)``."""
        total = np.tile(start, (len(x), 1))
        for _ in self.add_to(total, x):
            pass
        return total

    def to_state(self) -> dict[str, object]:
        """Return the three arrays as tensors."""
        names = ("feature", "threshold", "value")
        return {name: torch.from_numpy(getattr(self, name)) for name in names}

    @classmethod
    def from_state(cls, state: object, inputs: int, outputs: int, dtype: torch.dtype) -> Self:
        """Return the forest that :meth:`to_state` wrote down, if it can be one."""
        state = check_keys(state, "feature", "threshold", "value")
        feature = stored_tensor(state, "feature", torch.int32, (None,))
        is_column = (feature >= -1) & (feature < inputs)
        check_stored(is_column.all(), "feature", f"be columns from 0 to {inputs - 1}, or -1")
        is_leaf = (feature < 0).numpy()
        check_stored(_are_trees(is_leaf), "feature", "be whole trees, nodes before their branches")
        leaves = int(is_leaf.sum())
        threshold = stored_tensor(state, "threshold", dtype, (len(feature) - leaves,))
        value = stored_tensor(state, "value", torch.float64, (leaves, outputs))
        forest = cls(*(tensor.contiguous().numpy() for tensor in (feature, threshold, value)))
        forest._layout  # noqa: B018  # refuses trees that are too deep
        return forest

    @cached_property
    def _layout(self) -> "_Layout":
        return _Layout.of(self.feature, self.threshold, len(self))

    def _leaves(self, x: Array) -> Iterator[Array]:
        """Yield numbers of the leaves that rows fall into, ``(trees, n)``, by blocks of trees."""
        layout, n = self._layout, len(x)
        if n == 0:
            return
        flat = np.ascontiguousarray(x).reshape(-1)
        block = max(1, _PAIRS // n)
        for first in range(0, len(self), block):
            roots = layout.roots[first : first + block]
            start = np.tile(np.arange(n) * x.shape[1], len(roots))
            nodes = layout.descend(np.repeat(roots, n), start, flat)
            yield layout.leaf.take(nodes).reshape(len(roots), n)


@dataclass(frozen=True, eq=False)
class _Layout:
    """What a descent needs for every node, leaves included."""

    roots: Array
    feature: Array
    threshold: Array
    right: Array
    leaf: Array

    @classmethod
    def of(cls, feature: Array, threshold: Array, trees: int) -> Self:
        is_leaf = feature < 0
        right, roots = _right(is_leaf), _roots(is_leaf, trees)
        _check_depth(is_leaf, right, roots)
        full = np.zeros(len(feature), dtype=threshold.dtype)
        full[~is_leaf] = threshold
        return cls(roots, feature.astype(np.intp), full, right, is_leaf.cumsum() - 1)

    def descend(self, node: Array, start: Array, x: Array) -> Array:
        """Return the leaves below ``node`` that rows end in; a row begins at ``start`` in ``x``."""
        found = np.empty_like(node)
        place = np.arange(len(node))
        while len(node):
            feature = self.feature.take(node)
            inner = np.flatnonzero(feature >= 0)
            if len(inner) < len(node):
                found[place] = node  # those that go on are written again later
                node, feature, start, place = (
                    values.take(inner) for values in (node, feature, start, place)
                )
            is_left = x.take(start + feature) <= self.threshold.take(node)
            node = np.where(is_left, node + 1, self.right.take(node))
        return found


def _height(is_leaf: Array) -> Array:
    """Return how many branches are still to come after each node, less the trees before it."""
    return np.where(is_leaf, -1, 1).cumsum()


def _are_trees(is_leaf: Array) -> bool:
    """Return whether every inner node has two branches."""
    height = _height(is_leaf)
    return len(height) > 0 and height[-1] < 0 and bool((height[:-1] > height[-1]).all())


def _right(is_leaf: Array) -> Array:
    """Return the right child of every inner node, 0 for leaves."""
    n, height = len(is_leaf), _height(is_leaf)
    order = np.argsort(height, kind="stable")
    keys, inner = height[order] * n + order, np.flatnonzero(~is_leaf)
    # The left branch ends with the first later node that is one lower.
    ends = order[np.searchsorted(keys, (height[inner] - 1) * n + inner)]
    right = np.zeros(n, dtype=np.intp)
    right[inner] = ends + 1
    return right


def _roots(is_leaf: Array, trees: int) -> Array:
    """Return the first node of every tree."""
    # A tree ends where the height is lower than ever before.
    lowest = np.minimum.accumulate(_height(is_leaf))
    return np.concatenate([[0], np.searchsorted(-lowest, np.arange(1, trees)) + 1])


def _is_depth_first(left: Array, right: Array) -> bool:
    inner = np.flatnonzero(left > 0)
    if (left[inner] != inner + 1).any() or not _are_trees(left <= 0):
        return False
    return bool((right[inner] == _right(left <= 0)[inner]).all())


def _depth_first(left: Sequence[int], right: Sequence[int]) -> list[int]:
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if left[node] > 0:
            stack += [right[node], left[node]]
    return order


def _check_depth(is_leaf: Array, right: Array, roots: Array) -> None:
    level = roots
    for _ in range(MOST_DEPTH + 1):
        level = level[~is_leaf[level]]
        if not len(level):
            return
        level = np.concatenate([level + 1, right[level]])
    raise DataError(f"`feature` must be trees at most {MOST_DEPTH} deep.")

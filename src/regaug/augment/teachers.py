"""Teachers: regressors that label new rows, fitted without the fold that these are made from."""

import hashlib
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

from regaug import _random
from regaug.augment.numbers import Indices, Values

TeacherName = Literal["boosting", "trees", "gp"]
# Those that are known stay so until they have seen more training rows than these in all: every run
# of a study has the same teachers on the same split.
_MOST_KNOWN = 6_000
# Rows that the kernel of a process is found on; all of them predict.
_KERNEL_ROWS = 200
# Beyond so many a teacher learns from an even part of its rows.
_MOST_ROWS: Mapping[str, int] = {"boosting": 20_000, "trees": 10_000, "gp": 1_000}


@runtime_checkable
class Regressor(Protocol):
    """What fits and predicts as scikit-learn's regressors do."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803 - as there
        """Learn from inputs ``(n, d)`` and one target ``(n,)``."""

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return a prediction for every row, ``(n,)``."""


class Process:
    """A Gaussian process with one length for all columns, for standardized rows.

    Its kernel is the most likely one on at most 200 rows; then all of them predict.
    """

    def fit(self, x: Values, y: Values) -> Self:
        """Find the kernel, and learn from all rows."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor, kernels

        length = math.sqrt(x.shape[1])  # distances of standardized rows grow like this
        smooth = kernels.ConstantKernel(1.0, (1e-3, 1e3)) * kernels.Matern(
            length, (0.05 * length, 100.0 * length), nu=2.5
        )
        kernel = smooth + kernels.WhiteKernel(0.1, (1e-5, 10.0))
        few = _some(len(x), _KERNEL_ROWS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # at an end of its range
            found = GaussianProcessRegressor(kernel).fit(x[few], y[few]).kernel_
        self._model = GaussianProcessRegressor(found, optimizer=None).fit(x, y)
        return self

    def predict(self, x: Values) -> Values:
        """Return the means of all rows."""
        found: Values = self._model.predict(x)
        return found


def _boosting() -> Regressor:
    from sklearn.ensemble import HistGradientBoostingRegressor

    # For few rows: scikit-learn's 20 in a leaf are too many, and there are none to stop by.
    model: Regressor = HistGradientBoostingRegressor(
        max_iter=120,
        learning_rate=0.07,
        min_samples_leaf=2,
        max_leaf_nodes=12,
        max_features=0.5,
        early_stopping=False,
        random_state=_seed(),
    )
    return model


def _trees() -> Regressor:
    from sklearn.ensemble import ExtraTreesRegressor

    # Single rows in the leaves: what a tree knows by heart is of other folds.
    model: Regressor = ExtraTreesRegressor(50, random_state=_seed(), n_jobs=1)
    return model


TEACHERS: Mapping[str, Callable[[], Regressor]] = {
    "boosting": _boosting,
    "trees": _trees,
    "gp": Process,
}


class Taught:
    """A teacher that has learned from rows: standardized columns, a model for each target.

    Args:
        teacher: One of :data:`TEACHERS`, or a regressor, of which copies learn.
        x: Inputs ``(n, d)``, finite.
        y: Targets ``(n, m)``, finite. One that is constant needs no model.

    Example:
        >>> x = np.linspace(0.0, 1.0, 40)[:, None]
        >>> teacher = Taught("gp", x, 3.0 * x)
        >>> teacher(np.array([[0.5]])).round(2).tolist()
        [[1.5]]
    """

    def __init__(self, teacher: str | Regressor, x: Values, y: Values) -> None:
        from sklearn.base import clone

        if isinstance(teacher, str):
            few = _some(len(x), _MOST_ROWS[teacher])
            x, y = x[few], y[few]
        model = TEACHERS[teacher]() if isinstance(teacher, str) else teacher
        (x, *self._x), (y, *self._y) = _standardized(x), _standardized(y)
        self._models: list[Regressor | None] = []
        for column in y.T:
            own = clone(model, safe=False) if column.any() else None
            if own is not None:
                own.fit(x, column)
            self._models.append(own)

    def __call__(self, x: Values) -> Values:
        """Return what it says of rows ``(n, d)``: ``(n, m)``."""
        (mean, std), (y_mean, y_std) = self._x, self._y
        x = (x - mean) / std
        columns = [
            np.zeros(len(x)) if own is None else np.asarray(own.predict(x)).reshape(len(x))
            for own in self._models
        ]
        found: Values = y_mean + y_std * np.stack(columns, axis=1)
        return found


class FoldTeachers:
    """A teacher for every fold of some rows, which has seen the other folds alone.

    Attributes:
        folds: The fold of every row, ``(n,)``. Rows with equal inputs are in one fold.
        teachers: A teacher for every fold; none if all inputs are equal.
    """

    def __init__(self, teacher: str | Regressor, x: Values, y: Values, folds: int) -> None:
        from threadpoolctl import threadpool_limits

        self.folds = deal_folds(x, folds)
        count = int(self.folds.max()) + 1
        others = [self.folds != fold for fold in range(count if count > 1 else 0)]
        # Several threads, beside other work, are far slower; a regressor of the user's has its own.
        with threadpool_limits(limits=1) if isinstance(teacher, str) else nullcontext():
            self.teachers = [Taught(teacher, x[own], y[own]) for own in others]

    @classmethod
    def of(cls, teacher: str | Regressor, x: Values, y: Values, folds: int) -> Self:
        """Fit them, unless teachers of this name have learned from the same rows before."""
        if not isinstance(teacher, str):
            return cls(teacher, x, y, folds)
        digest = hashlib.blake2b(f"{teacher} {folds} {x.shape} {y.shape}".encode())
        for values in (x, y):
            digest.update(np.ascontiguousarray(values).data)
        key = digest.digest()
        found = _KNOWN.pop(key, None) or cls(teacher, x, y, folds)
        _KNOWN[key] = found  # the last one to be forgotten
        while len(_KNOWN) > 1 and sum(len(own.folds) for own in _KNOWN.values()) > _MOST_KNOWN:
            _KNOWN.popitem(last=False)
        assert isinstance(found, cls)
        return found

    def label(self, x: Values) -> Values:
        """Return the targets of new rows ``(n, k, d)``, those of row i by its fold's teacher."""
        labels = np.empty((*x.shape[:2], len(self.teachers[0]._models)))
        for fold, teacher in enumerate(self.teachers):
            own = self.folds == fold
            rows = x[own]
            labels[own] = teacher(rows.reshape(-1, x.shape[2])).reshape(*rows.shape[:2], -1)
        return labels


_KNOWN: OrderedDict[bytes, FoldTeachers] = OrderedDict()


def deal_folds(x: Values, folds: int) -> Indices:
    """Return a fold for every row: equally many different rows in each, equal rows together.

    Example:
        >>> x = np.array([[1.0], [2.0], [1.0], [3.0]])
        >>> folds = deal_folds(x, 2)
        >>> bool(folds[0] == folds[2]), sorted(set(folds.tolist()))
        (True, [0, 1])
    """
    different, number = np.unique(x, axis=0, return_inverse=True)
    rng = _random.numpy_generator(_random.Stream.FOLDS, 0, len(different))
    order: Indices = rng.permutation(len(different)) % min(folds, len(different))
    return order[number.reshape(-1)]


def _standardized(values: Values) -> tuple[Values, Values, Values]:
    """Return columns with mean 0 and deviation 1, constant ones as zeros; and what they had."""
    is_constant = (values == values[0]).all(axis=0)
    mean = np.where(is_constant, values[0], values.mean(axis=0))
    std = values.std(axis=0)
    std = np.where(is_constant | (std == 0.0), 1.0, std)
    return (values - mean) / std, mean, std


def _some(n: int, most: int) -> slice:
    return slice(None, None, -(-n // most))


def _seed() -> int:
    return _random.derive(_random.Stream.BASELINES, 0) >> 30

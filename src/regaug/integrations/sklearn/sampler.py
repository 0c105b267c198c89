"""New rows for any scikit-learn estimator: a step of imbalanced-learn's pipeline, or alone."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import validate_data

from regaug._checks import check_integer, check_range
from regaug.augment.rare_rows import COLUMN
from regaug.data.tabular.columns import Column, fit_column
from regaug.data.tabular.generation import augment_rows, prepare_maker
from regaug.data.tabular.restoration import restore
from regaug.data.tabular.roles import read_relevance
from regaug.data.tabular.texts import Floats
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataError, NonFiniteError
from regaug.integrations.sklearn.containers import open_rows
from regaug.integrations.sklearn.parameters import check_method
from regaug.methods import SMOGN
from regaug.metrics import FOCUSES

_PLAIN = "erm"  # makes no rows
_LARGEST_WHOLE = 2**53  # beyond, a float does not tell whole numbers apart
Columns: TypeAlias = Any  # an array, a series or a frame


class AugmentingSampler(BaseEstimator):  # type: ignore[misc]
    """Put new rows, made by a method, below the rows of a training set.

    For models that cannot be augmented batch by batch: gradient boosting, ridge regression, any
    estimator. As a step of ``imblearn.pipeline.Pipeline`` it acts in ``fit`` only, so that in a
    cross-validation new rows are made from training folds alone, and no prediction sees one.

    The rows are standardized, drawn and augmented in batches as in training, at full strength, and
    scaled back; see :func:`regaug.data.tabular.generation.generate`. In a column of numbers a new
    row has any number within its range; a whole one, or true or false, if the column is of that
    type. Of text, categories, dates and numbers with gaps, in frames only, it has what ``generate``
    makes. Other columns (constants, text that differs in almost every row, levels that are all
    rare, whole numbers from 2^53) keep the value of the row that it starts from.

    Args:
        method: One of ``regaug.methods.names()`` that acts on inputs; ``"erm"`` returns the rows
            as they are. Or ``"smogn"``, which makes rows where targets are rare
            (``method_settings={"focus": "high"}``). Its ``focus`` may be a column of a frame that
            says from 0 to 1 how much each row matters: it is no input, and a new row keeps that of
            the row that it starts from. Leave it out of what the model sees.
        rows: How many new rows: a float is a share of the rows that are there (1.0 doubles
            them), an int a number. 0 adds none.
        method_settings: Settings of the method that differ from its defaults. Those that say when
            to act in training (``p``, ``anneal``, ``append``) have no effect.
        random_state: As everywhere in scikit-learn: an int gives the same rows in every call.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> sampler = AugmentingSampler("c-mixup", rows=0.5, random_state=0)
        >>> X_more, y_more = sampler.fit_resample(X, y)
        >>> X.shape, X_more.shape, y_more.shape
        ((442, 10), (663, 10), (663,))
        >>> bool((X_more[:442] == X).all())
        True
    """

    def __init__(
        self,
        method: str = "foma-rho",
        *,
        rows: float = 1.0,
        method_settings: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.rows = rows
        self.method_settings = method_settings
        self.random_state = random_state

    def fit(self, X: Columns, y: Columns) -> Self:  # noqa: N803
        """Check the rows as :meth:`fit_resample` does, and make none."""
        self._check_parameters()
        self._check(open_rows(X).rows, open_rows(y).rows)
        return self

    def fit_resample(self, X: Columns, y: Columns) -> tuple[Columns, Columns]:  # noqa: N803
        """Return the rows, followed by new ones, with the same names and types.

        Args:
            X: Inputs ``(n, d)``: an array, or a pandas frame, whose index then counts from 0. A
                list, a frame of polars, a table of Arrow or a sparse matrix, which is made dense
                for a while, comes back as such.
            y: Targets ``(n,)`` or ``(n, m)``: an array, a series or a frame of finite numbers, or
                one of these.
        """
        self._check_parameters()
        own_x, own_y = open_rows(X), open_rows(y)
        X, y = self._check(own_x.rows, own_y.rows)  # noqa: N806
        share = self.rows
        rows = int(share) if isinstance(share, Integral) else round(share * len(X))
        if rows == 0 or self.method == _PLAIN:
            return own_x.below(X), own_y.below(y)
        more_x, more_y = self._resample(X, y, rows)
        return own_x.below(more_x), own_y.below(more_y)

    def _check_parameters(self) -> None:
        check_method(self.method, self.method_settings)
        if self.method not in (_PLAIN, SMOGN):
            prepare_maker(self.method, self.method_settings or {})
        if isinstance(self.rows, Integral):
            check_integer("rows", self.rows, 0)
        else:
            check_range("rows", self.rows, 0.0)
        check_random_state(self.random_state)

    def _resample(self, X: Columns, y: Columns, rows: int) -> tuple[Columns, Columns]:  # noqa: N803
        changes, relevances, place = _find_focus(X, self.method, self.method_settings or {})
        inputs, targets = _read(X, place), _read_targets(y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        own_x, own_y = (torch.from_numpy(_encode(parts)) for parts in (inputs, targets))
        blocks = None
        if _is_pandas(X):  # of an array all columns are one part
            sizes = [part.features.shape[1] for part in inputs]
            blocks = np.repeat(np.arange(len(sizes)), sizes).tolist()
        new_x, new_y, sources = augment_rows(
            own_x, own_y, self.method, changes, rows, seed, blocks=blocks, relevances=relevances
        )
        rng = np.random.default_rng(seed)
        return _below(X, inputs, new_x, sources, rng), _below(y, targets, new_y, sources, rng)

    def _check(self, X: Columns, y: Columns) -> tuple[Columns, Columns]:  # noqa: N803
        """Return inputs and targets as arrays, or as they are if they are of pandas."""
        rules = {"ensure_2d": False, "dtype": "numeric"}
        if _is_pandas(X) and X.ndim == 2:
            validate_data(self, X, y, skip_check_array=True)
            values = check_array(y, input_name="y", estimator=self, **rules)
        else:
            X, values = validate_data(self, X, y, validate_separately=({}, rules))  # noqa: N806
        check_consistent_length(X, values)
        return X, y if _is_pandas(y) else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "sampler"
        tags.input_tags.sparse = True
        if (
            sys.modules.get("imblearn") is not None
        ):  # whose own tags say more, and which takes long to import
            tags = _tags_of_imblearn(tags)
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _tags_of_imblearn(tags: Any) -> Any:
    """Return the same tags as imbalanced-learn's, which has some for samplers."""
    from imblearn.utils._tags import InputTags, SamplerTags, Tags

    def values(own: Any) -> dict[str, Any]:
        return {part.name: getattr(own, part.name) for part in fields(own)}

    inputs = InputTags(**values(tags.input_tags), dataframe=True)
    return Tags(**{**values(tags), "input_tags": inputs, "sampler_tags": SamplerTags()})


@dataclass(frozen=True)
class _Part:
    """Some columns: numbers that a method can work on, and the way back from them."""

    own: Columns  # an array, or one series
    features: Floats  # (n, features); without any if no method can work on it
    column: Column | None = None  # what it is encoded as in a table of `regaug.data`, if it is

    @property
    def is_huge(self) -> bool:
        is_whole = self.own.dtype.kind in "iu"
        return is_whole and bool(np.abs(self.features).max() >= _LARGEST_WHOLE)

    def decode(
        self, values: Floats, sources: NDArray[np.int64], rng: np.random.Generator
    ) -> Columns:
        """Return new columns: an array for an array, a series for a series."""
        own, known = self.own, self.features
        if not known.shape[1]:
            return own.iloc[sources]
        if self.column is not None:
            return restore(self.column, _series(self.column.decode(values.T)), own, rng)
        new = np.clip(values, known.min(axis=0), known.max(axis=0))
        new = np.rint(new) if own.dtype.kind in "biu" else new
        if not _is_pandas(own):
            return new.reshape(-1, *own.shape[1:]).astype(own.dtype)
        return _series(new[:, 0]).astype(own.dtype)


def _columns(data: Columns) -> list[Columns]:
    """Return the columns of a frame in their order; a series is one."""
    return [data] if data.ndim == 1 else [data.iloc[:, place] for place in range(data.shape[1])]


def _find_focus(
    data: Columns, method: str, own: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Floats | None, int | None]:
    """Return the settings, and the relevance of every row and its place, if a column says it."""
    focus = own.get("focus")
    if method != SMOGN or focus is None or focus in FOCUSES:
        return own, None, None
    names = [str(name) for name in data.columns] if _is_pandas(data) else []
    if str(focus) not in names:
        has = f"got {focus!r} for {names}" if names else f"got {focus!r} for an array"
        raise ArgumentError(
            f"`focus` must be one of {', '.join(map(repr, FOCUSES))}, or a column of a frame that "
            f"says how much each row matters, {has}."
        )
    place = names.index(str(focus))
    return {**own, "focus": COLUMN}, read_relevance(data.iloc[:, place]), place


def _read(data: Columns, kept: int | None = None) -> list[_Part]:
    """Return the parts of an array, a series or a frame, in their order.

    No method works on the column ``kept``.
    """
    if _is_pandas(data):
        columns = enumerate(_columns(data))
        return [_keep(own) if place == kept else _read_column(own) for place, own in columns]
    part = _read_numbers(data)
    if part.is_huge:
        raise DataError("Whole numbers from 2^53 must be given as floats, which round them.")
    return [part]


def _read_numbers(own: Columns) -> _Part:
    # A series knows how to become numbers, whatever type of pandas or Arrow it has.
    values = own.to_numpy(dtype=np.float64) if _is_pandas(own) else own
    return _Part(own, np.asarray(values, dtype=np.float64).reshape(len(own), -1))


def _keep(series: Columns) -> _Part:
    return _Part(series, np.empty((len(series), 0)))


def _read_column(series: Columns) -> _Part:
    kind, kept = series.dtype.kind, _keep(series)
    if kind == "f" and np.isinf(series.to_numpy(dtype=np.float64, na_value=np.nan)).any():
        raise NonFiniteError(f"Column {series.name!r} must be finite, got infinity.")
    if kind in "biuf" and not series.isna().any():
        part = _read_numbers(series)
        return kept if part.is_huge else part
    column, _ = fit_column(str(series.name), series, np.arange(len(series)))
    if column is None:
        return kept
    out = np.empty((len(column.features), len(series)), dtype=np.float32)
    column.encode(series, out)
    return _Part(series, out.T.astype(np.float64), column)


def _read_targets(y: Columns) -> list[_Part]:
    parts = _read(y)
    for part in parts:
        is_read = part.column is None and part.features.shape[1]
        if not is_read or part.own.dtype.kind not in "iuf":
            kind = getattr(y, "dtype", None) or y.dtypes.tolist()
            raise ArgumentTypeError(f"`y` must hold numbers to predict, got {kind}.")
    return parts


def _encode(parts: Sequence[_Part]) -> Floats:
    features = np.hstack([part.features for part in parts])
    if not features.shape[1]:
        raise DataError(
            "`X` must have a column of numbers, dates or frequent levels, got none. Encode the "
            "columns before this step."
        )
    return features


def _below(
    data: Columns,
    parts: Sequence[_Part],
    values: Floats,
    sources: NDArray[np.int64],
    rng: np.random.Generator,
) -> Columns:
    """Return an array, a series or a frame with the decoded rows below its own."""
    ends = np.cumsum([part.features.shape[1] for part in parts])
    blocks = np.split(values, ends[:-1], axis=1)
    new = [part.decode(block, sources, rng) for part, block in zip(parts, blocks, strict=True)]
    if not _is_pandas(data):
        return np.concatenate([data, new[0]])
    import pandas as pd

    pairs = zip(_columns(data), new, strict=True)
    columns = [pd.concat(pair, ignore_index=True) for pair in pairs]
    if data.ndim == 1:
        return columns[0].rename(data.name)
    frame = pd.concat(columns, axis=1)
    frame.columns = data.columns
    return frame


def _is_pandas(data: Columns) -> bool:
    return hasattr(data, "iloc")


def _series(values: Columns) -> Columns:
    import pandas as pd

    return pd.Series(values)

"""What is known of a study's data: kept beside its runs, so that a report needs nothing else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_range
from regaug._files import read_optional, write_json
from regaug.data.base import Split
from regaug.data.duplicates import as_bytes
from regaug.data.scaling import Scaler
from regaug.dimension import two_nn
from regaug.exceptions import ArgumentError, TooFewPointsError
from regaug.functional.decomposition import rank_at_share

ABOUT = "about.json"
FORMAT = 1
# What a page can show of the singular values and of the TwoNN fit.
MOST_VALUES, MOST_POINTS = 60, 200
# More rows change neither picture, and a study must not wait for them.
MOST_ROWS = 5_000
# A slope of so many times the columns is no dimension.
MOST_TIMES = 10
_WHOLE = ("columns", "targets", "n_used", "n_values", "k")


@dataclass(frozen=True)
class TwoNNFit:
    """The intrinsic dimension of the training rows, and the line it is the slope of.

    Attributes:
        dimension: The slope; None if no finite one fits, as for points on a grid.
        n_dropped: Rows left out because another one lies exactly on them.
        log_mu: First coordinate of the points of the fit, ascending.
        neg_log_survival: Second coordinate of the same points.
    """

    dimension: float | None
    n_dropped: int
    log_mu: tuple[float, ...]
    neg_log_survival: tuple[float, ...]


@dataclass(frozen=True)
class Facts:
    """What is known of the data of a study, as plain values.

    Attributes:
        summary: What was done to the columns, in words.
        rows: Numbers of rows by part: ``"train"``, ``"validation"``, ``"test"``.
        columns: Number of inputs after encoding.
        targets: Number of targets.
        n_used: Training rows that the singular values and the fit were computed from.
        singular_values: The largest ones of the standardized rows [x, y], in descending order.
        n_values: How many there are in all.
        rho: Share of their sum that FOMA_rho keeps.
        k: How many of them make up at most that share.
        share: The share that these make up.
        two_nn: The TwoNN fit; None if there are too few different rows.
        shared_rows: Test rows that stand among the training or validation rows as well, inputs and
            targets alike.
        given: How the user named the data, for commands to copy: ``source``, and for a file
            ``target``, ``group``, ``time``, ``drop``, ``encoding``; empty if that is not known.
        leaks: Inputs that give the target away, a sentence each.
    """

    summary: str
    rows: Mapping[str, int]
    columns: int
    targets: int
    n_used: int
    singular_values: tuple[float, ...]
    n_values: int
    rho: float
    k: int
    share: float
    two_nn: TwoNNFit | None
    shared_rows: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)
    leaks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the facts that :meth:`to_dict` wrote down."""
        try:
            fit = values["two_nn"]
            return cls(
                summary=str(values["summary"]),
                rows={part: int(values["rows"][part]) for part in ("train", "validation", "test")},
                singular_values=_numbers(values["singular_values"]),
                rho=check_range("rho", values["rho"], 0.0, 1.0),
                share=check_range("share", values["share"], 0.0, 1.0),
                two_nn=None if fit is None else _read_fit(**fit),
                shared_rows=int(values.get("shared_rows", 0)),  # earlier files do not say it
                given=_read_given(values["given"]),
                leaks=tuple(map(str, values.get("leaks", ()))),  # nor this
                **{name: int(values[name]) for name in _WHOLE},
            )
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                "`values` must be what Facts.to_dict() returns, got something else: "
                f"{type(error).__name__}: {error}."
            ) from error


def describe(
    split: Split,
    summary: str,
    *,
    given: Mapping[str, Any] | None = None,
    leaks: Sequence[str] = (),
    rho: float = 0.9,
) -> Facts:
    """Find out what a report says of the data.

    Only training rows are looked at, but for counting the test rows that are among the others.
    ``rho`` is the share of the sum of singular values that is marked, in [0, 1].

    Example:
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> facts = describe(make_manifold("sine", n=200).split(), "1 number column")
        >>> facts.rows, facts.n_values, facts.k
        ({'train': 120, 'validation': 40, 'test': 40}, 2, 1)
    """
    rho = check_range("rho", rho, 0.0, 1.0)
    points = _joint_rows(split)
    values = torch.linalg.svdvals(points)
    k, total = int(rank_at_share(values, rho)), float(values.sum())
    return Facts(
        summary=summary,
        rows={name: len(split.parts[name]) for name in ("train", "validation", "test")},
        columns=math.prod(split.train.x.shape[1:]),
        targets=int(split.train.y.shape[1]),
        n_used=len(points),
        singular_values=_short(values[:MOST_VALUES].numpy()),
        n_values=len(values),
        rho=rho,
        k=k,
        share=min(1.0, float(values[:k].sum()) / total) if total > 0 else 0.0,
        two_nn=_fit_two_nn(points),
        shared_rows=_count_shared(split),
        given=_read_given(given or {}),
        leaks=tuple(leaks),
    )


def write_facts(folder: str | Path, facts: Facts) -> Path:
    """Write the facts into the folder of a store; the file is whole or as it was."""
    path = Path(folder, ABOUT)
    # Several processes may start one study at once; the last one's file stays, and all are equal.
    write_json(path, {"format": FORMAT, **facts.to_dict()})
    return path


def read_facts(folder: str | Path) -> Facts | None:
    """Read the facts from the folder of a store; None if it has none."""
    without = (
        "the report leaves out what it says of the data; the command that started the study writes "
        "it again"
    )
    return read_optional(Path(folder, ABOUT), FORMAT, Facts.from_dict, without=without)


def _joint_rows(split: Split) -> Tensor:
    """Return the standardized training rows [x, y], or so many of them that it is quick."""
    train, rows = split.train, torch.arange(len(split.train))
    if len(train) > MOST_ROWS:
        rows = torch.linspace(0, len(train) - 1, MOST_ROWS, dtype=torch.float64).long()
    joint = torch.cat([train.x[rows].flatten(1), train.y[rows]], dim=1).double()
    return Scaler.fit(joint).transform(joint)


def _count_shared(split: Split) -> int:
    """Count the test rows that are equal to a training or validation row in every number."""
    seen = {row for part in (split.train, split.validation) for row in as_bytes(part)}
    return sum(row in seen for row in as_bytes(split.test))


def _fit_two_nn(points: Tensor) -> TwoNNFit | None:
    try:
        fit = two_nn(points)
    except TooFewPointsError:
        return None
    shown = np.unique(np.linspace(0, len(fit.log_mu) - 1, MOST_POINTS).astype(np.int64))
    # On a grid mu is 1, or by rounding a little more, and the slope has no meaning.
    is_one = fit.dimension <= MOST_TIMES * points.shape[1]
    return TwoNNFit(
        dimension=float(fit.dimension) if is_one else None,
        n_dropped=int(fit.n_dropped),
        log_mu=_short(fit.log_mu[shown]),
        neg_log_survival=_short(fit.neg_log_survival[shown]),
    )


def _read_fit(
    dimension: float | None,
    n_dropped: int,
    log_mu: Sequence[float],
    neg_log_survival: Sequence[float],
) -> TwoNNFit:
    if len(log_mu) != len(neg_log_survival):
        raise ValueError("the points of the TwoNN fit have unequally many coordinates")
    slope = None if dimension is None else check_range("dimension", dimension)
    return TwoNNFit(slope, int(n_dropped), _numbers(log_mu), _numbers(neg_log_survival))


def _read_given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known entries that are not empty: texts, and lists of texts."""
    given: dict[str, Any] = {
        name: str(values[name])
        for name in ("source", "group", "time", "encoding")
        if values.get(name)
    }
    for name in ("target", "drop"):
        if value := values.get(name):
            given[name] = [value] if isinstance(value, str) else [str(item) for item in value]
    return given


def _numbers(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(check_range("values", value) for value in values)


def _short(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{value:.5g}") for value in values)

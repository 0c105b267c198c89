"""What is done before the nets of a split learn: find which columns matter, and what a line says.

Both are learned from the training rows alone, take a fraction of a second, and are the same for all
nets of a split. In the end they are folded into the weights, so a trained net is a plain one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from regaug.data.base import Part, Split
from regaug.exceptions import ArgumentTypeError
from regaug.models.mlp import NetForm
from regaug.training.baselines.linear import Linear
from regaug.training.baselines.process import column_lengths
from regaug.training.settings import Settings

# Of the ridge regression, times the number of training rows.
PENALTIES = torch.logspace(-4, 4, 17, dtype=torch.float64)
# A column's factor grows with its relevance to this power, and has these bounds. Of 0.5, 0.7 and 1
# this power was the best on the atlas (``python -m benchmarks.atlas.recipes``).
POWER, LEAST, MOST = 0.7, 0.1, 4.0
# Numbers that are held at a time of what the lines leave (32 MB).
_MOST_LEFT = 2**22
# Of a line that leaves nothing, to have something to divide by.
_SMALLEST_REST = 1e-6


@dataclass(frozen=True, eq=False)
class Groundwork:
    """What the nets of a split find done: they see scaled columns, and learn what a line leaves.

    A net is given ``scale * x`` and learns ``(y - line(x)) / rest``.

    Attributes:
        scale: A factor for each column, ``(d,)``, float64; None for none.
        line: A ridge regression of the inputs as they are; None for none.
        rest: What the line leaves, as a root mean square over all targets.
    """

    scale: Tensor | None = field(default=None, repr=False)
    line: Linear | None = field(default=None, repr=False)
    rest: float = 1.0

    @classmethod
    def of(cls, split: Split, settings: Settings) -> Self:
        """Do what settings ask for; for a split that is known it has been done already."""
        known = _KNOWN.setdefault(split, {})
        wanted = settings.linear, settings.relevance
        if wanted not in known:
            # Of millions of rows no copy in float64 is kept longer than it is looked at.
            x, y = as_rows(split.train), split.train.y.double()
            scale = column_factors(x.double(), y) if settings.relevance else None
            own = cls(scale)
            if settings.linear:
                line = fit_linear(x.double() if scale is None else x.double().mul(scale), y)
                line = line if scale is None else replace(line, slope=line.slope * scale[:, None])
                left = (y - line(x.double())).square().mean().sqrt().item()
                own = cls(scale, line, max(left, _SMALLEST_REST))
            known[wanted] = own
        found = known[wanted]
        assert isinstance(found, cls)
        return found

    def learned(self, x: Tensor, y: Tensor) -> Tensor:
        """Return what a net learns of rows, ``(n, m)``, float64."""
        return y.double() if self.line is None else (y - self.line(x)) / self.rest

    def finish(self, x: Tensor, found: Tensor) -> Tensor:
        """Return predictions ``(n, m)`` of rows from what a net makes of them."""
        return found if self.line is None else (self.line(x) + self.rest * found).to(found)

    def fold(self, weights: Mapping[str, Tensor], form: NetForm) -> dict[str, Tensor]:
        """Return the weights of a net that does all by itself, from those that were learned."""
        found = dict(weights)
        if self.scale is not None:
            scale, first = self.scale, "block_1.linear.weight"
            of_columns = torch.cat([scale, scale.new_ones(found[first].shape[1] - len(scale))])
            found[first] = (found[first] * of_columns).to(found[first])
            if form.periodic:
                own = found["features.frequencies"]
                found["features.frequencies"] = (own * scale[list(form.periodic)]).to(own)
        if self.line is not None:
            found |= {name: self.rest * found[name] for name in ("head.weight", "head.bias")}
            found["skip.weight"] = self.line.slope.T.float()
            found["skip.bias"] = self.line.offset.float()
        return found


# What has been done for splits that are still in use: the runs of a study share them.
_KNOWN: WeakKeyDictionary[Split, dict[tuple[bool, bool], Groundwork]] = WeakKeyDictionary()


def column_factors(x: Tensor, y: Tensor) -> Tensor | None:
    r"""Return a factor for each column of inputs ``(n, d)``, larger for those that matter more.

    A Gaussian process with a length for every column says how far a column must change for the
    target to change. A net learns from few rows to leave a column alone only if that column is
    small: it is multiplied by :math:`\ell^{-0.7}`. The mean square of the factors is one. With
    several targets it is their first principal components that count, each as much as it varies.
    Where nothing can be said, None.
    """
    if x.shape[1] == 1 or len(x) < 3 or not bool((y != y[0]).any()):
        return None
    relevance = x.new_zeros(x.shape[1])
    for share, lengths in column_lengths(x, y):
        squares = lengths.square().reciprocal()
        relevance += share * squares / squares.mean()
    factors = relevance.sqrt().pow(POWER)
    return (factors / factors.square().mean().sqrt()).clamp(LEAST, MOST)


def fit_linear(x: Tensor, y: Tensor) -> Linear:
    r"""Fit it to training rows ``(n, d)`` and ``(n, m)``; leaving one out chooses the penalty.

    No validation rows are needed, as for the baseline: they choose the epoch of the net.

    With the decomposition :math:`X = U S V^\top` of the centered inputs the residual of a row that
    was left out is that of the fit to all rows divided by :math:`1 - h`, where :math:`h` is the
    row's own share in its prediction: one decomposition serves all penalties.
    """
    x, y = x.double(), y.double()
    mean, offset, n = x.mean(dim=0), y.mean(dim=0), len(x)
    x = x - mean  # in its place: there may be millions of rows
    u, s, vt = torch.linalg.svd(x, full_matrices=False)
    del x
    uy = u.T @ (y - offset)
    shrunk = s.square() / (s.square() + n * PENALTIES[:, None])  # (penalties, r)
    squares, errors = u.square().T, []
    for some in shrunk.split(max(1, _MOST_LEFT // y.numel())):
        left = (y - offset) - u @ (some[:, :, None] * uy)  # (penalties, n, m)
        own = some @ squares + 1.0 / n  # the mean is fitted too
        alone = left.div_((1.0 - own).clamp_(min=1e-9).unsqueeze(2))
        errors.append(alone.square_().mean(dim=1))
    # A penalty for each target: columns that one of them needs may harm another.
    best = torch.cat(errors).argmin(dim=0)
    factors = torch.where(s > 0, shrunk[best] / s.clamp(min=1e-300), 0.0).T  # (r, m)
    slope = vt.T @ (factors * uy)
    return Linear(slope, offset - mean @ slope)


def as_rows(part: Part) -> Tensor:
    """Return the inputs of a part as a table, if they are in memory."""
    if not isinstance(part.x, Tensor):
        raise ArgumentTypeError(
            "`data` must have its inputs in memory, as tables do, got a split that reads them when "
            "they are asked for. Train such a model with fit."
        )
    return part.x.flatten(1)

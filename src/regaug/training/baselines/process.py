"""A Gaussian process: smooth functions, with a length for every column."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug.data.scaling import Scaler
from regaug.training.baselines.base import Array, Error, Fitted, Rows, best_of
from regaug.training.baselines.likelihood import BOUNDS, START, Kernel, Posterior, matern
from regaug.training.baselines.stored import check_keys, check_stored, stored_tensor
from regaug.training.predictor import Predictor

# From logarithms of a kernel to what is minimized, and its gradient.
Objective = Callable[[Array], tuple[float, Array]]
# Rows that the kernel is found on; all of them predict.
KERNEL_ROWS = 300
# How far the lengths of the columns may be from their common one: not at all, or about so far.
SPREADS = (0.0, 1.2)
STEPS = 25
# The same where only the lengths are wanted.
LENGTH_ROWS, LENGTH_STEPS = 200, 16
# Of many targets so many principal components have kernels, if they are not too small.
MOST_COMPONENTS, SMALLEST_COMPONENT = 3, 0.05
# Numbers of a covariance that are held at a time (16 MB).
_BLOCK = 2**21


@dataclass(frozen=True, eq=False)
class GaussianProcess(Predictor):
    """Predicts ``matern(x, rows) @ weights + x @ slope + offset``, for each target.

    Attributes:
        rows: Training inputs ``(n, d)``, float64, as all of these.
        lengths: A length for every target and column, ``(m, d)``.
        weights: A weight for every training row and target, ``(n, m)``.
        slope: The linear part, ``(d, m)``.
        offset: ``(m,)``.
    """

    rows: Tensor = field(repr=False)
    lengths: Tensor = field(repr=False)
    weights: Tensor = field(repr=False)
    slope: Tensor = field(repr=False)
    offset: Tensor = field(repr=False)

    @property
    def inputs(self) -> int:
        """Number of columns that it takes."""
        return self.rows.shape[1]

    def _predict(self, x: Tensor) -> Tensor:
        center = self.rows.mean(dim=0)  # of small numbers the distances are precise
        rows, smooth = self.rows - center, []
        for block in torch.split(x - center, max(1, _BLOCK // len(rows))):
            pairs = zip(self.lengths, self.weights.T, strict=True)
            columns = [matern(block, rows, length) @ weights for length, weights in pairs]
            smooth.append(torch.stack(columns, dim=1))
        return torch.cat(smooth) + x @ self.slope + self.offset

    def to_state(self) -> dict[str, object]:
        """Return all of its tensors."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Mapping[str, object], inputs: int, outputs: int) -> Self:
        """Return the process that was written down."""
        check_keys(state, "rows", "lengths", "weights", "slope", "offset")
        rows = stored_tensor(state, "rows", torch.float64, (None, inputs))
        check_stored(len(rows) > 0, "rows", "not be empty")
        lengths = stored_tensor(state, "lengths", torch.float64, (outputs, inputs))
        check_stored((lengths > 0).all(), "lengths", "be positive")
        return cls(
            rows=rows,
            lengths=lengths,
            weights=stored_tensor(state, "weights", torch.float64, (len(rows), outputs)),
            slope=stored_tensor(state, "slope", torch.float64, (inputs, outputs)),
            offset=stored_tensor(state, "offset", torch.float64, (outputs,)),
        )


def fit_process(train: Rows, validation: Rows, *, seed: int, error: Error) -> Fitted:
    """Find kernels for each target, and keep those of the prior that the validation rows choose.

    The kernels are the most likely ones on at most 300 rows; then all rows are used to predict.
    """
    rows = _some_rows(len(train), KERNEL_ROWS, seed=seed)
    x, y = (Scaler.fit(values).transform(values)[rows] for values in (train.x, train.y))
    found = zip(*(find_kernels(x, column) for column in y.T), strict=True)
    processes = [make_process(train, kernels) for kernels in found]
    best, _ = best_of((process(validation.x) for process in processes), error)
    return Fitted(processes[best], {"spread": SPREADS[best]})


def make_process(train: Rows, kernels: Sequence[Kernel]) -> GaussianProcess:
    """Return the process that rows leave, with a kernel of standardized rows for every target."""
    x_scaler, y_scaler = Scaler.fit(train.x), Scaler.fit(train.y)
    x, y = x_scaler.transform(train.x), y_scaler.transform(train.y)
    std, y_std = torch.from_numpy(x_scaler.std), torch.from_numpy(y_scaler.std)
    weights, slope = torch.empty_like(y), x.new_empty(x.shape[1], y.shape[1])
    for target, kernel in enumerate(kernels):
        factor = torch.linalg.cholesky(kernel.covariance(x))
        solved = torch.cholesky_solve(y[:, [target]], factor)[:, 0]
        weights[:, target] = kernel.smooth * solved
        slope[:, target] = kernel.linear / x.shape[1] * (solved @ x)
    slope *= y_std / std[:, None]
    return GaussianProcess(
        rows=train.x,
        lengths=torch.stack([kernel.length for kernel in kernels]) * std,
        weights=weights * y_std,
        slope=slope,
        offset=torch.from_numpy(y_scaler.mean) - torch.from_numpy(x_scaler.mean) @ slope,
    )


def find_kernels(x: Tensor, y: Tensor) -> list[Kernel]:
    """Return the most likely kernel of one standardized target ``(n,)``, for each of the priors.

    First one length for all columns is found; the others start from it.
    """
    columns = x.shape[1]
    usual = 0.5 * math.log(columns)  # distances of standardized rows grow like this
    tied = _tie(Posterior(x, y, center=usual, spread=2.0 * math.sqrt(columns)), columns)
    common = _minimize(tied, np.array([usual, *START]), usual)
    logs = np.concatenate([np.repeat(common[0], columns), common[1:]])
    center = min(max(common[0], usual - 1.0), usual + 2.0)
    return [
        Kernel.of(
            _minimize(Posterior(x, y, center=center, spread=spread), logs, usual)
            if spread > 0 and columns > 1
            else logs
        )
        for spread in SPREADS
    ]


def column_lengths(x: Tensor, y: Tensor) -> Iterator[tuple[float, Tensor]]:
    """Give the lengths ``(d,)`` of the columns of standardized inputs ``(n, d)``.

    They are those of a likely kernel with a length for every column, of each of the first principal
    components of the targets ``(n, m)``, with the share of the variance that it has. Fewer rows and
    steps than for a process are enough to tell columns apart.
    """
    rows, columns = _some_rows(len(x), LENGTH_ROWS, seed=0), x.shape[1]
    usual = 0.5 * math.log(columns)
    start = np.array([*[usual] * columns, *START])
    u, s, _ = torch.linalg.svd(y - y.mean(dim=0), full_matrices=False)
    shares = s.square() / s.square().sum().clamp(min=1e-300)
    for number in range(min(len(s), MOST_COMPONENTS)):
        if shares[number] > SMALLEST_COMPONENT:
            target = Scaler.fit(u[:, [number]]).transform(u[:, [number]])[rows, 0]
            posterior = Posterior(x[rows], target, center=usual + 0.5, spread=SPREADS[-1])
            logs = _minimize(posterior, start, usual, steps=LENGTH_STEPS)
            yield shares[number].item(), Kernel.of(logs).length


def _some_rows(n: int, most: int, *, seed: int) -> NDArray[np.int64]:
    """Return the rows that a kernel is found on."""
    rows = np.arange(n)
    if n > most:
        draw = _random.numpy_generator(_random.Stream.BASELINES, seed)
        rows = np.sort(draw.permutation(rows)[:most])
    return rows


def _tie(posterior: Objective, columns: int) -> Objective:
    """Return what is minimized as a function of one length for all columns, and the variances."""

    def tied(logs: Array) -> tuple[float, Array]:
        value, gradient = posterior(np.concatenate([np.repeat(logs[0], columns), logs[1:]]))
        return value, np.concatenate([[gradient[:columns].sum()], gradient[columns:]])

    return tied


def _minimize(objective: Objective, start: Array, usual: float, *, steps: int = STEPS) -> Array:
    from scipy.optimize import minimize

    lengths = [(-4.0, usual + 9.0)] * (len(start) - len(BOUNDS))
    options = {"maxiter": steps, "maxfun": steps}
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=[*lengths, *BOUNDS], options=options
    )
    logs: Array = found.x
    return logs

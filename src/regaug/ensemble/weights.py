"""How much of each model goes into an ensemble: chosen by predictions of rows held back.

Two rules. :func:`similar_weights` averages models of one kind, nets that differ in recipe or seed:
all of them, the better the more. It knows how few rows there are: with forty of them the
differences of the errors are mostly noise, and it is close to the plain mean.
:func:`blend_weights` mixes a few models of different kinds, whose errors cancel in ways that their
sizes do not show.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug._checks import check_integer
from regaug.exceptions import ArgumentError

# A model that is worse by this share of the squared error, on so many rows, has 1/e of the weight.
_TEMPERATURE = 16.0
# A blend is fitted on so many random halves of the rows, and averaged.
_BAGS = 20
_FEWEST = 8


def similar_weights(predicted: Tensor, target: Tensor) -> Tensor:
    r"""Return weights for models of one kind, better ones more.

    With ``n`` rows a model of mean squared error :math:`e` gets
    :math:`\exp(-n (e / e_{min} - 1) / 16)`, before the weights are made to sum to one. Models with
    a prediction that is not finite get nothing.

    Args:
        predicted: Predictions of the rows held back, ``(models, n, m)``.
        target: What they should be, ``(n, m)``.

    Returns:
        ``(models,)``, float64, not negative, of sum 1.

    Example:
        >>> target = torch.zeros(16, 1)
        >>> similar_weights(torch.stack([target + 1.0, target + 2.0]), target)
        tensor([0.9526, 0.0474], dtype=torch.float64)
    """
    errors, is_finite = _errors(predicted, target)
    squares = errors.square().mean(dim=(1, 2))
    best = squares[is_finite].min()
    excess = torch.where(squares == best, 0.0, squares / best.clamp(min=1e-300) - 1.0)
    weights = (-len(target) / _TEMPERATURE * excess).exp()
    weights = torch.where(is_finite, weights, 0.0)
    return weights / weights.sum()


def blend_weights(predicted: Tensor, target: Tensor, *, seed: int = 0) -> Tensor:
    """Return weights for models of different kinds: the mix with the least squared error.

    The weights are not negative and sum to one. They are found on twenty random halves of the rows
    and averaged, which takes from a lucky model what it has by luck. Models with a prediction that
    is not finite get nothing.

    Args:
        predicted: Predictions of the rows held back, ``(models, n, m)``.
        target: What they should be, ``(n, m)``.
        seed: Decides the halves.

    Returns:
        ``(models,)``, float64, not negative, of sum 1.

    Example:
        >>> target = torch.tensor([[float(i % 5)] for i in range(40)])
        >>> blend_weights(torch.stack([target + 1.0, target - 1.0, target + 9.0]), target)
        tensor([0.5000, 0.5000, 0.0000], dtype=torch.float64)
    """
    errors, is_finite = _errors(predicted, target)
    known, n = torch.nonzero(is_finite).squeeze(1), len(target)
    residuals = errors[known].numpy()
    rng = _random.numpy_generator(_random.Stream.BLEND, check_integer("seed", seed, 0))
    size = min(n, max(_FEWEST, math.ceil(n / 2)))
    found = np.zeros(len(known))
    for _ in range(_BAGS):
        rows = rng.permutation(n)[:size]
        found += _least_squares(residuals[:, rows].reshape(len(known), -1))
    weights = torch.zeros(len(errors), dtype=torch.float64)
    weights[known] = torch.from_numpy(found / found.sum())
    return weights


def _errors(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return errors in standard deviations of each target, and which models are finite."""
    if predicted.ndim != 3 or predicted.shape[1:] != target.shape or not predicted.numel():
        raise ArgumentError(
            "`predicted` must be (models, n, m) for `target` (n, m), got "
            f"{tuple(predicted.shape)} and {tuple(target.shape)}."
        )
    errors = (predicted.double() - target.double()).detach().cpu()
    is_finite = errors.isfinite().all(dim=2).all(dim=1)
    if not is_finite.any():
        raise ArgumentError("`predicted` must have a model whose predictions are finite, got none.")
    spread = target.double().cpu().std(dim=0, correction=0)
    return errors / torch.where(spread > 0, spread, 1.0), is_finite


def _least_squares(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights on the simplex with the least squared error; ``errors``: (models, n)."""
    from scipy.optimize import nnls

    if len(errors) == 1:
        return np.ones(1)
    # On the simplex the error of a mix is the mix of the errors. That the weights sum to one is a
    # row of its own, with a weight that leaves no doubt.
    strong = 1e3 * max(float(np.sqrt(np.square(errors).sum(axis=1).max())), 1e-12)
    system = np.vstack([errors.T, np.full(len(errors), strong)])
    wanted = np.append(np.zeros(errors.shape[1]), strong)
    weights: NDArray[np.float64] = nnls(system, wanted)[0]
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(errors), 1.0 / len(errors))

"""How much of each model goes into an ensemble: chosen by predictions of rows held back.

Two rules. :func:`similar_weights` averages models of one kind, nets that differ in recipe or seed:
all of them, the better the more. It knows how few rows there are: with forty of them the
differences of the errors are mostly noise, and it is close to the plain mean.
:func:`blend_weights` mixes a few models of different kinds, whose errors cancel in ways that their
sizes do not show.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug.exceptions import ArgumentError

# A model that is worse by this share of the squared error, on so many rows, has 1/e of the weight.
_TEMPERATURE = 16.0
# So many rows, with errors like those of the best model, seem to say: equal shares.
_PRIOR_ROWS = 10.0
# Nets stop at the epoch that suits the rows held back, so their errors there are taken for smaller
# than they are, by this share. ``python -m benchmarks.atlas.shares`` shows what both are worth.
_LUCK = 0.1


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


def blend_weights(predicted: Tensor, target: Tensor) -> Tensor:
    """Return weights for models of different kinds: the mix with the least squared error.

    The weights are not negative and sum to one. Where there are few rows they are drawn to equal
    ones, as luck decides there. Models with a prediction that is not finite get nothing.

    Args:
        predicted: Predictions of the rows held back, ``(models, n, m)``.
        target: What they should be, ``(n, m)``.

    Returns:
        ``(models,)``, float64, not negative, of sum 1.

    Example:
        >>> target = torch.tensor([[float(i % 5)] for i in range(40)])
        >>> blend_weights(torch.stack([target + 1.0, target - 1.0]), target)
        tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    errors, is_finite = _errors(predicted, target)
    known = torch.nonzero(is_finite).squeeze(1)
    weights = torch.zeros(len(errors), dtype=torch.float64)
    weights[known] = torch.from_numpy(_least_squares(errors[known].flatten(start_dim=1).numpy()))
    return weights


def without_luck(predicted: Tensor, target: Tensor) -> Tensor:
    """Return predictions of nets with errors as large as on rows that have not stopped them.

    For a blend with models that have not chosen an epoch by these rows.

    Example:
        >>> without_luck(torch.tensor([[2.0]]), torch.tensor([[1.0]]))
        tensor([[2.1000]])
    """
    return target + (1.0 + _LUCK) * (predicted - target)


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

    models = len(errors)
    if models == 1:
        return np.ones(1)
    # On the simplex the error of a mix is the mix of the errors. That the weights sum to one is a
    # row of its own, with a weight that leaves no doubt.
    squares = np.square(errors).mean(axis=1)
    prior = np.sqrt(_PRIOR_ROWS * squares.min()) * (np.eye(models) - 1.0 / models)
    strong = 1e3 * max(float(np.sqrt(errors.shape[1] * squares.max())), 1e-12)
    system = np.vstack([errors.T, prior, np.full(models, strong)])
    wanted = np.append(np.zeros(len(system) - 1), strong)
    weights: NDArray[np.float64] = nnls(system, wanted)[0]
    total = weights.sum()
    return weights / total if total > 0 else np.full(models, 1.0 / models)

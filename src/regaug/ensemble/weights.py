"""How much of each model goes into an ensemble: chosen by predictions of rows held back.

All of them go in, the better the more. The rule knows how few rows there are: with forty of them
the differences of the errors are mostly noise, and it is close to the plain mean. With many it
stays a mean of what is nearly as good, as errors of different models cancel. The mix with the least
squared error has a larger one on other rows: ``python -m benchmarks.atlas.shares``.
"""

import torch
from torch import Tensor

from regaug.exceptions import ArgumentError

# A model that is worse by this share of the squared error, on so many rows, has 1/e of the weight.
_TEMPERATURE = 32.0
# More rows than that say no more about which models to leave out.
_MOST_ROWS = 200


def weigh(predicted: Tensor, target: Tensor) -> Tensor:
    r"""Return weights for models, better ones more.

    With ``n`` rows, or 200 if there are more, a model of mean squared error :math:`e` gets
    :math:`\exp(-n (e / e_{min} - 1) / 32)`, before the weights are made to sum to one. Models with
    a prediction that is not finite get nothing.

    Args:
        predicted: Predictions of the rows held back, ``(models, n, m)``.
        target: What they should be, ``(n, m)``.

    Returns:
        ``(models,)``, float64, not negative, of sum 1.

    Example:
        >>> target = torch.zeros(32, 1)
        >>> weigh(torch.stack([target + 1.0, target + 2.0]), target)
        tensor([0.9526, 0.0474], dtype=torch.float64)
    """
    errors, is_finite = _errors(predicted, target)
    squares = errors.square().mean(dim=(1, 2))
    best = squares[is_finite].min()
    excess = torch.where(squares == best, 0.0, squares / best.clamp(min=1e-300) - 1.0)
    weights = (-min(len(target), _MOST_ROWS) / _TEMPERATURE * excess).exp()
    weights = torch.where(is_finite, weights, 0.0)
    return weights / weights.sum()


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

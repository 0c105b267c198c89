"""What every baseline is fitted to and chosen by, and what comes out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug._checks import check_batch, check_finite
from regaug.exceptions import ArgumentError
from regaug.training.predictor import Predictor

Array: TypeAlias = NDArray[np.float64]
# From predictions (n, m) of the validation rows to a number; the smallest is the best.
Error: TypeAlias = Callable[[Tensor], float]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit on or to choose by, in any scale.

    Attributes:
        x: Inputs ``(n, d)``, finite; becomes float64 on the CPU.
        y: Targets ``(n, m)``, the same.
    """

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        check_batch(self.x, self.y)
        for name in ("x", "y"):
            tensor = getattr(self, name)
            if tensor.ndim != 2:
                must = "(n, d)" if name == "x" else "(n, m)"
                raise ArgumentError(f"`{name}` must be {must}, got shape {tuple(tensor.shape)}.")
            check_finite(**{name: tensor})
            object.__setattr__(self, name, tensor.detach().cpu().double().contiguous())

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A predictor, and what the validation rows chose for it.

    Attributes:
        predictor: What predicts, in the scale of the rows it was fitted on.
        chosen: Plain values by name, such as the penalty; empty if there was no choice.
    """

    predictor: Predictor
    chosen: Mapping[str, float]


def best_of(candidates: Iterable[Tensor], error: Error) -> tuple[int, float]:
    """Return which candidate's predictions have the smallest error, the first of equals, and it."""
    errors = [error(candidate) for candidate in candidates]
    best = int(np.argmin(errors))
    return best, errors[best]


def small_seed(seed: int) -> int:
    """Return a seed of 32 bits, which is what scikit-learn takes."""
    return _random.derive(_random.Stream.BASELINES, seed) >> 30

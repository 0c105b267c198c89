"""What a search may try of a method's settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Between:
    """Any number from ``low`` to ``high``; evenly on a logarithmic scale if ``log``."""

    low: float
    high: float
    log: bool = False

    def draw(self, rng: np.random.Generator) -> float:
        """Draw one."""
        if self.log:
            return float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        return float(rng.uniform(self.low, self.high))


@dataclass(frozen=True)
class OneOf:
    """One of a few values, each as likely."""

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw one."""
        return self.values[int(rng.integers(len(self.values)))]


Space = Mapping[str, Between | OneOf]
Options = Mapping[str, Any]

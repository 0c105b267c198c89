"""Random draws that depend on an explicit seed or generator and on nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def make_generator(seed: int = 0) -> torch.Generator:
    """Return a CPU generator with this seed."""
    return torch.Generator().manual_seed(seed)


def numpy_generator(*entropy: int) -> np.random.Generator:
    """Return a NumPy generator whose stream is its own for every tuple of integers."""
    return np.random.default_rng(entropy)


def uniform(low: float, high: float, generator: torch.Generator) -> float:
    """Draw one number from [low, high)."""
    draw = torch.rand((), generator=generator, device=generator.device, dtype=torch.float64)
    return low + (high - low) * draw.item()


def beta(alpha: float, generator: torch.Generator) -> float:
    """Draw one number from Beta(alpha, alpha).

    ``torch.distributions`` takes no generator. The inverse of the distribution function needs one
    uniform draw, and stays right where ratios of Gamma draws underflow, at small ``alpha``.
    """
    draw = uniform(0.0, 1.0, generator)
    if alpha == 1.0:
        return draw
    from scipy.special import betaincinv

    return float(betaincinv(alpha, alpha, draw))


def integer(high: int, generator: torch.Generator) -> int:
    """Draw one whole number from 0 to ``high`` - 1."""
    return int(torch.randint(high, (), generator=generator, device=generator.device).item())


def derive(*entropy: int) -> int:
    """Return a seed that is its own for every tuple of integers."""
    return int(numpy_generator(*entropy).integers(2**62))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator for a while, for what can draw from no other.

    That is the initial weights of torch's layers, and dropout. Afterwards it is as it was.
    """
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        seed_global(seed)
        yield


def seed_global(seed: int) -> None:
    """Seed torch's global generators; to be used inside of :func:`seeded`."""
    # torch.manual_seed is slow where there is no GPU: it notes who called it, for later.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)

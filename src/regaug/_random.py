"""Random draws that depend on an explicit seed or generator and on nothing else."""

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

    ``torch.distributions`` takes no generator, so the draw is NumPy's (which stays right where the
    underlying Gamma draws underflow, at small ``alpha``), seeded from ``generator``.
    """
    if alpha == 1.0:
        return uniform(0.0, 1.0, generator)
    return float(np.random.default_rng(integer(2**62, generator)).beta(alpha, alpha))


def integer(high: int, generator: torch.Generator) -> int:
    """Draw one whole number from 0 to ``high`` - 1."""
    return int(torch.randint(high, (), generator=generator, device=generator.device).item())

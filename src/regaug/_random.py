"""Random draws that depend on an explicit seed or generator and on nothing else."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import IntEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Values = NDArray[np.float64]
_WORD = 2**32 - 1


class Stream(IntEnum):
    """What is drawn with a seed: for one seed, no two of these have a number in common.

    Results depend on the numbers: a stream keeps its own, and a new one takes the next.
    """

    SPLITS = 1  # seeds of the repeated splits of a study
    SPLIT = 2  # order of rows, or of groups, that a split cuts
    SUBSAMPLE = 3
    EXCERPT = 4  # samples of a large data set that stand for all of it
    CALIBRATION = 5
    FOLDS = 6
    MEMBERS = 7  # seeds of the nets of an ensemble
    RUNS = 8  # seeds of the runs of a study
    RECIPES = 10
    TRIALS = 11
    SEARCH = 12
    BATCHES = 13
    PARTNERS = 14
    AUGMENTATION = 15  # what an augmentation draws, and fits with, before the first epoch
    EPOCHS = 16  # what an augmentation draws in an epoch
    DROPOUT = 17
    LOADERS = 18  # what it draws in the processes of a loader
    CLUSTERS = 19
    POINTS = 20  # points that a dimension is estimated from
    GENERATION = 21
    MANIFOLD = 22
    NOISE = 23
    ANGLES = 24
    IMAGES = 25
    YEARS = 26
    CLIPS = 27
    COLORS = 28
    FIGURES = 29
    BASELINES = 30
    IMPORTANCE = 31


def make_generator(seed: int = 0) -> torch.Generator:
    """Return a CPU generator with this seed."""
    return torch.Generator().manual_seed(seed)


def numpy_generator(stream: Stream, seed: int, *numbers: int) -> np.random.Generator:
    """Return a NumPy generator that is its own for every stream, seed and further numbers.

    The seed is below 2**128; a number, such as an epoch, below 2**32. Their count matters too.
    """
    return np.random.Generator(np.random.PCG64(_sequence(stream, seed, numbers)))


def uniforms(count: int, generator: torch.Generator) -> Tensor:
    """Draw ``count`` numbers from [0, 1): the same ones as one by one.

    Whatever an augmentation draws is made from such numbers, so that they can be drawn ahead.
    """
    return torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)


def uniform(low: float, high: float, generator: torch.Generator) -> float:
    """Draw one number from [low, high)."""
    return low + (high - low) * uniforms(1, generator).item()


def beta(alpha: float, generator: torch.Generator) -> float:
    """Draw one number from Beta(alpha, alpha).

    ``torch.distributions`` takes no generator. The inverse of the distribution function needs one
    uniform draw, and stays right where ratios of Gamma draws underflow, at small ``alpha``.
    """
    draw = uniform(0.0, 1.0, generator)
    return draw if alpha == 1.0 else float(beta_at(np.array(alpha), np.array(draw)))


def beta_at(alpha: Values, uniform: Values) -> Values:
    """Return the draws from Beta(alpha, alpha) that belong to uniform ones."""
    if (alpha == 1.0).all():
        return uniform
    from scipy.special import betaincinv

    return np.where(alpha == 1.0, uniform, betaincinv(alpha, alpha, uniform))


def integer(high: int, generator: torch.Generator) -> int:
    """Draw one whole number from 0 to ``high`` - 1."""
    return int(uniform(0.0, 1.0, generator) * high)


def permutation(n: int, generator: torch.Generator) -> Tensor:
    """Draw an order of ``n`` things, on the generator's device."""
    return uniforms(n, generator).argsort()


def normals(count: int, generator: torch.Generator) -> Tensor:
    """Draw ``count`` numbers from N(0, 1), in float64, on the generator's device."""
    return normals_at(uniforms(count, generator))


def normals_at(uniform: Tensor) -> Tensor:
    """Return the draws from N(0, 1) that belong to uniform ones."""
    # The inverse of the distribution function, which is infinite at 0.
    return torch.erfinv(uniform.clamp(min=2.0**-54).mul_(2.0).sub_(1.0)).mul_(math.sqrt(2.0))


def derive(stream: Stream, seed: int, *numbers: int) -> int:
    """Return a seed, below 2**62, for what :func:`numpy_generator` gives a generator for."""
    return int(_sequence(stream, seed, numbers).generate_state(1, np.uint64)[0]) >> 2


def _sequence(stream: Stream, seed: int, numbers: tuple[int, ...]) -> np.random.SeedSequence:
    """Return ``SeedSequence(seed, spawn_key=(stream, *numbers))``, in half the time."""
    # That is what NumPy mixes: four words of the seed, however small it is, and then the key.
    words = [seed & _WORD, seed >> 32 & _WORD, seed >> 64 & _WORD, seed >> 96, stream, *numbers]
    return np.random.SeedSequence(np.array(words, dtype=np.uint32))


@contextmanager
def plain_defaults() -> Iterator[None]:
    """Let torch make float32 numbers on the CPU for a while, whatever the user's defaults are.

    Initial weights are drawn in the default dtype: in another one the same seed gives others.
    """
    dtype, is_plain = torch.get_default_dtype(), torch.get_default_device().type == "cpu"
    with nullcontext() if is_plain else torch.device("cpu"):
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


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

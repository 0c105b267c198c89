"""Points on manifolds whose dimension is known."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from regaug import _random
from regaug._checks import check_choice, check_integer, check_range
from regaug.data.arrays import ArrayData
from regaug.data.datasets.facts import DATASETS
from regaug.data.scaling import Values
from regaug.exceptions import ArgumentError

PLANE_COLUMNS = 40  # of the inputs of "plane"


class Manifold(ArrayData):
    """Points on a manifold; ``dimension`` is that of the rows ``(x, y)``, before noise."""

    dimension: int


def make_manifold(
    kind: str, n: int = 1000, noise: float = 0.0, seed: int = 0, *, dimension: int | None = None
) -> Manifold:
    """Draw points on a manifold whose dimension is known.

    The target is a coordinate of the space that the manifold lies in, or a smooth function on the
    manifold, so that the rows ``(x, y)`` have the dimension of the manifold.

    Args:
        kind: ``"line"`` (y = x / 2), ``"circle"`` (cosine, sine), ``"sine"`` (y = sin x),
            ``"swiss-roll"`` (three coordinates, the angle), ``"sphere"`` (two coordinates, the
            third), ``"paraboloid"`` (y = the sum of two squares), or ``"plane"`` (a linear subspace
            in 40 columns, a linear target).
        n: Number of points, at least 3.
        noise: Standard deviation of normal noise on every input and target, at least 0. The points
            under it are the same whatever it is.
        seed: Seed of points and noise.
        dimension: Dimension of ``"plane"``, from 1 to 40; 2 if None. The others have their own.

    Example:
        >>> from regaug import two_nn
        >>> roll = make_manifold("swiss-roll", n=2000)
        >>> roll.dimension, roll.x.shape, round(two_nn(roll.x).dimension)
        (2, (2000, 3), 2)
    """
    check_choice("kind", kind, KINDS)
    n = check_integer("n", n, 3, hint="Each part of a split needs a row.")
    noise = check_range("noise", noise, 0.0)
    seed = check_integer("seed", seed, 0)
    # Streams of their own, so that noise moves no point, and neither is related to the split.
    rng = _random.numpy_generator(_random.Stream.MANIFOLD, seed)
    errors = _random.numpy_generator(_random.Stream.NOISE, seed)
    if kind == "plane":
        own = 2 if dimension is None else check_integer("dimension", dimension, 1, PLANE_COLUMNS)
        x, y = _plane(n, rng, own)
    elif dimension is not None:
        raise ArgumentError(f"`dimension` must be None for {kind!r}, got {dimension!r}.")
    else:
        own, draw = _KINDS[kind]
        x, y = draw(n, rng)
    origin = f"{n} points drawn with seed {seed}, noise {noise:g}"
    data = Manifold(
        x + noise * errors.standard_normal(x.shape),
        y + noise * errors.standard_normal(y.shape),
        info=replace(DATASETS[f"synthetic-{kind}"].info, origin=origin),
    )
    data.dimension = own
    return data


Points = tuple[Values, Values]
Draw = Callable[[int, np.random.Generator], Points]


def _swiss_roll(n: int, rng: np.random.Generator) -> Points:
    angle = rng.uniform(1.5 * np.pi, 4.5 * np.pi, (n, 1))
    height = rng.uniform(0.0, 20.0, (n, 1))
    return np.hstack([angle * np.cos(angle), height, angle * np.sin(angle)]), angle


def _sphere(n: int, rng: np.random.Generator) -> Points:
    points = rng.standard_normal((n, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points[:, :2], points[:, 2:]


def _plane(n: int, rng: np.random.Generator, dimension: int) -> Points:
    """Place points of a cube on orthonormal directions, so that distances are kept."""
    directions = np.linalg.qr(rng.standard_normal((PLANE_COLUMNS, dimension)))[0]
    inner = rng.uniform(-1.0, 1.0, (n, dimension))
    return inner @ directions.T, inner.sum(axis=1, keepdims=True) / np.sqrt(dimension)


def _over(
    low: float, high: float, dimension: int, points: Callable[[Values], Points]
) -> tuple[int, Draw]:
    """Return a dimension, and how to draw the points over a cube of it."""
    return dimension, lambda n, rng: points(rng.uniform(low, high, (n, dimension)))


# Name: dimension, and how points are drawn.
_KINDS: dict[str, tuple[int, Draw]] = {
    "line": _over(-1.0, 1.0, 1, lambda x: (x, x / 2)),
    "circle": _over(0.0, 2 * np.pi, 1, lambda angle: (np.cos(angle), np.sin(angle))),
    "sine": _over(-np.pi, np.pi, 1, lambda x: (x, np.sin(x))),
    "swiss-roll": (2, _swiss_roll),
    "sphere": (2, _sphere),
    "paraboloid": _over(-1.0, 1.0, 2, lambda x: (x, np.square(x).sum(axis=1, keepdims=True))),
}
KINDS = (*_KINDS, "plane")

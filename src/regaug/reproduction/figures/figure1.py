"""Figure 1: where four methods put new samples of a curve, and how far from it they are."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regaug import _random
from regaug.augment import CEMS, FOMA, GaussianNoise, Mixup
from regaug.augment.base import AnyAugmentation
from regaug.formatting import count
from regaug.reproduction.figures.base import Figure, Numbers, Plan, compact, spread
from regaug.reproduction.figures.drawing import COLORS, Panels
from regaug.samplers import BatchSampler, NearestBatchSampler, RandomBatchSampler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS, BATCH = 200, 20
HALF = (0.5, 0.5)  # always this factor
NOTE = (
    f"{POINTS} points on one period of the sine, in batches of {BATCH}: random ones, for FOMA "
    "those with the nearest targets. FOMA keeps one direction and scales the other by 0.5, as in "
    "the paper's figure, whose points are not given. Distances to the sine are mean and standard "
    "deviation over {draws} of the points and of the methods; the first is drawn."
)
_COLORS = {
    "Gaussian noise": COLORS["noise"],
    "mixup": COLORS["mixup"],
    "FOMA": COLORS["foma"],
    "FOMA about the mean": COLORS["foma"],
    "CEMS": COLORS["cems"],
}


def measure(plan: Plan) -> tuple[Numbers, str]:
    """Augment points of a sine with every method, which takes seconds."""
    draws = [dict(_augment_all(seed)) for seed in range(plan.seeds)]
    methods: Numbers = {}
    for name, (_, new) in draws[0].items():
        pairs = [draw[name] for draw in draws]
        distances = spread([[_distance(after)] for _, after in pairs])
        steps = spread([[(after - before).norm(dim=1).mean().item()] for before, after in pairs])
        methods[name] = {
            "new": compact(new),
            "distance": distances["mean"][0],
            "distance_sd": distances["sd"][0],
            "step": steps["mean"][0],
        }
    numbers = {"points": compact(_make_points(0)), "methods": methods}
    return numbers, NOTE.format(draws=count(plan.seeds, "draw"))


def paint(axes: Panels, data: Numbers) -> None:
    """Draw the points, and the new samples of every method over them."""
    axis, *others = axes.flat
    _draw_points(axis, data["points"], color="#3d5a98", size=12)
    _set_title(axis, "data", f"{len(data['points'])} points", "#3d5a98")
    for axis, (name, method) in zip(others, data["methods"].items(), strict=True):
        _draw_points(axis, data["points"], color="0.82", size=26)
        axis.scatter(*zip(*method["new"], strict=True), s=8, color=_COLORS[name], zorder=3)
        words = f"off the curve by {method['distance']:.4f} ± {method['distance_sd']:.4f}"
        _set_title(axis, name, words, _COLORS[name])
    for axis in axes[-1]:
        axis.set_xlabel("input x")
    for axis in axes[:, 0]:
        axis.set_ylabel("target y")


def caption(data: Numbers) -> str:
    """Say how far the new samples are from the curve."""
    far = {name: method["distance"] for name, method in data["methods"].items()}
    return (
        "Where new samples of a curve fall. Noise moves points in all directions, mixup draws "
        "them to the middle, FOMA moves a batch toward a line (through the origin, or through its "
        "mean where it is decomposed about that), CEMS follows the curve. Mean distance to the "
        f"curve: noise {far['Gaussian noise']:.3f}, mixup {far['mixup']:.3f}, FOMA "
        f"{far['FOMA']:.3f}, about the mean {far['FOMA about the mean']:.3f}, CEMS "
        f"{far['CEMS']:.4f}."
    )


def _make_points(seed: int) -> Tensor:
    """Return points ``(n, 2)`` on one period of the sine."""
    x = 2 * math.pi * torch.rand(POINTS, generator=_random.make_generator(seed))
    return torch.stack([x, x.sin()], dim=1)


def _augment_all(seed: int) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Yield each method's name with the points and what becomes of them in an epoch."""
    points = _make_points(seed)
    x, y = points[:, :1], points[:, 1]
    at_random = RandomBatchSampler(y, BATCH, seed=seed)
    by_target = NearestBatchSampler(y, BATCH, seed=seed)

    def run(augment: AnyAugmentation, sampler: BatchSampler) -> tuple[Tensor, Tensor]:
        augment.generator.manual_seed(_random.derive(_random.Stream.FIGURES, seed))
        batches = [torch.from_numpy(batch) for batch in sampler.epoch_batches()]
        new = [torch.column_stack(augment(x[batch], y[batch])) for batch in batches]
        return points[torch.cat(batches)], torch.cat(new)

    yield "Gaussian noise", run(GaussianNoise(0.13), at_random)
    yield "mixup", run(Mixup(alpha=1.0), at_random)
    yield "FOMA", run(FOMA(k=1, lam_range=HALF), by_target)
    yield "FOMA about the mean", run(FOMA(k=1, lam_range=HALF, center=True), by_target)
    yield "CEMS", run(CEMS(sigma=0.2, d=1, neighbors=16).fit(x, y), at_random)


def _distance(points: Tensor) -> float:
    """Return the mean distance of points ``(n, 2)`` to the sine."""
    t = torch.linspace(-3, 2 * math.pi + 3, 20_000)
    return torch.cdist(points, torch.stack([t, t.sin()], dim=1)).amin(1).mean().item()


def _draw_points(axis: "Axes", points: list[list[float]], *, color: str, size: float) -> None:
    t = torch.linspace(0, 2 * math.pi, 200)
    axis.plot(t, t.sin(), color="0.8", linewidth=1, zorder=0)
    x, y = zip(*points, strict=True)
    axis.scatter(x, y, s=size, color=color)
    axis.set(aspect="equal", xlim=(-0.6, 6.9), ylim=(-1.5, 1.5), yticks=(-1, 0, 1))


def _set_title(axis: "Axes", name: str, words: str, color: str) -> None:
    axis.set_title(f"{name}\n", color=color)
    axis.text(0.5, 1.03, words, ha="center", transform=axis.transAxes)


FIGURE = Figure("new samples of a curve", measure, paint, caption, (11, 4.7, 2, 3), share=True)

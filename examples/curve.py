"""Where do new samples fall? Four augmentations of points on a sine curve, drawn side by side.

    python examples/curve.py [curve.png]

Each method gets its points in batches, as in training: FOMA those with near targets, the others
random ones. Noise and CEMS are set to move the points about equally far, but noise moves them off
the curve and CEMS along it.
"""

import math
import sys
from typing import Any

import matplotlib
import torch
from torch import Tensor

from regaug import CEMS, FOMA, GaussianNoise, Mixup, NearestBatchSampler, RandomBatchSampler

matplotlib.use("Agg")  # no screen needed
import matplotlib.pyplot as plt

COLORS = {"Gaussian noise": "#d1495b", "mixup": "#e08e1b", "FOMA": "#00798c", "CEMS": "#3d5a98"}


def make_points(n: int = 200) -> tuple[Tensor, Tensor]:
    """Return inputs ``(n, 1)`` and their targets ``(n,)`` on one period of the sine."""
    x = 2 * math.pi * torch.rand(n, 1, generator=torch.Generator().manual_seed(0))
    return x, x[:, 0].sin()


def augment_all(x: Tensor, y: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the points and the new samples ``(n, 2)`` of one epoch of each method."""
    at_random, by_target = RandomBatchSampler(y, 20), NearestBatchSampler(y, 20)
    return {
        "Gaussian noise": run(GaussianNoise(0.13), at_random, x, y),
        "mixup": run(Mixup(alpha=1.0), at_random, x, y),
        "FOMA": run(FOMA(k=1), by_target, x, y),
        "CEMS": run(CEMS(sigma=0.2, d=1, neighbors=16).fit(x, y), at_random, x, y),
    }


def run(augment: Any, sampler: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the points and what becomes of them, as joint rows."""
    old, new = [], []
    for batch in sampler:
        old.append(torch.column_stack([x[batch], y[batch]]))
        new.append(torch.column_stack(augment(x[batch], y[batch])))
    return torch.cat(old), torch.cat(new)


def mean_distance(points: Tensor) -> float:
    """Return the mean distance of points ``(n, 2)`` to the sine curve."""
    t = torch.linspace(-2, 2 * math.pi + 2, 20_000)
    return torch.cdist(points, torch.stack([t, t.sin()], dim=1)).amin(1).mean().item()


def draw(axis: Any, name: str, old: Tensor, new: Tensor, distance: float) -> None:
    """Draw one method: the curve and the points light, the new samples colored."""
    t = torch.linspace(-0.4, 2 * math.pi + 0.4, 300)
    axis.plot(t, t.sin(), color="0.8", linewidth=1, zorder=0)
    axis.scatter(*old.T, s=30, color="0.82", label="original")
    axis.scatter(*new.T, s=9, color=COLORS[name], label="new")
    axis.set_title(name, fontweight="bold", color=COLORS[name], pad=24)
    subtitle = f"mean distance to the curve {distance:.4f}"
    axis.text(0.5, 1.06, subtitle, ha="center", transform=axis.transAxes)
    axis.set(aspect="equal", xlim=(-0.5, 6.8), ylim=(-1.4, 1.4), yticks=(-1, 0, 1))
    axis.legend(loc="upper right", frameon=False)
    axis.spines[["top", "right"]].set_visible(False)


def main(path: str) -> None:
    """Print the four distances and save the picture."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 6), sharex=True, sharey=True)
    results = augment_all(*make_points())
    for axis, (name, (old, new)) in zip(axes.flat, results.items(), strict=True):
        distance, step = mean_distance(new), (new - old).norm(dim=1).mean().item()
        print(f"{name:15} mean distance to the curve {distance:.4f}, mean step {step:.3f}")
        draw(axis, name, old, new, distance)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    print(f"saved {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "curve.png")

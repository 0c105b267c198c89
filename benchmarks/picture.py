"""The picture of the README: one noisy curve, and the samples that four methods make of it.

    python -m benchmarks.picture      # writes docs/figures/new_samples.svg

Every method has its defaults and acts on every batch of one epoch. The colors are those that can be
read on a light page and on a dark one.
"""

from pathlib import Path

import torch
from torch import Tensor

from regaug import methods

FILE = Path(__file__).parents[1] / "docs" / "figures" / "new_samples.svg"
SHOWN = {"mixup": "mixup", "c-mixup": "C-Mixup", "foma": "FOMA", "cems": "CEMS"}
SAMPLES, BATCH = 160, 32
# Pixels of a panel, and of what is left around its points.
WIDTH, HEIGHT, MARGIN, TITLE = 216, 170, 12, 26
# The values that a panel shows, in standard deviations.
RANGE = 2.1
OLD, NEW, TEXT = "#8c8c8c", "#d9603b", "#808080"


def make_curve() -> tuple[Tensor, Tensor]:
    """Return inputs and targets of a noisy wave, both standardized."""
    generator = torch.Generator().manual_seed(3)
    x = torch.empty(SAMPLES, 1).uniform_(-3.0, 3.0, generator=generator)
    y = torch.sin(1.3 * x) + 0.12 * torch.randn(x.shape, generator=generator)
    return (x - x.mean()) / x.std(), (y - y.mean()) / y.std()


def new_samples(name: str, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a method makes of one epoch."""
    ready = methods.get(name).prepare({"p": 1.0, "anneal": None}).fit(x, y)
    batches = [ready.augmentation(x[rows], y[rows]) for rows in ready.sampler(y, BATCH)]
    new_x, new_y = zip(*batches, strict=True)
    return torch.cat(new_x), torch.cat(new_y)


def draw() -> str:
    """Return the picture as SVG."""
    x, y = make_curve()
    width, height = WIDTH * len(SHOWN), TITLE + HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="t"><title id="t">New samples of four methods beside the samples of a '
        "noisy curve</title>",
        '<g font-family="sans-serif" font-size="15" text-anchor="middle">',
    ]
    for place, (name, title) in enumerate(SHOWN.items()):
        left = place * WIDTH
        parts.append(f'<text x="{left + WIDTH / 2:g}" y="17" fill="{TEXT}">{title}</text>')
        parts.append(_points(x, y, left, color=OLD, radius=1.6))
        parts.append(_points(*new_samples(name, x, y), left, color=NEW, radius=2.0))
    return "\n".join([*parts, "</g></svg>", ""])


def _points(x: Tensor, y: Tensor, left: int, *, color: str, radius: float) -> str:
    across = left + MARGIN + (WIDTH - 2 * MARGIN) * (x.flatten() + RANGE) / (2 * RANGE)
    down = TITLE + HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (y.flatten() + RANGE) / (2 * RANGE)
    circles = (
        f'<circle cx="{own:.1f}" cy="{other:.1f}" r="{radius:g}"/>'
        for own, other in zip(across.tolist(), down.tolist(), strict=True)
    )
    return f'<g fill="{color}" fill-opacity="0.8">{"".join(circles)}</g>'


if __name__ == "__main__":
    FILE.write_text(draw())

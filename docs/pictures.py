"""The pictures of the pages of methods: what each makes of the same points.

    python -m docs.pictures        writes docs/methods/pictures/*.svg

Gray are the points of a batch, blue what the method makes of them, and a line leads from the one to
the other. The drawings are plain SVG: small, and the same on every machine but for the last digit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regaug import (
    ADA,
    CEMS,
    FOMA,
    CMixup,
    Compose,
    FeatureMix,
    GaussianNoise,
    KernelPairSampler,
    Mixup,
    NearestBatchSampler,
    RareSampler,
    SKMixup,
    TeacherRows,
)
from regaug.augment import Augmentation
from regaug.data.tabular.rare_rows import RareRows

FOLDER = Path(__file__).parent / "methods" / "pictures"
# What stands in the place of the figure to try where there is no JavaScript.
STILL = Path(__file__).parent / "_static" / "foma.svg"
WIDTH, HEIGHT, GAP, COLUMNS = 300, 200, 12, 2
INK, OLD, NEW, LINK = "#333333", "#a3a8ae", "#0069a8", "#c3d7e4"
FONT = "font-family='Helvetica, Arial, sans-serif' font-size='13'"


@dataclass(frozen=True, eq=False)
class Panel:
    """One drawing: points, and what became of each.

    Attributes:
        title: What is to be seen.
        old: The points, ``(n, 2)``.
        new: What became of them, ``(n, 2)``; or other points, if they are not linked.
        radii: Of the new points.
        linked: Whether a line leads from every point to what became of it.
        names: Of the two axes.
        span: How far they reach, from minus so much to so much.
    """

    title: str
    old: Tensor
    new: Tensor
    radii: Tensor | None = None
    linked: bool = True
    names: tuple[str, str] = ("input", "target")
    span: tuple[float, float] = (3.7, 1.6)

    def draw(self) -> Iterator[str]:
        """Return the lines of the drawing, in a box of WIDTH and HEIGHT."""
        old, new = (self._place(points) for points in (self.old, self.new))
        radii = [2.6] * len(new) if self.radii is None else self.radii.tolist()
        yield f"<rect width='{WIDTH}' height='{HEIGHT}' rx='6' fill='#ffffff' stroke='#d9dde0'/>"
        if self.linked:
            path = "".join(
                f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for (a, b), (c, d) in zip(old, new, strict=True)
            )
            yield f"<path d='{path}' stroke='{LINK}' stroke-width='1.2' fill='none'/>"
        yield f"<g fill='{OLD}'>"
        yield from (f"<circle cx='{a:.1f}' cy='{b:.1f}' r='3'/>" for a, b in old)
        yield f"</g><g fill='{NEW}' fill-opacity='0.85'>"
        yield from (
            f"<circle cx='{a:.1f}' cy='{b:.1f}' r='{r:.1f}'/>"
            for (a, b), r in zip(new, radii, strict=True)
        )
        across, up = self.names
        middle = (HEIGHT + 26) / 2
        yield f"</g><g {FONT} fill='{INK}' text-anchor='middle'>"
        yield f"<text x='{WIDTH / 2}' y='18' font-weight='bold'>{self.title}</text>"
        yield f"<text x='{WIDTH / 2}' y='{HEIGHT - 6}' font-size='11'>{across}</text>"
        turned = f"transform='rotate(-90 12 {middle})' font-size='11'"
        yield f"<text x='12' y='{middle}' {turned}>{up}</text></g>"

    def _place(self, points: Tensor) -> list[list[float]]:
        left, right, top, bottom = 22, WIDTH - 10, 26, HEIGHT - 22
        a, b = (points.double() / torch.tensor(self.span).double()).clamp(-1, 1).unbind(1)
        across = left + (a + 1) / 2 * (right - left)
        down = bottom - (b + 1) / 2 * (bottom - top)
        placed: list[list[float]] = torch.stack([across, down], dim=1).tolist()
        return placed


def make_points(n: int = 48) -> tuple[Tensor, Tensor]:
    """Return inputs ``(n, 1)`` and targets ``(n,)`` near a sine."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-3.2, 3.2, n))
    return torch.from_numpy(x[:, None]), torch.from_numpy(np.sin(x) + 0.1 * rng.normal(size=n))


def join(x: Tensor, y: Tensor) -> Tensor:
    """Put inputs and targets side by side."""
    return torch.cat([x, y[:, None]], dim=1)


def of(title: str, augment: Augmentation, batches: list[list[int]] | None = None) -> Panel:
    """Return the panel of an augmentation, on all points at once or batch by batch."""
    x, y = make_points()
    rows = batches or [list(range(len(x)))]
    made = [join(*augment(x[own], y[own])) for own in rows]
    used = [join(*augment.originals(x[own], y[own])) for own in rows]
    return Panel(title, torch.cat(used), torch.cat(made))


def foma_panels() -> list[Panel]:
    """Show what batches and factors do."""
    y = make_points()[1]
    near = list(NearestBatchSampler(y, 12, seed=1))
    fixed = {"k": 1, "lam_range": (0.2, 0.2)}
    return [
        of("one batch of all points, factor 0.2", FOMA(**fixed)),
        of("the same, factor 0.7", FOMA(k=1, lam_range=(0.7, 0.7))),
        of("batches with near targets", FOMA(**fixed), near),
        of("the same, about their means", FOMA(center=True, **fixed), near),
    ]


def still_panels() -> list[Panel]:
    """Show a batch drawn at random and one with near targets, about their means."""
    y = make_points()[1]
    own = FOMA(k=1, lam_range=(0.2, 0.2), center=True)
    near = next(iter(NearestBatchSampler(y, 16, seed=3)))
    drawn = np.random.default_rng(0).permutation(48)[:16].tolist()
    return [of("a batch drawn at random", own, [drawn]), of("one with near targets", own, [near])]


def mixup_panels() -> list[Panel]:
    """Every way to find a partner at one share, and a draw that lies beyond both samples."""
    mixed = [
        ("mixup", {}, 4),
        ("k-mixup: assigned partners", {"pairs": "assignment"}, 4),
        ("neighbor-mixup: near partners", {"pairs": "neighbors"}, 4),
        ("epbeta-mixup: away from the partner too", {"spread": "keep"}, 2),
    ]
    return [of(title, Mixup(generator=seeded(seed), **own)) for title, own, seed in mixed]


def c_mixup_panels() -> list[Panel]:
    """Show how close the targets of partners are."""
    y = make_points()[1]
    return [
        of(
            f"bandwidth {width}",
            CMixup(paired=True, generator=seeded(5)),
            list(KernelPairSampler(y, 48, bandwidth=width)),
        )
        for width in (0.1, 1.0)
    ]


def sk_mixup_panels() -> list[Panel]:
    """Show that far pairs are mixed less."""
    return [of(f"width {width}", SKMixup(width=width, generator=seeded(5))) for width in (0.3, 3.0)]


def ada_panels() -> list[Panel]:
    """Show a draw of each sort."""
    x, y = make_points()
    drawn = {"toward the means of 4 clusters": 2, "away from them": 4}
    return [
        of(title, ADA(alpha=4.0, clusters=4, generator=seeded(seed)).fit(x, y))
        for title, seed in drawn.items()
    ]


def cems_panels() -> list[Panel]:
    """Show short steps and long ones."""
    x, y = make_points()
    return [
        of(
            f"sigma {sigma:g}",
            CEMS(sigma=sigma, d=1, neighbors=12, generator=seeded(2)).fit(x, y),
        )
        for sigma in (0.2, 0.5)
    ]


def noise_panels() -> list[Panel]:
    """Show noise with and without that of the targets."""
    return [
        of("inputs and targets", GaussianNoise(0.25, generator=seeded(2))),
        of('targets="keep"', GaussianNoise(0.25, targets="keep", generator=seeded(2))),
    ]


def feature_mix_panels() -> list[Panel]:
    """Show the inputs, of which one is swapped."""
    points = torch.from_numpy(np.random.default_rng(1).uniform(-1.3, 1.3, (12, 2)))
    augment = FeatureMix(rate=0.5, generator=seeded(4))
    new, _ = augment(points, points.sum(dim=1))
    names = ("first input", "second input")
    return [Panel("one of two columns is another row's", points, new, names=names, span=(1.6, 1.6))]


def teacher_panels() -> list[Panel]:
    """Show what two teachers say."""
    x, y = make_points()
    return [
        of(f"labels by {teacher}", TeacherRows(teacher, sigma=0.4, generator=seeded(2)).fit(x, y))
        for teacher in ("boosting", "gp")
    ]


def skewed_points() -> tuple[Tensor, Tensor]:
    """Return points whose targets are mostly low."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=60)
    y = np.exp(0.8 * x + 0.2 * rng.normal(size=60)) - 2
    return torch.from_numpy(x[:, None]), torch.from_numpy(y)


def rare_panels() -> list[Panel]:
    """Show how often samples are drawn."""
    x, y = skewed_points()
    panels = []
    for alpha in (0.5, 1.0):
        rates = torch.from_numpy(RareSampler(y, 10, alpha=alpha).rates)
        drawn = 2.2 * rates.sqrt()  # areas are rates
        rows = join(x, y - 1.8)
        title = f"alpha {alpha:g}: area = how often drawn"
        panels.append(Panel(title, rows, rows, drawn, linked=False, span=(2.7, 4.3)))
    return panels


def smogn_panels() -> list[Panel]:
    """Show new rows where targets are high."""
    x, y = skewed_points()
    found = RareRows.of(x, y[:, None], neighbors=5, focus="high")
    new_x, new_y = found.make(found.draw(40, seed=0), sigma=0.1)
    old, new = join(x, y - 1.8), join(new_x, new_y[:, 0] - 1.8)
    title = "rows beside the highest tenth"
    return [Panel(title, old, new, linked=False, span=(2.7, 4.3))]


def compose_panels() -> list[Panel]:
    """Show a chain after its first part."""
    mixing = Mixup(pairs="neighbors", generator=seeded(5))
    chain = Compose(mixing, GaussianNoise(0.15), generator=seeded(5))
    return [of("neighbor mixup", mixing), of("and noise after it", chain)]


def seeded(seed: int) -> torch.Generator:
    """Return a source of randomness."""
    return torch.Generator().manual_seed(seed)


PICTURES = {
    "foma": foma_panels,
    "still": still_panels,
    "mixup": mixup_panels,
    "c-mixup": c_mixup_panels,
    "sk-mixup": sk_mixup_panels,
    "ada": ada_panels,
    "cems": cems_panels,
    "noise": noise_panels,
    "feature-mix": feature_mix_panels,
    "teacher-rows": teacher_panels,
    "rare": rare_panels,
    "smogn": smogn_panels,
    "compose": compose_panels,
}


def draw(panels: list[Panel]) -> str:
    """Return an SVG with the panels side by side, two in a row."""
    columns, rows = min(COLUMNS, len(panels)), -(-len(panels) // COLUMNS)
    width, height = (columns * (WIDTH + GAP) - GAP, rows * (HEIGHT + GAP) - GAP)
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='-1 -1 {width + 2} {height + 2}'>"
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, COLUMNS)
        place = f"translate({column * (WIDTH + GAP)} {row * (HEIGHT + GAP)})"
        lines += [f"<g transform='{place}'>", *panel.draw(), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def path_of(name: str) -> Path:
    """Return where a picture is."""
    return STILL if name == "still" else FOLDER / f"{name}.svg"


if __name__ == "__main__":
    for name, make in PICTURES.items():
        path_of(name).write_text(draw(make()))

r"""The statement of the analysis: noise raises small singular values, FOMA lowers them.

Theorem 1 of the paper (Stewart, 1979): with :math:`P` the projection onto the column space of
:math:`A`, the singular values of :math:`A + E` are

.. math:: \tilde\sigma_j^2 = (\sigma_j + \gamma_j)^2 + \eta_j^2, \quad |\gamma_j| \le \|PE\|_2,
    \quad \inf_2(P_\perp E) \le \eta_j \le \|P_\perp E\|_2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regaug import _random
from regaug.augment.joint import joint_dimension, joint_rows
from regaug.data import load, standardize
from regaug.formatting import count
from regaug.functional.spectral import scale_singular_values
from regaug.reproduction.figures.base import Figure, Numbers, Plan, compact, judge
from regaug.reproduction.figures.drawing import COLORS, INK, Panels
from regaug.reproduction.figures.trainings import foma_settings
from regaug.samplers import NearestBatchSampler

SIGMA, DRAWS = 0.1, 100
FACTORS = {"foma": 0.5, "grown": 1.5}
LOOK = {
    "noise": {"color": COLORS["noise"], "marker": "^", "label": f"noise of {SIGMA}"},
    "foma": {"color": COLORS["foma"], "marker": "v", "label": "FOMA, λ = 0.5"},
    "grown": {"color": COLORS["cems"], "marker": "s", "label": "FOMA, λ = 1.5"},
}
NOTE = (
    "Batches of 64 training rows of NO2 with close targets (8 columns, inputs in [0, 1]); the cut "
    f"k is the intrinsic dimension of the batch. Noise: mean over {DRAWS} draws for each batch. "
    "Band: what theorem 1 of the paper allows, mean over the same draws. Crosses: the root of s² + "
    "64 · 0.1², what independent noise makes of a value s on average. Left one batch, then the "
    "mean over {batches} batches of {splits}, whose cuts differ; a value that has grown may "
    "overtake one before the cut. Right of it the same of standardized rows, as a study has them."
)


def measure(plan: Plan) -> tuple[Numbers, str]:
    """Perturb batches of NO2 in three ways, which takes seconds; standardized ones too."""
    changes = _perturb_all(plan.seeds)
    numbers = {
        "batch": changes[0].as_values(),
        **_summarize(changes),
        "standardized": _summarize(_perturb_all(plan.seeds, is_standardized=True)),
    }
    return numbers, NOTE.format(batches=len(changes), splits=count(plan.seeds, "split"))


def _perturb_all(seeds: int, *, is_standardized: bool = False) -> "list[_Change]":
    batches = enumerate(_batches(seeds, is_standardized=is_standardized))
    return [_perturb(rows, k, number) for number, (rows, k) in batches]


def _summarize(changes: "Sequence[_Change]") -> Numbers:
    risen = [(c.draws > c.before)[:, c.k :].flatten() for c in changes]
    inside = [((c.draws >= c.lows) & (c.draws <= c.highs)).flatten() for c in changes]
    ratios = {name: torch.stack([c.ratio(name) for c in changes]).mean(0) for name in LOOK}
    return {
        "ratios": compact_all(ratios),
        "smallest": compact_all({name: ratio[-1:] for name, ratio in ratios.items()}),
        "largest": compact_all({name: ratio[:1] for name, ratio in ratios.items()}),
        "share_risen": torch.cat(risen).double().mean().item(),
        "share_inside": torch.cat(inside).double().mean().item(),
        "batches": len(changes),
    }


def paint(axes: Panels, data: Numbers) -> None:
    """Draw the singular values of a batch before and after, and the mean ratios of all batches."""
    batch, (values, ratios, standardized) = data["batch"], axes[0]
    places = range(1, len(batch["before"]) + 1)
    band = {"color": COLORS["noise"], "alpha": 0.13, "linewidth": 0}
    values.fill_between(places, batch["low"], batch["high"], **band)
    values.plot(places, batch["before"], color=INK, marker="o", label="the batch as it is")
    for name, look in LOOK.items():
        values.plot(places, batch[name], linewidth=1.2, markersize=5, **look)
        ratios.plot(places, data["ratios"][name], linewidth=1.2, markersize=5, **look)
        own = data["standardized"]["ratios"][name]
        standardized.plot(places, own, linewidth=1.2, markersize=5, **look)
    values.scatter(places, batch["expected"], marker="x", color=INK, zorder=4, s=28)
    values.axvline(batch["k"] + 0.5, color=INK, linewidth=1, linestyle="--")
    place = {"ha": "right", "va": "top", "transform": values.get_xaxis_transform()}
    values.text(batch["k"] + 0.4, 0.97, f"k = {batch['k']}", **place)
    values.set(title="singular values of one batch", yscale="log", ylabel="singular value")
    for axis, title in ((ratios, "mean over batches"), (standardized, "standardized rows")):
        axis.axhline(1.0, color=INK, linewidth=1)
        axis.set(title=f"after / before, {title}", ylabel="ratio of singular values")
    for axis in axes[0]:
        axis.set(xlabel="place j in descending order", xticks=list(places))


def caption(data: Numbers) -> str:
    """Say by how much the smallest values change."""
    change = {name: 100 * (ratio[0] - 1) for name, ratio in data["smallest"].items()}
    first = {name: 100 * (ratio[0] - 1) for name, ratio in data["largest"].items()}
    claims = {
        "noise changes small values most and stays within the bounds": (
            abs(change["noise"]) > abs(first["noise"]) and data["share_inside"] == 1
        ),
        "FOMA moves the small values alone": first["foma"] == 0,
    }
    return (
        f"Noise of {SIGMA} changes the smallest singular value of a batch of NO2 by "
        f"{change['noise']:+.0f} % and the largest by {first['noise']:+.1f} %; of the values "
        f"beyond the cut it raises {100 * data['share_risen']:.1f} %. FOMA changes the smallest by "
        f"{change['foma']:+.0f} % with λ = 0.5 and by {change['grown']:+.0f} % with λ = 1.5, and "
        f"the largest by {first['foma']:+.1f} %. With noise, {100 * data['share_inside']:.1f} % of "
        f"all values are within the bounds of theorem 1. {judge(claims)} "
        f"{_say_standardized(data['standardized'])}"
    )


def _say_standardized(own: Numbers) -> str:
    """Say what the same does to rows as a study has them."""
    noise = [100 * (own[end]["noise"][0] - 1) for end in ("smallest", "largest")]
    foma = [100 * (own["smallest"][name][0] - 1) for name in FACTORS]
    return (
        f"On standardized rows, as a study has them, the same noise changes the smallest by "
        f"{noise[0]:+.1f} % and the largest by {noise[1]:+.1f} %, and FOMA the smallest by "
        f"{foma[0]:+.0f} and {foma[1]:+.0f} %; {100 * own['share_inside']:.1f} % of all values "
        "with noise are within the bounds."
    )


@dataclass(frozen=True)
class _Change:
    """The singular values of a batch ``(r,)``, and what becomes of them; noise has many draws."""

    before: Tensor
    k: int
    rows: int
    draws: Tensor
    lows: Tensor
    highs: Tensor
    scaled: dict[str, Tensor]

    def after(self, name: str) -> Tensor:
        return self.draws.mean(0) if name == "noise" else self.scaled[name]

    def ratio(self, name: str) -> Tensor:
        return self.after(name) / self.before

    def as_values(self) -> Numbers:
        expected = (self.before.square() + self.rows * SIGMA**2).sqrt()
        bounds = {"low": self.lows.mean(0), "high": self.highs.mean(0), "expected": expected}
        own = {name: self.after(name) for name in LOOK}
        return {"k": self.k, **compact_all({"before": self.before, **own, **bounds})}


def compact_all(values: dict[str, Tensor]) -> dict[str, list[float]]:
    """Return tensors as short lists."""
    return {name: compact(value) for name, value in values.items()}


def _batches(seeds: int, *, is_standardized: bool = False) -> Iterator[tuple[Tensor, int]]:
    """Yield FOMA's batches of one epoch for every split, as joint rows, with their cuts."""
    data, size = load("no2"), foma_settings("no2").batch_size
    for seed in range(seeds):
        split = data.split(seed, protocol="paper")
        part = (standardize(split) if is_standardized else split).train
        for batch in NearestBatchSampler(part.y, size, seed=seed, drop_last=True):
            x, y = part.x[batch], part.y[batch]
            yield joint_rows(x, y, torch.float64), joint_dimension(x, y)


def _perturb(rows: Tensor, k: int, seed: int) -> _Change:
    """Return the singular values of ``rows`` with noise, shrunk and grown."""
    generator = _random.make_generator(_random.derive(_random.Stream.FIGURES, seed))
    before = torch.linalg.svdvals(rows)
    shape = (DRAWS, *rows.shape)
    errors = SIGMA * torch.randn(shape, generator=generator, dtype=torch.float64)
    lows, highs = _bounds(rows, errors, before)
    scaled = {
        name: torch.linalg.svdvals(scale_singular_values(rows, lam=lam, k=k))
        for name, lam in FACTORS.items()
    }
    return _Change(before, k, len(rows), torch.linalg.svdvals(rows + errors), lows, highs, scaled)


def _bounds(rows: Tensor, errors: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and the largest singular values that the theorem allows, for each draw."""
    basis = torch.linalg.qr(rows).Q
    along = basis @ (basis.T @ errors)
    beside = torch.linalg.svdvals(errors - along)
    gamma = torch.linalg.matrix_norm(along, 2)[:, None]
    low = ((before - gamma).clamp(min=0.0).square() + beside[:, -1:].square()).sqrt()
    high = ((before + gamma).square() + beside[:, :1].square()).sqrt()
    return low, high


TITLE = "what noise and FOMA do to singular values"
FIGURE = Figure(TITLE, measure, paint, caption, (13, 4.9, 1, 3), legend=4)

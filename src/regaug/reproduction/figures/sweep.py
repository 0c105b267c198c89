"""The error of a net on data whose small singular values are scaled, over the factor lambda."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regaug.augment import FOMA
from regaug.augment.joint import as_rows
from regaug.data.base import Part, Split
from regaug.functional.spectral import scale_singular_values
from regaug.models import MLP
from regaug.reproduction.figures.base import Numbers, spread
from regaug.reproduction.figures.drawing import COLORS, draw_band
from regaug.reproduction.figures.trainings import SAME
from regaug.samplers import RandomBatchSampler
from regaug.training.recipe import HIDDEN
from regaug.training.results import RunResult
from regaug.training.stacked.training import make_table_net

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAMBDAS = tuple(i / 99 for i in range(100))
LABELS = {"erm": "plain, rate 0.01, batch 32", SAME: "plain, FOMA's rate and batch", "foma": "FOMA"}
# What is scaled: the joint rows, as in the paper; the same, with the error measured against the
# original targets; or the inputs without a look at the targets.
JOINT, KEPT, INPUTS = "joint", "kept", "inputs"


class Scaled:
    """A part of a data set with the small singular values of its batches scaled.

    The rows are put into random batches, which is what a loader does that does not train, all
    about equally large. The cut is the intrinsic dimension of the batch's joint rows. Scaling by
    lambda is a straight line from the projection (0) to the data (1), so two ends are all that is
    stored.
    """

    def __init__(self, part: Part, batch_size: int, seed: int = 0) -> None:
        size = math.ceil(len(part) / math.ceil(len(part) / batch_size))
        augment = FOMA(k="two_nn", lam_range=(0.0, 0.0))
        ends = []
        self.cuts: list[int] = []
        for rows in RandomBatchSampler(part.y, size, seed=seed, drop_last=False):
            x, y = part.x[rows], part.y[rows]
            flat_x, flat_y = augment(x, y)
            k = augment.params.k if augment.params.lam == 0.0 else min(as_rows(x).shape)
            alone = scale_singular_values(as_rows(x), lam=0.0, k=min(k, *as_rows(x).shape))
            ends.append((x, y, flat_x, flat_y, alone.reshape(x.shape)))
            self.cuts.append(k)
        self.x, self.y, self.flat_x, self.flat_y, self.alone = map(
            torch.cat, zip(*ends, strict=True)
        )

    def at(self, lam: float, what: str = JOINT) -> tuple[Tensor, Tensor]:
        """Return inputs and targets at a factor: as they are at 1, projected at 0."""
        if what == INPUTS:
            return self.alone + lam * (self.x - self.alone), self.y
        x = self.flat_x + lam * (self.x - self.flat_x)
        return x, self.y if what == KEPT else self.flat_y + lam * (self.y - self.flat_y)

    def errors(self, net: nn.Module, what: str = JOINT) -> list[float]:
        """Return the mean squared error of a net for each of the 100 factors."""
        net.eval()
        with torch.inference_mode():
            pairs = (self.at(lam, what) for lam in LAMBDAS)
            return [(net(x) - y).square().mean().item() for x, y in pairs]


def make_nets(runs: Mapping[str, Sequence[RunResult]]) -> dict[str, list[MLP]]:
    """Return the nets for tables that some trainings made."""
    return {name: [_make_net(run) for run in own] for name, own in runs.items()}


def make_recipe_nets(
    runs: Mapping[str, Sequence[RunResult]], splits: Sequence[Split]
) -> dict[str, list[MLP]]:
    """Return the nets that trainings by a study's recipe made, with all that is folded in."""
    found: dict[str, list[MLP]] = {}
    for name, own in runs.items():
        found[name] = []
        for run, split in zip(own, splits, strict=True):
            form = make_table_net(split, run.settings, hidden=HIDDEN).form
            net = replace(form, linear=run.settings.linear).make()
            net.load_state_dict(dict(run.weights))
            found[name].append(net)
    return found


def _make_net(run: RunResult) -> MLP:
    first, head = run.weights["block_1.linear.weight"], run.weights["head.weight"]
    net = MLP(first.shape[1], head.shape[0])
    net.load_state_dict(dict(run.weights))
    return net


def sweep(
    nets: Mapping[str, Sequence[nn.Module]],
    parts: Sequence[dict[str, Part]],
    batch_size: int,
    controls: Sequence[str] = (INPUTS,),
    units: Sequence[float] = (),
) -> Numbers:
    """Return the errors by part, net and way of scaling, over lambda: mean and deviation.

    ``nets`` and ``parts`` have one for each seed; ``batch_size`` rows are scaled together;
    ``controls`` are other ways of scaling, for the plain net at FOMA's settings. ``units`` are what
    the targets of each seed were divided by, if they were: errors are in their own units.
    """
    squares = [unit**2 for unit in units] or [1.0] * len(parts)
    found: Numbers = {}
    for part in parts[0]:
        scaled = [Scaled(own[part], batch_size, seed) for seed, own in enumerate(parts)]
        found[part] = {
            name: {
                what: spread(
                    [
                        [unit * error for error in s.errors(net, what)]
                        for s, net, unit in zip(scaled, own, squares, strict=True)
                    ]
                )
                for what in (JOINT, *(controls if name == SAME else ()))
            }
            for name, own in nets.items()
        }
    return found


def summary(curve: dict[str, list[float]]) -> dict[str, float]:
    """Return the least of a curve of errors, and where it is, beside both ends.

    Example:
        >>> summary({"mean": [2.0] * 49 + [1.0] + [4.0] * 50})
        {'best': 0.49, 'least': 1.0, 'at_0': 2.0, 'at_1': 4.0}
    """
    mean = curve["mean"]
    least = min(mean)
    best = round(mean.index(least) / (len(mean) - 1), 2)
    return {"best": best, "least": least, "at_0": mean[0], "at_1": mean[-1]}


def draw_part(axis: "Axes", lambdas: Sequence[float], nets: Numbers, title: str) -> None:
    """Draw the errors of all nets on one part."""
    for name, curves in nets.items():
        draw_band(axis, lambdas, curves[JOINT], name, LABELS[name])
    # Without a band: it would cover that of the same net.
    label = f"{LABELS[SAME]}; inputs scaled without the targets"
    control = nets[SAME][INPUTS]["mean"]
    axis.plot(lambdas, control, color=COLORS[SAME], label=label, linestyle=":")
    axis.set(title=title, xlabel="factor λ of the small singular values", xlim=(0, 1))

"""The nets of an ensemble, trained and used as one stack."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from regaug import _random
from regaug.data.base import Split
from regaug.ensemble.scale import TargetScale
from regaug.exceptions import DivergedError
from regaug.models.mlp import NetForm
from regaug.training import RunResult, Settings, fit_many
from regaug.training.deadline import Until
from regaug.training.stacked import most_runs
from regaug.training.stacked.net import Layout, predict
from regaug.training.stacked.stages import Stage
from regaug.training.stacked.training import make_table_net


@dataclass(frozen=True, eq=False)
class Members:
    """Table nets of one form, with the way back to the targets' own units.

    Attributes:
        form: What they are made of.
        weights: Weights by name, ``(members, *shape)``, float32.
        scale: The scale that they predict in.
        block: Numbers of a hidden layer that are held at a time (32 MB).
    """

    form: NetForm
    weights: Mapping[str, Tensor] = field(repr=False)
    scale: TargetScale
    block: int = field(default=2**22, repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.weights.values())))

    def __call__(self, x: Tensor) -> Tensor:
        """Return what every member predicts, ``(members, n, m)``, in the nets' own scale.

        Computed in float64, so that a row's prediction does not depend on the rows beside it.
        """
        if not len(x):
            return torch.zeros(len(self), 0, self.form.outputs, dtype=torch.float64)
        widest, stages = self._net
        size = max(1, self.block // (widest * len(self)))
        x = x.double()
        blocks = [rows.expand(len(self), -1, -1) for rows in torch.split(x, size)]
        with torch.no_grad():
            found = torch.cat([predict(stages, block) for block in blocks], dim=1)
        return found + self._linear(x) if self.form.linear else found

    @cached_property
    def _net(self) -> tuple[int, Sequence[Stage]]:
        """The width of the widest layer, and the nets of all members."""
        layout = Layout.of(self.form.make())
        nets = [
            {name: weight[number] for name, weight in self.weights.items()}
            for number in range(len(self))
        ]
        return layout.widest, layout.stages(layout.stack(nets, torch.float64))

    def _linear(self, x: Tensor) -> Tensor:
        """Return the linear part of every member, ``(members, n, m)``."""
        weight, bias = (self.weights[f"skip.{name}"].double() for name in ("weight", "bias"))
        return x @ weight.mT + bias.unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Trained:
    """Members and how they came about; those that diverged before they learned are left out."""

    members: Members
    numbers: tuple[int, ...]  # which of the splits each of them was trained on
    results: tuple[RunResult, ...]
    settings: Settings  # what they share, completed by the method's defaults


def train_members(
    splits: Sequence[Split],
    method: str,
    settings: Settings,
    *,
    hidden: Sequence[int],
    scale: TargetScale,
    until: Until | None = None,
    tell: Callable[[], None] | None = None,
    progress: bool = False,
) -> Trained:
    """Train a net on every split, a standardized table, with a seed derived from the settings'.

    ``scale`` is what the targets of these splits are in. After ``until``, in seconds since 1970,
    nets that are under way end, and those of further stacks are left out. ``tell`` is
    called after every epoch of a stack.
    """
    own = [
        replace(settings, seed=_random.derive(_random.Stream.MEMBERS, settings.seed, member))
        for member in range(len(splits))
    ]
    results: list[RunResult] = []
    size = len(splits) if until is None else most_runs(settings.batch_size)
    for start in range(0, len(splits), size):
        if results and until is not None and time.time() > until:
            break
        some = slice(start, start + size)
        results += fit_many(
            splits[some],
            method,
            own[some],
            hidden=hidden,
            record=(),
            until=until,
            tell=tell,
            progress=progress,
        )
    usable = tuple(number for number, result in enumerate(results) if is_usable(result))
    if not usable:
        raise DivergedError(
            "The loss of every member became NaN or infinite. Use a lower learning rate, or "
            "gradient clipping."
        )
    kept = tuple(results[number] for number in usable)
    members = stack_members(kept, splits[0], hidden=hidden, scale=scale)
    return Trained(members, usable, kept, replace(kept[0].settings, seed=settings.seed))


def stack_members(
    results: Sequence[RunResult], split: Split, *, hidden: Sequence[int], scale: TargetScale
) -> Members:
    """Put the nets of some results side by side; all are of one form, as one split shows."""
    weights = {name: torch.stack([r.weights[name] for r in results]) for name in results[0].weights}
    widths, settings = tuple(int(width) for width in hidden), results[0].settings
    form = make_table_net(split, settings, hidden=widths).form
    return Members(replace(form, linear=settings.linear), weights, scale)


def is_usable(result: RunResult) -> bool:
    """Tell whether a net has learned something that can be used."""
    # Without validation rows nothing else sees that the last step has led to infinity.
    weights = result.weights.values()
    return result.best_epoch > 0 and all(bool(weight.isfinite().all()) for weight in weights)

"""The augmentations of many runs in one step, forth and back."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from regaug.augment.across import Across, RunBatches
from regaug.augment.base import AnyAugmentation
from regaug.augment.layer import INPUT
from regaug.augment.numbers import Indices

Pair = tuple[Tensor, Tensor]


@dataclass(slots=True)
class _Act:
    """What has happened at a layer: from the outputs of the touched runs to new ones."""

    runs: Tensor | None  # numbers of the touched runs; None if all are
    hidden: Tensor  # a leaf of the graph that leads to what is new
    new: Pair

    def pull_back(self, *deltas: Tensor) -> Tensor:
        """Return the loss's derivative by the outputs, from that by what is new."""
        if self.runs is not None:
            deltas = tuple(delta[self.runs] for delta in deltas)
        pairs = zip(self.new, deltas, strict=True)
        used = [(new, delta) for new, delta in pairs if new.requires_grad]
        if not used:
            return torch.zeros_like(self.hidden)
        outputs, along = zip(*used, strict=True)
        (found,) = torch.autograd.grad(outputs, self.hidden, along)
        return found


class StepAugmentation:
    """The augmentations of the runs that take part in a step.

    Args:
        across: The augmentations.
        x: The batches ``(runs, n, d)``.
        targets: Their targets ``(runs, n, m)``.
        rows: Which training rows of each run's split they are, ``(runs, n)``.
        touched: Numbers of the runs that are touched at each place that there is; None if all has
            been done.
        weights: What each run's loss is multiplied by, ``(runs,)``; None if by nothing.

    Attributes:
        x: What the nets are given.
        targets: The targets of what was last returned.
        is_lost: Whose hidden layer is not finite; None if all are well.
    """

    def __init__(
        self,
        across: Across,
        x: Tensor,
        targets: Tensor,
        *,
        rows: Tensor | None = None,
        touched: dict[str, Indices] | None = None,
        weights: Tensor | None = None,
    ) -> None:
        self.targets = targets
        self.is_lost: Tensor | None = None
        self._across, self._part = across, across.parts[0]
        self._given, self._rows = (x, targets), rows
        self._touched, self._weights = touched or {}, weights
        self._acts: dict[str, _Act] = {}
        self.x = self.forward(INPUT, x)

    def forward(self, place: str, x: Tensor) -> Tensor:
        """Augment what arrives at a place, ``(runs, n, d)``, of the runs that are touched there."""
        if place not in self._touched:
            return x
        touched = self._touched[place]
        if place != INPUT and len(touched):
            x = self._without_lost(x)
        batch, runs, new = (x, self.targets), None, None
        if 0 < len(touched) < len(x):
            runs = torch.from_numpy(touched)
            new = self._act(place, runs, x[runs], self.targets[runs])
        elif len(touched):
            new = self._act(place, None, *batch)
        x, self.targets = put_back(self._part, batch, new, runs)
        return x

    def backward(self, place: str, delta: Tensor, of_targets: Tensor) -> Tensor:
        """Return the loss's derivative by what has come to a place.

        Only the augmentation itself is differentiated by autograd, for the touched runs alone.
        """
        if place not in self._touched:
            return delta
        kept: Tensor | None = None
        if self._part.append:  # the originals come first, and then what was made of them
            kept, delta = delta.tensor_split(2, dim=1)
            of_targets = of_targets.tensor_split(2, dim=1)[1]
        act, of_new = self._acts.get(place), delta
        if act is None or act.runs is not None:
            delta = self._with_partners(delta)
        if act is not None:
            found = act.pull_back(of_new, of_targets)
            delta = found if act.runs is None else delta.index_copy(0, act.runs, found)
        return delta if kept is None else delta + self._with_partners(kept)

    def loss_weights(self) -> Tensor | None:
        """Return what each run's loss is multiplied by, ``(runs,)``; None if by nothing."""
        return self._weights

    def _with_partners(self, delta: Tensor) -> Tensor:
        """Return the derivative by all rows from that by the originals."""
        if not self._part.paired:
            return delta
        return torch.cat([delta, torch.zeros_like(delta)], dim=1)

    def _act(self, place: str, runs: Tensor | None, x: Tensor, y: Tensor) -> Pair:
        """Augment the batches of the touched runs, and at a layer keep the way back."""
        touched = self._touched[place]
        rows = self._rows if self._rows is None or runs is None else self._rows[runs]
        if place == INPUT:
            new_x, new_y = self._across.act(RunBatches(touched, x, y, rows))
        else:
            given = self._given if runs is None else (self._given[0][runs], self._given[1][runs])
            hidden = x.detach().requires_grad_()
            with torch.enable_grad():
                new_x, new_y = self._across.act(RunBatches(touched, hidden, y, rows, given))
            self._acts[place] = _Act(runs, hidden, (new_x, new_y))
        if (weights := self._across.weights) is not None:
            if self._weights is None:
                self._weights = y.new_ones(len(self.targets))
            self._weights[torch.from_numpy(touched)] = torch.from_numpy(weights).to(y)
        return new_x.detach(), new_y.detach()

    def _without_lost(self, hidden: Tensor) -> Tensor:
        """Put zeros into a hidden layer that is not finite, and remember whose it is.

        Such a run has diverged and ends with its epoch; until then the others go through the same
        decomposition, which refuses NaN.
        """
        if math.isfinite(hidden.sum().item()):
            return hidden
        is_lost = ~hidden.isfinite().all(dim=2).all(dim=1)
        self.is_lost = is_lost if self.is_lost is None else self.is_lost | is_lost
        return hidden.masked_fill(is_lost[:, None, None], 0.0)


def put_back(part: AnyAugmentation, batches: Pair, new: Pair | None, chosen: Tensor | None) -> Pair:
    """Return all batches with what is new in some of them: what calls of augmentations return.

    Args:
        part: The augmentation of one of the runs.
        batches: Inputs ``(batches, n, d)`` and targets as they were.
        new: What the transformation has made of some; None if of none.
        chosen: Numbers of these; None if all are.
    """
    originals = batches
    if part.paired:
        # `originals` selects along the first axis, and here the rows are the second.
        x, y = part.originals(*(tensor.transpose(0, 1) for tensor in batches))
        originals = x.transpose(0, 1), y.transpose(0, 1)
    if new is None:
        new = originals
    elif chosen is not None:
        x, y = (
            whole.index_copy(0, chosen, some) for whole, some in zip(originals, new, strict=True)
        )
        new = x, y
    if part.append:
        # A batch that is not touched has all its rows twice: its mean loss is the same.
        x, y = (torch.cat(both, dim=1) for both in zip(originals, new, strict=True))
        return x, y
    return new

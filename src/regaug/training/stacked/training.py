"""One run of a stack: what was asked for, and how far it has come."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from regaug import methods
from regaug.augment.base import AnyAugmentation
from regaug.augment.foma import count_cuts
from regaug.augment.layer import INPUT
from regaug.data.base import Split
from regaug.exceptions import ArgumentError, PlaceError
from regaug.models.mlp import MLP, NetForm
from regaug.samplers import BatchSampler
from regaug.training.checkpoint import load_weights
from regaug.training.limits import refuse_limits
from regaug.training.results import Ending, Epoch, is_best, why_end
from regaug.training.settings import Settings
from regaug.training.stacked.groundwork import Groundwork, as_rows

MOST_PERIODIC = 50


@dataclass(eq=False)
class Training:
    """One run of a stack."""

    number: int  # among the runs that were asked for
    split: Split
    method: str
    settings: Settings  # the method's own completed by its defaults
    net: MLP  # with its initial weights
    augmentation: AnyAugmentation
    places: tuple[str, ...]  # where it acts; of several, one is drawn for every step
    sampler: BatchSampler
    groundwork: Groundwork = field(default_factory=Groundwork)
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0  # counted from 1; the last one if there are no validation rows
    ending: Ending | None = None  # as long as it has not ended
    seconds: float = 0.0  # its share of the time that its stack has taken

    @classmethod
    def make(
        cls,
        number: int,
        split: Split,
        name: str,
        settings: Settings,
        hidden: Sequence[int],
        initial: Mapping[str, Tensor] | None,
    ) -> Self:
        """Prepare a run: its net, its augmentation fitted on the training rows, its batches."""
        refuse_limits(split)
        x, y = split.train.x, split.train.y
        ready = methods.get(name).prepare(settings.method_settings, seed=settings.seed)
        if ready.inputs_too:
            raise PlaceError(
                "`place` must be 'input', 'layer' or 'layers' for stacked runs, got 'both'. Train "
                "it with fit."
            )
        net = make_table_net(split, settings, hidden=hidden)
        if initial is not None:
            net.double()  # or weights in float64 would lose digits
            load_weights(net, initial, source=f"`initial` for run {number}")
        groundwork = Groundwork.of(split, settings)
        augmentation = ready.augmentation
        count_cuts(augmentation)
        # A teacher is to know the targets, not what a line leaves of them.
        known = y if augmentation.teaches else groundwork.learned(as_rows(split.train), y).to(y)
        ready.fit(x, known, blocks=split.blocks)
        augmentation.restate(groundwork.learned)
        places = _find_places(ready.place(net), net, augmentation)
        sampler = ready.sampler(y, min(settings.batch_size, len(y)), drop_last=True)
        settings = replace(settings, method_settings=ready.settings)
        return cls(number, split, name, settings, net, augmentation, places, sampler, groundwork)

    @property
    def form(self) -> tuple[object, ...]:
        """What runs of one stack must share."""
        return (
            self.net.form,
            self.settings.metric,
            self.has_validation,
            self.split.pooled,
            self.sampler.batch_size,
            self.sampler.paired,  # then batches have twice as many rows
            self.places,
            *self.augmentation.structure,
        )

    @property
    def learns(self) -> tuple[int, int]:
        """Which rows and targets it learns: runs that share it are of one split."""
        return id(self.split), id(self.groundwork)

    @property
    def has_validation(self) -> bool:
        """Whether there are rows to choose the epoch by."""
        return len(self.split.validation) > 0

    @property
    def rates(self) -> tuple[object, ...]:
        """What decides the step of the optimizer: runs that share it are updated in one call."""
        own = self.settings
        rates = own.learning_rate, own.weight_decay, own.clip
        return (own.optimizer, *rates, own.schedule, own.epochs)

    def note(self, epoch: Epoch) -> bool:
        """Add an epoch, see whether the run ends with it, and return whether it is the best."""
        self.history.append(epoch)
        if not math.isfinite(epoch.loss):
            self.ending = "diverged"
            return False
        done = len(self.history)
        if not self.has_validation or is_best(self.history, self.best_epoch, self.settings):
            self.best_epoch = done
        self.ending = why_end(done, self.best_epoch, self.settings)
        return self.best_epoch == done


def make_table_net(split: Split, settings: Settings, *, hidden: Sequence[int]) -> MLP:
    """Make the net for a split as settings describe it, but for the linear part."""
    # All rows that the training sees: members of an ensemble, which stop on other rows, are alike.
    rows, spread = torch.cat([as_rows(split.train), as_rows(split.validation)]), settings.spread
    periodic = periodic_columns(rows) if settings.frequencies else ()
    form = NetForm(rows.shape[1], split.train.y.shape[1], tuple(hidden), periodic=periodic)
    if periodic:
        form = replace(form, frequencies=settings.frequencies)
    return form.make(spread=spread, seed=settings.seed)


def periodic_columns(x: Tensor) -> tuple[int, ...]:
    """Return the columns that periodic features are made of: those with more than two values.

    A yes-or-no column, as categories become, has none. Nor has a table with very many columns:
    there they would be most of the work.
    """
    columns = [column for column in range(x.shape[1]) if len(torch.unique(x[:, column])) > 2]
    return tuple(columns) if len(columns) <= MOST_PERIODIC else ()


def _find_places(
    place: str | tuple[str, ...], net: MLP, augmentation: AnyAugmentation
) -> tuple[str, ...]:
    """Return the layers at which a run acts if stacked runs can act there."""
    augmentation.at(net, place)  # refuses a layer that there is not, or at which it cannot act
    places = (place,) if isinstance(place, str) else tuple(dict.fromkeys(place))
    for layer in places:
        if layer not in (INPUT, *net.places):
            raise PlaceError(
                f"`place` must be {INPUT!r} or a hidden block ({', '.join(net.places)}) in stacked "
                f"runs, got {layer!r}. Train with fit instead."
            )
    if len(places) > 1 and augmentation.changes_rows:
        raise ArgumentError(
            f"`place` must be a single layer for an augmentation that changes the number of rows "
            f"(append, paired) in stacked runs, got {places}. Train with fit instead."
        )
    return places

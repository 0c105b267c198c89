"""What every augmentation shares: what it acts on, and how it is asked to."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from regaug._checks import check_batch, check_flag
from regaug.augment import recomputation
from regaug.augment.across import Across, AcrossRuns, RunBatches
from regaug.augment.chance import Chance
from regaug.augment.collate import Collate, CollateAndAugment, Get, Set
from regaug.augment.layer import AtLayer
from regaug.augment.layout import keep_layout
from regaug.augment.learner import Learner
from regaug.augment.limits import (
    Company,
    Labels,
    Limits,
    Piece,
    assemble,
    code_labels,
    join_masks,
)
from regaug.augment.structures import Batch, Joined
from regaug.exceptions import ArgumentError, ContractError

Params = TypeVar("Params")
X = TypeVar("X", bound=Batch)
Y = TypeVar("Y", bound=Batch)


class Augmentation(Chance, Learner, Generic[Params]):
    """A map from a batch to a batch: ``x, y = augmentation(x, y)``; the identity in ``eval()``.

    A subclass says how to draw parameters and how to apply them; this class decides when to do so.
    Inputs may have any shape ``(n, *features)``, targets ``(n,)`` or ``(n, *targets)``. Either may
    be several tensors in a tuple, a list or a dict: they are put side by side, augmented with one
    draw, and come back in the same form.

    ``augmentation(x, y, groups=labels)`` uses only rows of one group together; a row that is alone
    stays as it is. ``augmentation(x, y, mask=mask)`` changes only values that are there, if it can
    (:attr:`takes_mask`): see :meth:`forward`. Every augmentation takes these options:

    Args:
        p: Probability that a batch is touched.
        append: Return the originals followed by the new samples, instead of the new ones alone.
        anneal: Fraction of training over which the probability falls linearly from ``p`` to zero;
            needs ``total_steps``, or :attr:`progress` to be set. None keeps it constant.
        total_steps: How many calls in training mode there will be. They are counted, and drive
            ``anneal`` by themselves. None if :attr:`progress` is set as training goes on.
        generator: Source of randomness; one of its own, seeded 0, if None (the global one is never
            read).

    Attributes:
        params: What was drawn for the last batch; for its last group, if it has several.
    """

    neutral: Params  # the parameters that leave a batch as it is
    params: Params
    #: Whether a batch is samples followed by their partners, of which the samples come out.
    paired: bool = False
    #: Whether :attr:`weight` can be anything but 1.
    weighs: bool = False
    #: What a new row is made of beside itself: ``"none"``, ``"pairs"`` (the partner that the batch
    #: brings along), ``"partner"`` (one row of the batch), ``"batch"`` (all rows of the batch) or
    #: ``"stored"`` (training rows that :meth:`fit` has stored).
    company: Company = "batch"
    shown: tuple[str, ...] = ()  # settings that stand in the printed form, beside p and anneal
    _is_part: bool = False  # of a chain, which counts the calls

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # The arithmetic for stacks is that of the class which has it: another draw or transform
        # goes the plain way.
        own = vars(cls)
        if "across" not in own and ("draw" in own or "transform" in own):
            setattr(cls, "across", vars(Augmentation)["across"])  # noqa: B010 - or mypy objects
        # So is that for masks.
        if "transform_where" not in own and "transform" in own:
            setattr(cls, "transform_where", Augmentation.transform_where)  # noqa: B010

    def __init__(
        self,
        *,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p=p, anneal=anneal, total_steps=total_steps, generator=generator)
        self.append = check_flag("append", append)
        if not hasattr(self, "neutral"):
            raise ContractError(
                f"{type(self).__name__} must have `neutral`, the parameters that leave a batch as "
                "it is, got none. Give its class one, such as `neutral = 1.0`."
            )
        self.params = self.neutral

    def __setattr__(self, name: str, value: object) -> None:
        # Set in every step, of every run: the way a module sets attributes would cost more than
        # the draw itself.
        if name == "params":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)  # type: ignore[arg-type]  # a module takes anything

    @property
    def changes_rows(self) -> bool:
        """Whether a call may return more or fewer rows than it is given."""
        return self.append or self.paired

    @property
    def weight(self) -> float:
        """What the loss of the last batch is to be multiplied by."""
        return self.weight_of(self.params)

    def weight_of(self, params: Params) -> float:
        """Return what the loss is to be multiplied by for a draw; 1 for most."""
        return 1.0

    @property
    def takes_mask(self) -> bool:
        """Whether a call can be given a ``mask`` of the values that are there."""
        return type(self).transform_where is not Augmentation.transform_where

    def draw(self, x: Tensor, y: Tensor) -> Params:
        """Draw the parameters for one batch."""
        raise NotImplementedError

    def transform(self, x: Tensor, y: Tensor, params: Params) -> tuple[Tensor, Tensor]:
        """Apply drawn parameters to a batch; never changes the tensors it is given."""
        raise NotImplementedError

    def transform_where(
        self, x: Tensor, y: Tensor, params: Params, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Like :meth:`transform`, where not all values of ``x`` are there; few can.

        ``mask`` has the shape of ``x``. Values that are not there stay as they are, and nothing
        depends on them. A subclass that can do it has one: then :attr:`takes_mask` is true.
        """
        self._refuse_mask()

    def _refuse_mask(self) -> NoReturn:
        names = dict.fromkeys(
            type(part).__name__
            for part in self.modules()
            if isinstance(part, Augmentation)
            and type(part).transform_where is Augmentation.transform_where
        )
        raise ArgumentError(
            f"`mask` must be None for {' and '.join(names)}, which cannot leave out values, got "
            "one. Mixup, CMixup, SKMixup, FeatureMix and GaussianNoise take a mask."
        )

    def originals(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the part of a batch that plain training would see; all of it for most."""
        return x, y

    def observing(self, x: object, y: Tensor) -> AbstractContextManager[None]:
        """Let the augmentation know what a model is given, while its layers run; most need not.

        At a layer :meth:`draw` sees the layer's output. What it needs of the model's inputs is
        noted here. ``x`` is the model's first positional argument, None if it has none.
        """
        return nullcontext()

    if TYPE_CHECKING:  # a module's call could return anything

        def __call__(
            self, x: X, y: Y, *, mask: Batch | None = None, groups: Labels | None = None
        ) -> tuple[X, Y]:
            """Return a new batch of the form of this one."""

    def forward(
        self, x: X, y: Y, *, mask: Batch | None = None, groups: Labels | None = None
    ) -> tuple[X, Y]:
        """Draw, then transform.

        Args:
            x: Inputs ``(n, *features)``, or several tensors.
            y: Targets ``(n,)`` or ``(n, *targets)``, or several tensors.
            mask: True where a value of ``x`` is there: a tensor of bools that can be broadcast to
                ``x``, or has its leading axes only, such as ``(n, steps)``; of several tensors one
                for each, in the same form. Rows are mixed where both have a value; elsewhere a row
                keeps its own. Targets are mixed as ever.
            groups: A label for every row: rows of different groups are never used together. What is
                drawn is drawn for each group.
        """
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            limits = None  # the usual case, in which nothing is to be looked for
            if mask is not None or groups is not None:
                check_batch(x, y)
                limits = self._find_limits(x, y, mask, groups)
            new_x, new_y = self._augment_rows(x, y, limits)
            return keep_layout(new_x, x), new_y  # type: ignore[return-value]  # in their form
        rows_x, rows_y = Joined("x", x), Joined("y", y)
        limits = self._find_limits(x, rows_y.rows, mask, groups)
        new_x, new_y = self._augment_rows(rows_x.rows, rows_y.rows, limits)
        return rows_x.back(new_x), rows_y.back(new_y)

    def _find_limits(
        self, x: Batch, y: Tensor, mask: Batch | None, groups: Labels | None
    ) -> Limits | None:
        if mask is None and groups is None:
            return None
        if mask is not None and not self.takes_mask:
            self._refuse_mask()
        return Limits(
            None if groups is None else code_labels(groups, len(y)),
            None if mask is None else join_masks(x, mask),
        )

    def _augment_rows(self, x: Tensor, y: Tensor, limits: Limits | None) -> tuple[Tensor, Tensor]:
        check_batch(x, y)
        if not self.training:
            return x, y
        if recomputation.may_be_needed():
            return self._augment_in_part(x, y, limits)
        return self._augment(x, y, limits)

    def _augment(self, x: Tensor, y: Tensor, limits: Limits | None) -> tuple[Tensor, Tensor]:
        new = self._act(x, y, limits)
        if not self._is_part and (self.total_steps is not None or self._anneals()):
            self._progress.count(type(self).__name__)
        return new

    def _act(self, x: Tensor, y: Tensor, limits: Limits | None) -> tuple[Tensor, Tensor]:
        if limits is not None:
            return self._act_within(x, y, limits)
        params = self.draw(x, y) if self.happens(self.probability) else self.neutral
        self.params = self._public(params)
        return self.apply_draw(x, y, params)

    def _act_within(self, x: Tensor, y: Tensor, limits: Limits) -> tuple[Tensor, Tensor]:
        """Act on the parts of a batch that may be used together, one after another."""
        old_x, old_y = self.originals(x, y)
        self.params = self.neutral
        if not self.happens(self.probability):
            return old_x, old_y
        made: list[tuple[Piece, Tensor, Tensor]] = []
        for piece in limits.pieces(self.company, paired=self.paired, device=x.device):
            own_x, own_y = piece.of(x), piece.of(y)
            mask = None if limits.mask is None else piece.of(limits.mask)
            with self.within(piece, mask):
                params = self.draw(own_x, own_y)
                if params is self.neutral:
                    continue
                new_x, new_y = self._make(own_x, own_y, params, mask)
            self.params = self._public(params)
            made.append((piece, new_x, new_y))
        if len(made) > 1 and self.weighs:
            raise ArgumentError(
                "`groups` must be one group where the loss is weighted, as every group has a "
                "weight of its own, got several. Make such batches: sampler(..., groups=labels, "
                'pairs_within="group").'
            )
        new_x = assemble(old_x, [(piece.places, rows) for piece, rows, _ in made], self.append)
        new_y = assemble(old_y, [(piece.places, rows) for piece, _, rows in made], self.append)
        return new_x, new_y

    def within(self, piece: Piece, mask: Tensor | None) -> AbstractContextManager[None]:
        """Draw and transform for a part of a batch, for a while; most need not know of it."""
        return nullcontext()

    def _augment_in_part(
        self, x: Tensor, y: Tensor, limits: Limits | None
    ) -> tuple[Tensor, Tensor]:
        """Augment in a checkpointed part of a model: when that is recomputed, with equal draws."""
        parts = recomputation.running()
        now = self._moment
        moment = recomputation.same_again(self, lambda: now, parts)
        if not parts.again:
            return self._augment(x, y, limits)
        # It is the same call again, so it is not counted.
        ours = [module for module in self.modules() if isinstance(module, Augmentation)]
        params = [module.params for module in ours]
        try:
            self._moment = moment
            return self._act(x, y, limits)
        finally:
            self._moment = now
            for module, own in zip(ours, params, strict=True):
                module.params = own

    def apply_draw(
        self, x: Tensor, y: Tensor, params: Params, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return what the call returns once ``params`` are drawn: with ``append``, both."""
        if params is self.neutral:
            return self.originals(x, y)
        new_x, new_y = self._make(x, y, params, mask)
        if self.append:
            x, y = self.originals(x, y)
            return torch.cat([x, new_x]), torch.cat([y, new_y])
        return new_x, new_y

    def _make(
        self, x: Tensor, y: Tensor, params: Params, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if mask is None:
            return self.transform(x, y, params)
        return self.transform_where(x, y, params, mask)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several trainings together, which then act at once.

        The parts, one for each run, are alike in :attr:`structure`. This is the plain way, one run
        after another; a subclass may have a better one, with the same draws.
        """
        return AcrossRuns(parts, ahead=ahead)

    @classmethod
    def across_runs(cls, parts: Sequence[Self], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Draw and transform for several trainings at once, each with an augmentation of its own.

        ``x`` is ``(runs, n, *features)`` and ``y`` ``(runs, n, *targets)``. What was drawn is in
        the parts' ``params``.
        """
        return cls.across(parts).act(RunBatches(np.arange(len(parts)), x, y))

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (self.append,)

    def at(
        self, model: nn.Module, place: str | Sequence[str], *, output: int | str | None = None
    ) -> AtLayer[Params]:
        """Act on the output of a layer of ``model`` instead of on its inputs.

        Args:
            model: Any module; it is not edited.
            place: Name of a layer as in ``model.named_modules()``, or ``"input"``; of several, one
                is drawn for every call.
            output: Which output of a layer that puts out several: a number, counted from 0, or a
                key; the first tensor if None.

        Returns:
            What is called instead of the model: ``prediction, new_y = augment.at(...)(x, y)``.

        Example:
            >>> import torch.nn.functional as F
            >>> from regaug import FOMA
            >>> net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
            >>> x, y = torch.randn(16, 3), torch.randn(16, 1)
            >>> prediction, new_y = FOMA().at(net, "1")(x, y)
            >>> F.mse_loss(prediction, new_y).backward()
        """
        return AtLayer(self, model, place, output=output)

    def as_collate_fn(
        self, *, get: Get | None = None, set: Set | None = None, collate: Collate | None = None
    ) -> CollateAndAugment:
        """Return a ``collate_fn`` that makes batches and augments them.

        Args:
            get: ``get(batch)`` returns x and y of a batch that is not ``(x, y)``.
            set: ``set(batch, x, y)`` returns a new batch with these; goes with ``get``.
            collate: Makes a batch of a list of samples; torch's ``default_collate`` if None.

        It works in the workers of a ``DataLoader`` too: each has its own stream of draws, derived
        from this object's generator and from the loader's seed, and follows :attr:`progress`. With
        ``total_steps`` all workers count together, in the order in which they come to it.
        """
        self._progress.share()
        return CollateAndAugment(self, get=get, set=set, collate=collate)

    def extra_repr(self) -> str:
        """Show the settings that matter most, those that are set."""
        own = [(name, getattr(self, name)) for name in self.shown]
        given = [(name, value) for name, value in own if value is not None]
        shared = [("p", self.p), ("anneal", self.anneal)]
        if self.total_steps is not None:
            shared.append(("total_steps", self.total_steps))
        return ", ".join(f"{name}={value!r}" for name, value in [*given, *shared])

    def _public(self, params: Params) -> Params:
        """Return ``params`` without anything that would keep the batch in memory."""
        return params


AnyAugmentation: TypeAlias = Augmentation[Any]  # whatever it draws

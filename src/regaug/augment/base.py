"""What every augmentation shares: when it acts, on what, and where its randomness comes from."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_batch, check_flag, check_range
from regaug.augment import recomputation
from regaug.augment.across import Across, AcrossRuns, RunBatches
from regaug.augment.collate import Collate, CollateAndAugment, Get, Set
from regaug.augment.layer import AtLayer
from regaug.augment.layout import keep_layout
from regaug.augment.limits import Company, Labels, Limits, Piece, code_labels, join_masks
from regaug.augment.progress import SIZE, Progress
from regaug.augment.structures import Batch, Joined
from regaug.exceptions import ArgumentError, ArgumentTypeError, ContractError

Params = TypeVar("Params")
X = TypeVar("X", bound=Batch)
Y = TypeVar("Y", bound=Batch)


class Augmentation(nn.Module, Generic[Params]):
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
    #: Whether :meth:`fit` learns anything from the training rows.
    learns: bool = False
    #: Whether new targets are what it has learned itself, not made of those of a batch.
    teaches: bool = False
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
        super().__init__()
        self.p = check_range("p", p, 0.0, 1.0)
        self.append = check_flag("append", append)
        if anneal is not None:
            anneal = check_range("anneal", anneal, 0.0, 1.0, open_low=True)
        self.anneal = anneal
        if generator is not None and not isinstance(generator, torch.Generator):
            raise ArgumentTypeError(
                f"`generator` must be a torch.Generator or None, got {type(generator).__name__}. "
                "torch.Generator().manual_seed(0) makes one of a seed."
            )
        self.generator = _random.make_generator() if generator is None else generator
        if not hasattr(self, "neutral"):
            raise ContractError(
                f"{type(self).__name__} must have `neutral`, the parameters that leave a batch as "
                "it is, got none. Give its class one, such as `neutral = 1.0`."
            )
        self.params = self.neutral
        self._progress = Progress(total_steps)

    def __setattr__(self, name: str, value: object) -> None:
        # Set in every step, of every run: the way a module sets attributes would cost more than
        # the draw itself.
        if name == "params":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)  # type: ignore[arg-type]  # a module takes anything

    def __getstate__(self) -> dict[str, Any]:
        # A generator cannot be sent to another process, the bytes of its state can.
        state = self.generator.get_state().numpy().tobytes()
        return {**self.__dict__, "generator": (str(self.generator.device), state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        device, saved = state["generator"]
        super().__setstate__({**state, "generator": torch.Generator(device)})  # type: ignore[no-untyped-call]
        self.generator.set_state(torch.frombuffer(bytearray(saved), dtype=torch.uint8))

    @property
    def progress(self) -> float:
        """Share of training that is done, in [0, 1]; set it as you go to drive ``anneal``.

        With ``total_steps`` every call in training mode adds to it; what is set holds for the next
        call, and counting goes on from there.
        """
        return self._progress.value

    @progress.setter
    def progress(self, value: float) -> None:
        self._progress.value = value

    @property
    def total_steps(self) -> int | None:
        """How many calls make a whole training; None if they are not counted."""
        return self._progress.total_steps

    @property
    def probability(self) -> float:
        """Probability that the next batch is touched."""
        return self.p if self.anneal is None else self.probability_at(self.progress)

    def probability_at(self, progress: float) -> float:
        """Return the probability that a batch is touched when so much of training is done."""
        return self.p if self.anneal is None else self.p * max(0.0, 1.0 - progress / self.anneal)

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

    def fit(
        self,
        x: Batch,
        y: Batch,
        *,
        groups: Labels | None = None,
        blocks: Sequence[int] | None = None,
    ) -> Self:
        """Let the augmentation learn what it needs to know of the training rows; most need nothing.

        ``x`` and ``y`` are all training rows, in the form in which batches of them will come. With
        ``groups``, a label for each, stored rows are used only for batches that say their groups,
        and for rows of the same one. With ``blocks``, a number for every column of the inputs,
        columns of equal numbers belong together.
        """
        if blocks is not None:
            self.learn_blocks(blocks)
        if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
            x, y = Joined("x", x).rows, Joined("y", y).rows
        check_batch(x, y)
        self.learn(x, y)
        if groups is not None:
            self.learn_groups(code_labels(groups, len(y)))
        return self

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Learn from the training rows; a subclass that has to sets :attr:`learns` too."""

    def learn_groups(self, codes: Tensor) -> None:
        """Note the groups of the training rows; for those that use stored rows in a batch."""

    def learn_blocks(self, blocks: Sequence[int]) -> None:
        """Note which columns of the inputs belong together; for those that take columns whole.

        ``blocks`` has a number for every column, equal ones for those of a block, as
        ``split.blocks`` of a table. Told before :meth:`fit`.
        """

    def restate(self, learned: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Let new targets be what a training learns instead of them; for those that teach.

        ``learned(x, y)`` returns that for rows ``(n, d)`` and targets ``(n, m)``. Told after
        :meth:`fit`, to which the targets themselves were given.
        """

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
        new_x = _assemble(old_x, [(piece.places, rows) for piece, rows, _ in made], self.append)
        new_y = _assemble(old_y, [(piece.places, rows) for piece, _, rows in made], self.append)
        return new_x, new_y

    def within(self, piece: Piece, mask: Tensor | None) -> AbstractContextManager[None]:
        """Draw and transform for a part of a batch, for a while; most need not know of it."""
        return nullcontext()

    def _augment_in_part(
        self, x: Tensor, y: Tensor, limits: Limits | None
    ) -> tuple[Tensor, Tensor]:
        """Augment in a checkpointed part of a model: when that is recomputed, with equal draws."""
        parts = recomputation.running()
        now = self.generator.get_state(), self._progress.state
        state, progress = recomputation.same_again(self, lambda: now, parts)
        if not parts.again:
            return self._augment(x, y, limits)
        # It is the same call again, so it is not counted.
        ours = [module for module in self.modules() if isinstance(module, Augmentation)]
        params = [module.params for module in ours]
        try:
            self.generator.set_state(state)
            self._progress.state = progress
            return self._act(x, y, limits)
        finally:
            self.generator.set_state(now[0])
            self._progress.state = now[1]
            for module, own in zip(ours, params, strict=True):
                module.params = own

    def _anneals(self) -> bool:
        """Tell whether anything depends on how far training is."""
        return self.anneal is not None

    def happens(self, probability: float) -> bool:
        """Draw whether a batch is touched."""
        return probability >= 1.0 or _random.uniform(0.0, 1.0, self.generator) < probability

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

    def get_extra_state(self) -> Tensor:
        """Put the state of the generator and the progress into ``state_dict()``."""
        # One tensor: whoever stores weights can store it.
        return torch.cat([self.generator.get_state(), self._progress.to_bytes()])

    def set_extra_state(self, state: Tensor) -> None:
        """Continue the stream of draws, and the progress, where the saved ones stopped."""
        self.generator.set_state(state[:-SIZE].cpu())
        self._progress.from_bytes(state[-SIZE:].cpu())

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        # The size of some buffers is known only after `fit`: take the saved one.
        for name, buffer in self._buffers.items():
            saved = state_dict.get(prefix + name)
            if buffer is not None and saved is not None and saved.shape != buffer.shape:
                self._buffers[name] = torch.empty_like(saved, device=buffer.device)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

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


def _assemble(old: Tensor, made: Sequence[tuple[Tensor | None, Tensor]], append: bool) -> Tensor:
    """Return the samples of a batch with those that were made in their places, or behind them."""
    if not made:
        return old
    if append:
        return torch.cat([old, *(rows for _, rows in made)])
    places, rows = made[0]
    if places is None:  # all of the batch
        return rows
    if any(own is None or len(own) != len(rows) for own, rows in made):
        # The parts of a chain have appended to their groups: those that are alone come last.
        is_left = torch.ones(len(old), dtype=torch.bool, device=old.device)
        for own, _ in made:
            is_left[own] = False
        return torch.cat([*(rows for _, rows in made), old[is_left]])
    everywhere = torch.cat([own for own, _ in made if own is not None])
    return old.index_put((everywhere,), torch.cat([rows for _, rows in made]))


AnyAugmentation: TypeAlias = Augmentation[Any]  # whatever it draws

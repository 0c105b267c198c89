"""No augmentation, and several in a row."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TypeAlias, cast

import torch
from torch import Tensor, nn

from regaug.augment.across import Across, AcrossRuns, Pair, RunBatches
from regaug.augment.base import AnyAugmentation, Augmentation
from regaug.augment.joint import Known
from regaug.augment.limits import Company, Piece
from regaug.exceptions import ArgumentError, ArgumentTypeError

Draws: TypeAlias = tuple[Any, ...]  # what each part of a chain has drawn
# What decides for a chain, the first of these that a part has.
_COMPANY: tuple[Company, ...] = ("batch", "partner", "stored", "pairs")


class Identity(Augmentation[None]):
    """Return the batch as it is: plain training, the reference called erm.

    It takes the options of every :class:`Augmentation` so that it can stand in for any; they have
    no effect, as no new samples are made.

    Example:
        >>> x, y = torch.randn(8, 3), torch.randn(8)
        >>> Identity()(x, y)[0] is x
        True
    """

    neutral = None
    company = "none"

    def draw(self, x: Tensor, y: Tensor) -> None:
        """Draw nothing."""
        return self.neutral

    def transform(self, x: Tensor, y: Tensor, params: None) -> tuple[Tensor, Tensor]:
        """Return the batch."""
        return x, y

    def transform_where(
        self, x: Tensor, y: Tensor, params: None, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the batch."""
        return x, y

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: nothing happens in any."""
        return _NothingAcross(parts, ahead=ahead)


class _NothingAcross(AcrossRuns[Identity]):
    """Nothing for several runs."""

    is_idle = True

    def act(self, batches: RunBatches) -> Pair:
        """Return the batches."""
        return batches.x, batches.y


class Compose(Augmentation[Draws]):
    """Apply several augmentations in order, each to what the one before has made.

    Every part keeps its own ``p``, ``append`` and ``anneal``; those given here hold for the chain
    as a whole. :attr:`progress` is shared: setting it here sets it for all parts, and with
    ``total_steps`` the calls of the chain are counted, not those of its parts. So is the generator,
    because parts with equally seeded ones of their own would not draw independently.

    ``params`` is a tuple with what each part drew, empty if none of them touched the batch.

    Args:
        *augmentations: The parts; none at all is the identity.
        p: Probability that a batch is touched by the chain.
        append: Return the originals followed by what the chain makes.
        anneal: Fraction of training over which the probability falls to zero.
        total_steps: How many calls of the chain make a training; that of the parts if None.
        generator: Source of randomness of the chain and all its parts; the first part's if None.

    Example:
        >>> from regaug.augment.mixup import Mixup
        >>> from regaug.augment.noise import GaussianNoise
        >>> augment = Compose(Mixup(p=0.5), GaussianNoise(sigma=0.1), anneal=0.7)
        >>> new_x, new_y = augment(torch.randn(32, 5), torch.randn(32))
        >>> new_x.shape
        torch.Size([32, 5])
    """

    neutral: Draws = ()

    def __init__(
        self,
        *augmentations: AnyAugmentation,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        for part in augmentations:
            _check_part(part)
        if generator is None and augmentations:
            generator = augmentations[0].generator
        if total_steps is None:
            total_steps = _common_total_steps(augmentations)
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
        self.parts = cast(Sequence[AnyAugmentation], nn.ModuleList(augmentations))
        self.learns = any(part.learns for part in augmentations)
        self.paired = any(part.paired for part in augmentations)
        self.weighs = any(part.weighs for part in augmentations)
        known = {part.company for part in augmentations}
        self.company = next((own for own in _COMPANY if own in known), "none")
        self._mask: Tensor | None = None  # of the batch that is being drawn for
        self._share()

    def _share(self) -> None:
        for module in self.modules():  # the parts of a part as well
            if isinstance(module, Augmentation):
                module.generator, module._progress = self.generator, self._progress
                module._is_part = module is not self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._share()

    @property
    def changes_rows(self) -> bool:
        """Whether the chain or a part of it may return more or fewer rows than it is given."""
        return self.append or any(part.changes_rows for part in self.parts)

    def weight_of(self, params: Draws) -> float:
        """Return the product of the parts' weights."""
        pairs = zip(self.parts, params, strict=False)  # there are none in a batch left as it is
        return math.prod(part.weight_of(drawn) for part, drawn in pairs)

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Fit every part on the training rows."""
        for part in self.parts:
            part.fit(x, y)

    def learn_groups(self, codes: Tensor) -> None:
        """Let every part know the groups of the training rows."""
        for part in self.parts:
            part.learn_groups(codes)

    def learn_blocks(self, blocks: Sequence[int]) -> None:
        """Let every part know which columns belong together."""
        for part in self.parts:
            part.learn_blocks(blocks)

    @property
    def takes_mask(self) -> bool:
        """Whether all parts can be given a ``mask``."""
        return all(part.takes_mask for part in self.parts)

    def draw(self, x: Tensor, y: Tensor) -> Draws:
        """Draw for each part in turn; a part sees the batch as the parts before leave it."""
        new_x, new_y, params, mask = x, y, [], self._mask
        for part in self.parts:
            new_x, new_y = part(new_x, new_y, mask=mask)
            mask = _mask_after(part, mask, len(new_x))
            params.append(part.params if part.training else part.neutral)
        if all(drawn is part.neutral for part, drawn in zip(self.parts, params, strict=True)):
            return self.neutral
        drawn = _Drawn(params)
        drawn.made = Known((new_x, new_y), x, y), Known(True, new_x, new_y)
        return drawn

    def transform(self, x: Tensor, y: Tensor, params: Draws) -> tuple[Tensor, Tensor]:
        """Apply each part's draw in turn."""
        return self._go_through(x, y, params, None)

    def transform_where(
        self, x: Tensor, y: Tensor, params: Draws, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Apply each part's draw in turn, to the values that are there."""
        return self._go_through(x, y, params, mask)

    def _go_through(
        self, x: Tensor, y: Tensor, params: Draws, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if not params:
            return self.originals(x, y)
        if isinstance(params, _Drawn):
            known, is_unchanged = params.made
            if (made := known.of(x, y)) is not None and is_unchanged.of(*made):
                return made
        for part, drawn in zip(self.parts, params, strict=True):
            if part.training:
                x, y = part.apply_draw(x, y, drawn, mask)
                mask = _mask_after(part, mask, len(x))
        return x, y

    def originals(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the part of a batch that plain training would see."""
        for part in self.parts:
            x, y = part.originals(x, y)
        return x, y

    @contextmanager
    def observing(self, x: object, y: Tensor) -> Iterator[None]:
        """Let every part know what a model is given."""
        with ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.observing(x, y))
            yield

    @contextmanager
    def within(self, piece: Piece, mask: Tensor | None) -> Iterator[None]:
        """Let every part know which rows of a batch they are, and what is there of them."""
        before, self._mask = self._mask, mask
        with ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.within(piece, mask))
            try:
                yield
            finally:
                self._mask = before

    def _anneals(self) -> bool:
        return self.anneal is not None or any(part._anneals() for part in self.parts)

    def _public(self, params: Draws) -> Draws:
        return tuple(params)


class _Drawn(Draws):
    """The draws of a chain, and what they made of the batch: drawing has to run the chain."""

    made: tuple[Known[tuple[Tensor, Tensor]], Known[bool]]  # and whether that is as it was made


def _mask_after(part: AnyAugmentation, mask: Tensor | None, rows: int) -> Tensor | None:
    """Return the mask of what a part has made of a batch."""
    if mask is None or not part.training:
        return mask
    own = mask[: len(mask) // 2] if part.paired else mask
    return own if len(own) == rows else torch.cat([own, own])


def _common_total_steps(parts: Sequence[AnyAugmentation]) -> int | None:
    """Return the number of calls that the parts count, if any do."""
    given = sorted({part.total_steps for part in parts if part.total_steps is not None})
    if len(given) > 1:
        raise ArgumentError(
            "`total_steps` must be the same in all parts of a chain, which counts its calls for "
            f"them, got {' and '.join(map(str, given))}. Give it to the chain alone."
        )
    return given[0] if given else None


def _check_part(part: object) -> None:
    if isinstance(part, Augmentation):
        return
    hint = ""
    if isinstance(part, list | tuple):
        hint = " Give them one by one: Compose(first, second)."
    elif isinstance(part, type) and issubclass(part, Augmentation):
        hint = f" Make one of it: {part.__name__}()."
    came = part.__name__ if isinstance(part, type) else type(part).__name__
    raise ArgumentTypeError(f"`augmentations` must be augmentations, got {came}.{hint}")

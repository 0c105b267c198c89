"""When an augmentation acts, and where its randomness comes from."""

from typing import Any

import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_range
from regaug.augment.progress import SIZE, Progress, State
from regaug.exceptions import ArgumentTypeError


class Chance(nn.Module):
    """Acts on some calls and leaves others alone, by draws of its own generator.

    The probability may fall as training goes on. Copies, other processes and saved states continue
    the draws where they stopped. :class:`regaug.augment.Augmentation` says what the options mean.
    """

    def __init__(
        self,
        *,
        p: float,
        anneal: float | None,
        total_steps: int | None,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.p = check_range("p", p, 0.0, 1.0)
        if anneal is not None:
            anneal = check_range("anneal", anneal, 0.0, 1.0, open_low=True)
        self.anneal = anneal
        if generator is not None and not isinstance(generator, torch.Generator):
            raise ArgumentTypeError(
                f"`generator` must be a torch.Generator or None, got {type(generator).__name__}. "
                "torch.Generator().manual_seed(0) makes one of a seed."
            )
        self.generator = _random.make_generator() if generator is None else generator
        self._progress = Progress(total_steps)

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

    def happens(self, probability: float) -> bool:
        """Draw whether a batch is touched."""
        return probability >= 1.0 or _random.uniform(0.0, 1.0, self.generator) < probability

    def _anneals(self) -> bool:
        """Tell whether anything depends on how far training is."""
        return self.anneal is not None

    @property
    def _moment(self) -> tuple[Tensor, State]:
        """Where the draws and the progress are; what is set, they go on from."""
        return self.generator.get_state(), self._progress.state

    @_moment.setter
    def _moment(self, moment: tuple[Tensor, State]) -> None:
        state, progress = moment
        self.generator.set_state(state)
        self._progress.state = progress

    def get_extra_state(self) -> Tensor:
        """Put the state of the generator and the progress into ``state_dict()``."""
        # One tensor: whoever stores weights can store it.
        return torch.cat([self.generator.get_state(), self._progress.to_bytes()])

    def set_extra_state(self, state: Tensor) -> None:
        """Continue the stream of draws, and the progress, where the saved ones stopped."""
        self.generator.set_state(state[:-SIZE].cpu())
        self._progress.from_bytes(state[-SIZE:].cpu())

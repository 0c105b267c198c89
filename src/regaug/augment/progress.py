"""How far training is: what somebody says, or what the calls of an augmentation add up to."""

import warnings

import torch
from torch import Tensor

from regaug._checks import check_integer, check_range

# After so many calls somebody who anneals should have said how far training is.
PATIENCE = 100

State = tuple[float, float]


class Progress:
    """The share of training that is done, for an augmentation, or for a chain and all its parts.

    It is what was said last and, if the number of all calls is known, what those since then add to
    it. The numbers are tensors, so that copies in the workers of a loader can share them: they
    count together.

    Args:
        total_steps: Calls that make a whole training; None if somebody says how far it is.
    """

    def __init__(self, total_steps: int | None = None) -> None:
        if total_steps is not None:
            total_steps = check_integer("total_steps", total_steps, 1)
        self.total_steps = total_steps
        # Negative as long as nobody has said anything. On the CPU, whatever the default device is.
        self._said = torch.tensor(-1.0, dtype=torch.float64, device="cpu")
        self._calls = torch.tensor(0.0, dtype=torch.float64, device="cpu")  # since then

    @property
    def value(self) -> float:
        """The share of training that is done, in [0, 1]."""
        said = max(self._said.item(), 0.0)
        if self.total_steps is None:
            return said
        return min(1.0, said + self._calls.item() / self.total_steps)

    @value.setter
    def value(self, value: float) -> None:
        self.state = check_range("progress", value, 0.0, 1.0), 0.0

    @property
    def state(self) -> State:
        """All that changes."""
        return self._said.item(), self._calls.item()

    @state.setter
    def state(self, state: State) -> None:
        self._said.fill_(state[0])
        self._calls.fill_(state[1])

    def count(self, name: str) -> None:
        """Count a call; if nobody has said for long how far training is, say what to do.

        ``name`` is the class of whoever is called.
        """
        if self.total_steps is None and self._said.item() >= 0.0:
            return
        if self._calls.add_(1.0).item() == PATIENCE and self.total_steps is None:
            warnings.warn(
                f"{name} with `anneal` was called {PATIENCE} times in training mode, and its "
                "`progress` was never set: it stays at full strength. Set `augment.progress = step "
                f"/ steps` before each call, or let it count by itself: {name}(..., anneal=0.7, "
                "total_steps=steps).",
                stacklevel=3,
            )

    def share(self) -> None:
        """Have copies in other processes share the numbers."""
        for number in (self._said, self._calls):
            number.share_memory_()  # type: ignore[no-untyped-call]

    def to_bytes(self) -> Tensor:
        """Return all that changes as bytes, for a saved state."""
        return torch.stack([self._said, self._calls]).view(torch.uint8)

    def from_bytes(self, saved: Tensor) -> None:
        """Go on from what :meth:`to_bytes` has returned."""
        said, calls = saved.clone().view(torch.float64).tolist()  # copied, or it may lie askew
        self.state = said, calls


SIZE = Progress().to_bytes().numel()

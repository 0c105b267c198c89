"""What an augmentation learns from the training rows before it acts; most need nothing."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from regaug._checks import check_batch
from regaug.augment.limits import Labels, code_labels
from regaug.augment.structures import Batch, Joined


class Learner(nn.Module):
    """Is shown the training rows once; a subclass says what it notes of them."""

    #: Whether :meth:`fit` learns anything from the training rows.
    learns: bool = False
    #: Whether new targets are what it has learned itself, not made of those of a batch.
    teaches: bool = False

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

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        # The size of some buffers is known only after `fit`: take the saved one.
        for name, buffer in self._buffers.items():
            saved = state_dict.get(prefix + name)
            if buffer is not None and saved is not None and saved.shape != buffer.shape:
                self._buffers[name] = torch.empty_like(saved, device=buffer.device)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

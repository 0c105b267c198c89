"""Find out whether a training step uses targets before they have their values."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regaug.exceptions import PlaceError


class TargetsGuard(TorchFunctionMode):
    """Guards a tensor of targets that is filled in later, when a layer has run.

    Views of it (``y.squeeze(1)``, ``y[:, 0]``) get the new values too. What has been computed from
    it before (``y * 2``, ``y.double()``) does not: when such a tensor meets one with a gradient,
    a loss is being computed from stale targets, and that is an error. Nobody else holds the tensor,
    which is filled in by one ``targets.copy_(...)``.
    """

    def __init__(self, targets: Tensor, place: str) -> None:
        super().__init__()
        self._place, self._targets = place, targets
        self.is_filled = targets._version > 0
        self._stale: dict[int, Tensor] = {}  # held, or an id could be given to another tensor

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call ``function``, and see what it does with the targets."""
        kwargs = kwargs or {}
        version = self._targets._version
        result = function(*args, **kwargs)
        if function == Tensor.copy_ and args[0] is self._targets:
            self.is_filled = True
        elif function == Tensor.copy_ and not self._is_stale(args[1]):
            self._stale.pop(id(args[0]), None)  # it has got new values: targets of another guard
        elif not self.is_filled and self._targets._version != version:
            raise PlaceError(self._explain("changes the targets in place"))
        else:
            self._follow([*_tensors(args), *_tensors(kwargs)], list(_tensors(result)))
        return result

    def _follow(self, given: list[Tensor], made: list[Tensor]) -> None:
        """Note what was computed from the targets too early; refuse its use in a loss."""
        is_old = [self._is_stale(tensor) for tensor in given]
        if not any(is_old):
            return
        others = [tensor for tensor, old in zip(given, is_old, strict=True) if not old]
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in others):
            raise PlaceError(self._explain("computes with the targets"))
        self._stale |= {id(tensor): tensor for tensor in made if not self._is_view(tensor)}

    def _explain(self, what: str) -> str:
        return (
            f"The training step {what} before the layer {self._place!r} has run, or does not run "
            "it at all, so its loss would not see the new targets. Do that after the forward pass, "
            'or take AugmentCallback(..., targets="keep"), which leaves the targets as they are.'
        )

    def _is_stale(self, tensor: Tensor) -> bool:
        return id(tensor) in self._stale or (not self.is_filled and self._is_view(tensor))

    def _is_view(self, tensor: Tensor) -> bool:
        ours = self._targets.untyped_storage().data_ptr()
        return tensor.layout == torch.strided and tensor.untyped_storage().data_ptr() == ours


def _tensors(item: Any) -> Iterator[Tensor]:
    """Go through the tensors in nested lists, tuples and dicts."""
    if isinstance(item, Tensor):
        yield item
    elif isinstance(item, dict):
        yield from _tensors(list(item.values()))
    elif isinstance(item, list | tuple):
        for part in item:
            yield from _tensors(part)

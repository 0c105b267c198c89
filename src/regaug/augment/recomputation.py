"""Draws that are asked for twice: ``torch.utils.checkpoint`` runs parts of a forward pass again.

Memory is saved by not keeping what a part of a model computes and computing it again in the
backward pass. Whatever was drawn there must then be the same. PyTorch has one object for every such
part, which lives as long as the graph that may need it; what is drawn in the part is kept with it.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch.utils import checkpoint

from regaug.exceptions import RegaugError

T = TypeVar("T")


class Parts(NamedTuple):
    """The checkpointed parts of a forward pass that are running, innermost first."""

    first: tuple[object, ...] = ()  # those that run for the first time
    again: tuple[object, ...] = ()  # those that are being recomputed
    run: tuple[int, int] = (-1, -1)  # tells this recomputation from others of the same part


NONE = Parts()
# torch 2.6 cannot tell whether there are such hooks: there they may always be.
_top_hooks: Callable[[bool], object] = getattr(
    torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: True
)


class _Kept:
    """What one object has drawn in a part, and how much of it this recomputation has used."""

    run, used = (-1, -1), 0

    def __init__(self) -> None:
        self.values: list[object] = []


_kept: WeakKeyDictionary[object, WeakKeyDictionary[object, _Kept]] = WeakKeyDictionary()
_NOTHING: WeakKeyDictionary[object, _Kept] = WeakKeyDictionary()


def may_be_needed() -> bool:
    """Tell in no time whether anything may be recomputed here; most often nothing is."""
    # A part runs without gradients, or with hooks that keep its tensors from being saved; it runs
    # again while autograd does, or with such hooks.
    return not torch.compiler.is_compiling() and (
        not torch.is_grad_enabled()
        or _top_hooks(False) is not None
        or torch._C._current_graph_task_id() != -1
    )


def running() -> Parts:
    """Return the checkpointed parts in which this call is made."""
    if not may_be_needed():
        return NONE
    first, again = [], list[tuple[object, FrameType]]()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == checkpoint.__file__:  # a call in PyTorch's module
            name, known = frame.f_code.co_qualname, frame.f_locals
            if name == "CheckpointFunction.forward":  # the variant called reentrant
                first.append(known["ctx"])
            elif name == "CheckpointFunction.backward":
                again.append((known["ctx"], frame))
            elif name.endswith(".unpack_hook"):  # the other
                again.append((known["frame"], frame))
            elif name == "checkpoint" and known.get("gen") is not None:
                first.append(known["gen"].gi_frame.f_locals["new_frame"])
        frame = frame.f_back
    run = (torch._C._current_graph_task_id(), id(again[0][1])) if again else (-1, -1)
    return Parts(tuple(first), tuple(part for part, _ in again), run)


def same_again(owner: object, draw: Callable[[], T], parts: Parts | None = None) -> T:
    """Return what ``draw`` gives ``owner``, and the same once more when that is recomputed.

    ``parts`` is ``running()``, if the caller has it already.
    """
    parts = running() if parts is None else parts
    value: T = _recall(owner, parts) if parts.again else draw()  # type: ignore[assignment]  # its own
    for part in parts.first:
        _kept.setdefault(part, WeakKeyDictionary()).setdefault(owner, _Kept()).values.append(value)
    return value


def _recall(owner: object, parts: Parts) -> object:
    for part in parts.again:
        if (kept := _kept.get(part, _NOTHING).get(owner)) is None:
            continue
        if kept.run != parts.run:
            kept.run, kept.used = parts.run, 0
        if kept.used == len(kept.values):
            break
        kept.used += 1
        return kept.values[kept.used - 1]
    raise RegaugError(
        f"A checkpointed part of a forward pass runs again and asks {type(owner).__name__} for a "
        "draw that it did not ask for the first time, so its gradient would be wrong. Make the "
        "part do the same in both runs, or augment outside of it."
    )

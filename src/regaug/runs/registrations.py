"""What was registered by hand in this process, on its way to worker processes."""

import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import spawn

from regaug._registry import REGISTRIES
from regaug.methods import METHODS


@dataclass(frozen=True)
class Registration:
    """A thing that was registered, as it is sent.

    Attributes:
        group: That of its registry.
        name: What it is known by.
        content: The thing, pickled; None if that is impossible.
        reason: Why, then.
    """

    group: str
    name: str
    content: bytes | None
    reason: str = ""


def pack(dumps: Callable[[object], bytes] = pickle.dumps) -> tuple[Registration, ...]:
    """Return all that was registered in this process."""
    packed = []
    for group, registry in REGISTRIES.items():
        for name, thing in registry.registered.items():
            try:
                packed.append(Registration(group, name, dumps(thing)))
            except Exception as error:  # it may be needed by nobody
                packed.append(Registration(group, name, None, str(error)))
    return tuple(packed)


def unpack(sent: Iterable[Registration]) -> None:
    """Register what another process has sent; what cannot be is an error when it is asked for."""
    for own in sent:
        registry = REGISTRIES[own.group]
        if own.content is None:
            registry.note_unreachable(own.name, own.reason)
            continue
        try:
            thing = pickle.loads(own.content)  # noqa: S301 - from the process that started this one
            registry.register(own.name, thing, replace=True)
        except Exception as error:
            registry.note_unreachable(own.name, f"{type(error).__name__}: {error}")


def check_methods(names: Iterable[str]) -> None:
    """Refuse methods that worker processes could not know, before anything is started."""
    for own in pack():
        if own.group != METHODS.group or own.name not in names:
            continue
        if own.content is None:
            raise METHODS.unreachable(own.name, own.reason)
        if b"__main__" in own.content and not _main_is_a_file():
            raise METHODS.unreachable(own.name, "it was defined in an interactive session")


def _main_is_a_file() -> bool:
    """Tell whether a new process can import what was started, as it does with a script."""
    known = spawn.get_preparation_data("worker")
    return "init_main_from_name" in known or os.path.isfile(known.get("init_main_from_path", ""))

"""A rehearsal: two samples go through a network once, before a study trains it many times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from regaug import _random, methods
from regaug._scripts import is_blamed
from regaug.augment import Identity, Mixup
from regaug.augment.base import AnyAugmentation
from regaug.augment.structures import list_tensors
from regaug.data.base import Split
from regaug.data.several import in_memory, is_numeric
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    PlaceError,
    RegaugError,
    UnknownNameError,
)
from regaug.methods import INPUT, Reach
from regaug.problems import NETWORKS, Problem
from regaug.studies.config import REFERENCE, StudyConfig
from regaug.training.step import AugmentedLoss

# Rows that go through the network: one alone is too few for batch normalization.
_ROWS = 2


@dataclass(frozen=True)
class Rehearsal:
    """What is known of a network before it is trained.

    Attributes:
        places: Where methods can act: ``"input"`` if the inputs are numbers, and named layers.
        notes: What a reader should know of it, in sentences.
        pairs_pass: Whether all of a sample goes through these layers.
    """

    places: tuple[str, ...] = StudyConfig.places
    notes: tuple[str, ...] = ()
    pairs_pass: bool = True

    @property
    def layers(self) -> tuple[str, ...]:
        """The named layers."""
        return tuple(place for place in self.places if place != INPUT)

    @property
    def reach(self) -> Reach:
        """Where methods can act."""
        return Reach(INPUT in self.places, bool(self.layers), self.pairs_pass)


_known: WeakKeyDictionary[Problem, Rehearsal] = WeakKeyDictionary()


def rehearse(problem: Problem) -> Rehearsal:
    """Make the network of a problem once, let two samples through it and back, and look.

    The net for tables needs no rehearsal.

    Raises:
        ArgumentError: The network does not take the inputs, or puts out something else than a
            prediction for every target.
        PlaceError: An augmentation cannot act at a place.
        UnknownNameError: A place is no layer of the network.
    """
    if problem.kind != "network":
        # What a layer makes of inputs has no mask.
        return Rehearsal() if problem.mask is None else Rehearsal((INPUT,))
    if problem not in _known:
        _known[problem] = _rehearse(problem)
    return _known[problem]


def leave_out_by_place(problem: Problem, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the methods that find a place to act at, and what to say about that."""
    found = rehearse(problem)
    reasons: dict[str, list[str]] = {}
    for name in names:
        if (reason := _obstacle(name, found)) is not None:
            reasons.setdefault(reason, []).append(name)
    left = {name for own in reasons.values() for name in own}
    kept = tuple(name for name in names if name not in left)
    said = [
        f"{', '.join(own)} {'is' if len(own) == 1 else 'are'} left out: {reason}"
        for reason, own in reasons.items()
    ]
    if left and not set(kept) - {REFERENCE}:
        raise ArgumentError(
            f"`methods` must have one that can act on the problem. {' '.join(said)}"
        )
    return kept, [*found.notes, *said]


def _obstacle(name: str, found: Rehearsal) -> str | None:
    """Say why a method can act nowhere; None if it can."""
    method, reach = methods.get(name), found.reach
    if method.placed(reach) is not None:
        return None
    name_one = "Name one with Problem(..., places=[...])."
    if not reach.layers:
        codes = "" if reach.inputs else "the inputs are codes, and "
        return f"{codes}no layer is named to act at. {name_one}"
    if not reach.pairs and method.placed(replace(reach, pairs=True)) is not None:
        return (
            f"a part of each sample goes past {', '.join(found.layers)}, where a batch can have no "
            "other samples then. Name a layer that all of a sample goes through."
        )
    return "the inputs are codes, with nothing to learn from. Numbers are given as .float()."


def _rehearse(problem: Problem) -> Rehearsal:
    split = problem.split(0)
    pairs_pass = True
    with _random.seeded(0):
        net = problem.make_net(split, seed=0)
        if not any(weight.requires_grad for weight in net.parameters()):
            raise ArgumentError(
                f"`model` must make a network with weights to train, got {type(net).__name__} "
                "without any that need a gradient."
            )
        layers = _check_places(problem, net)
        # Those of the library are known to work, and large ones take their time.
        if problem.model not in NETWORKS.values() or problem.places is not None:
            _try(net, split, Identity())
            for place in layers:
                _try_place(net, split, place)
            pairs_pass = all(_lets_pairs_pass(net, split, place) for place in layers)
    if problem.mask is not None:
        layers = ()
    places = (*((INPUT,) if is_numeric(split.train.x) else ()), *layers)
    return Rehearsal(places, _notes(problem, split, layers, pairs_pass), pairs_pass)


def _check_places(problem: Problem, net: nn.Module) -> tuple[str, ...]:
    places = getattr(net, "places", ())
    is_list = isinstance(places, Sequence) and not isinstance(places, str)
    if not is_list or not all(isinstance(place, str) for place in places):
        name = "places" if problem.places is not None else "model.places"
        raise ArgumentTypeError(f"`{name}` must be a list of names of layers, got {places!r}.")
    return tuple(place for place in places if place != INPUT)


def _try(net: nn.Module, split: Split, augmentation: AnyAugmentation, place: str = INPUT) -> None:
    """Let two samples go through the network, and the gradient back."""
    x, y = split.train.x[:_ROWS], split.train.y[:_ROWS]
    try:
        net.train()
        at = None if place == INPUT else augmentation.at(net, place)
        AugmentedLoss(net, augmentation, at)(x, y).backward()
    except RegaugError:
        raise
    except Exception as error:
        if is_blamed(error):  # which shows the line
            raise
        raise ArgumentError(
            f"`model` must make a network that takes the inputs of the data, {_shapes(x)} for "
            f"{len(y)} samples, and can be trained. The first step of this {type(net).__name__} "
            f"ended in {type(error).__name__}: {error}"
        ) from error
    finally:
        net.zero_grad()


def _try_place(net: nn.Module, split: Split, place: str) -> None:
    try:
        if _is_scripted(net):
            raise PlaceError(
                f"The layer {place!r} is in a network that is compiled, which hides its layers. "
                "Return the module as it is, before torch.jit.script or torch.jit.trace, or say "
                "places=[] to act on the inputs alone."
            )
        _try(net, split, Mixup(), place)
    except UnknownNameError as error:
        raise UnknownNameError(f"`places` must be layers of the network. {error}") from error
    except (ArgumentTypeError, PlaceError) as error:
        raise PlaceError(f"`places` must be layers that methods can act at. {error}") from error


def _lets_pairs_pass(net: nn.Module, split: Split, place: str) -> bool:
    """Tell whether a layer may put out other samples than came in: whether nothing passes it by."""
    try:
        _try(net, split, Mixup(append=True), place)
    except ArgumentError:
        return False
    return True


def _is_scripted(net: nn.Module) -> bool:
    return any(isinstance(part, torch.jit.ScriptModule) for part in net.modules())


def _notes(
    problem: Problem, split: Split, layers: Sequence[str], pairs_pass: bool
) -> tuple[str, ...]:
    """Say where methods act, and how inputs are scaled if they are not."""
    by = "as `places` says" if problem.places is not None else "as the network itself says"
    named = f"{', '.join(layers)}, {by}"
    if not is_numeric(split.train.x):
        tensors = [own for _, own in list_tensors("x", split.train.x[:1])]
        dtypes = sorted({str(own.dtype) for own in tensors if not own.is_floating_point()})
        codes = f"The inputs have codes ({', '.join(dtypes)}), with nothing between them"
        notes = [f"{codes}: methods act at {named}." if layers else f"{codes}."]
    elif layers:
        notes = [f"Methods act on the inputs, and those that act at a layer at {named}."]
    elif problem.mask is not None:
        notes = [
            "The inputs have a mask: methods act on them alone, where it says that a value is."
        ]
    else:
        who = "The network names" if problem.places is None else "`places` names"
        notes = [f"{who} no layer: methods act on the inputs alone."]
    if layers and not pairs_pass:
        notes.append(
            f"A part of each sample goes past {', '.join(layers)}: methods that act there change "
            "the rest of it, and those that make other samples of a batch cannot."
        )
    if not problem.is_scaled and in_memory(split.train.x) is None:
        notes.append("The inputs are read when they are needed, and used as they are.")
    return tuple(notes)


def _shapes(x: Any) -> str:
    return ", ".join(f"{path} {tuple(own.shape)}" for path, own in list_tensors("x", x))

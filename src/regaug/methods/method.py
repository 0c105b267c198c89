"""A method, and the one way from it to the parts of a training."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from regaug import _random
from regaug._registry import lookup
from regaug.augment import Augmentation, CMixup, Identity
from regaug.augment.layer import AtLayer
from regaug.augment.limits import Labels, code_labels
from regaug.augment.structures import Batch
from regaug.augment.whole import CATEGORIES
from regaug.exceptions import ArgumentError, PlaceError
from regaug.methods.space import Between, OneOf, Options, Space
from regaug.samplers import SAMPLERS, BatchSampler

# A layer: the one a model names as its latent place. Layers: any that it names, drawn per step.
# Both: the inputs and the layer in every step, each with a draw of its own.
INPUT, LAYER, LAYERS, BOTH = "input", "layer", "layers", "both"
# Other rows of its group that a row meets in a random batch, on average: one of them is enough to
# be mixed with, and some rows meet fewer.
_ENOUGH = 4.0
# What says when and where a method acts in a training.
_IN_TRAINING = ("p", "anneal", "append", "place")
# New rows for every training row, where a method makes rows: at first, and in a search.
_SHARE, SHARE = 0.5, Between(0.05, 2.0, log=True)


@dataclass(frozen=True)
class Reach:
    """Where methods can act on a problem.

    Attributes:
        inputs: Whether the inputs are numbers: codes, such as token ids, have nothing between them.
        layers: Whether the network names a layer.
        pairs: Whether all of a sample goes through that layer, so that what makes fewer samples of
            a batch, such as one of each pair, or more, can act there.
        categories: Whether columns of the inputs belong together, as those of a category do: what
            can take them whole may try to.
    """

    inputs: bool = True
    layers: bool = True
    pairs: bool = True
    categories: bool = False


class Inputs(Protocol):
    """Inputs that are read when they are asked for."""

    def __getitem__(self, rows: slice, /) -> Tensor:
        """Read the inputs of some rows."""


@dataclass(frozen=True)
class Method:
    """A sampler, an augmentation and a place, with defaults and a search space.

    Attributes:
        summary: What it does, in one line.
        augmentation: Makes the augmentation from its options.
        defaults: Settings that are a sensible start, ``sampler`` and ``place`` among them.
        space: What a search may change, and how far; "almost off" is always within reach.
        starts: Changes to the defaults that a search tries first, before the defaults themselves:
            settings that are good on real tables, or somewhere and unlikely to be drawn.
        sampler_options: Settings that are the sampler's, not the augmentation's.
        counts: Settings that cannot be larger than the number of training rows.
        usual: Whether a study tries it when nobody says which methods to try.
        for_rare: Whether it is meant for rare targets: it gives up some of the error on common
            ones, so that a mean over all rows does not show what it is for.
        teachers: Baselines that its setting ``teacher`` may name: they stand beside it in a study,
            where it takes only those that can be fitted.
        formula: What becomes of a sample (x, y), short, in plain text; empty if nobody says.
        paper: Where it is from: authors, venue and year, and the number at arXiv; likewise.
    """

    summary: str
    augmentation: Callable[..., Augmentation[Any]]
    defaults: Options
    space: Space = field(default_factory=dict)
    starts: tuple[Options, ...] = ()
    sampler_options: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    usual: bool = True
    for_rare: bool = False
    teachers: tuple[str, ...] = ()
    formula: str = ""
    paper: str = ""

    @property
    def options(self) -> frozenset[str]:
        """Names of the augmentation's options that are settings."""
        given = signature(self.augmentation).parameters.values()
        names = {own.name for own in given if own.kind not in (own.VAR_POSITIONAL, own.VAR_KEYWORD)}
        if any(own.kind is own.VAR_KEYWORD for own in given):  # handed on to the base class
            names |= signature(Augmentation).parameters.keys()
        return frozenset(names - {"generator", "total_steps"})

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Return the defaults with some of them changed.

        Any option of the augmentation, ``sampler``, ``place``, the sampler's own; but no generator
        and no ``total_steps``, which are the training's to know.
        """
        known = self.defaults.keys() | self.options
        for name in changes:
            lookup("setting", name, dict.fromkeys(known))
        return {**self.defaults, **changes}

    def draw_settings(self, rng: np.random.Generator) -> dict[str, Any]:
        """Draw settings from the search space."""
        return self.settings(**{name: choice.draw(rng) for name, choice in self.space.items()})

    def prepare(self, changes: Options | None = None, *, seed: int = 0) -> "Prepared":
        """Make the augmentation, and get ready to make the sampler and to find the place.

        ``changes`` are settings that differ from the defaults; ``seed`` is for batches and draws.

        Example:
            >>> from regaug.methods import get
            >>> import torch
            >>> x, y = torch.randn(100, 5), torch.randn(100)
            >>> ready = get("c-mixup").prepare({"alpha": 2.0}).fit(x, y)
            >>> for batch in ready.sampler(y, 20):
            ...     new_x, new_y = ready.augmentation(x[batch], y[batch])
            >>> new_x.shape
            torch.Size([20, 5])
        """
        settings = self.settings(**(changes or {}))
        others = {"sampler", "place", *self.sampler_options, *({"share"} - self.options)}
        options = {name: value for name, value in settings.items() if name not in others}
        generator = _random.make_generator(_random.derive(_random.Stream.AUGMENTATION, seed))
        augmentation = self.augmentation(generator=generator, **options)
        if settings["place"] == BOTH and augmentation.paired:
            raise PlaceError(
                "`place` must be 'input' or a layer for pairs of samples, got 'both': the first of "
                "the two places uses the pairs up."
            )
        return Prepared(self, settings, augmentation, seed, frozenset(changes or ()))

    def lowered(self, settings: Options, rows: int) -> dict[str, Any]:
        """Return settings of the method, none of which asks for more than so many training rows."""
        return {
            name: min(value, rows) if name in self.counts else value
            for name, value in settings.items()
        }

    def as_maker(self) -> Self | None:
        """Return the method as one that makes new rows of a table; None if it makes none.

        It has a further setting, ``share``: new rows for every training row. Those that say when
        and where to act in a training are gone: rows are made at full strength, on the inputs.

        Example:
            >>> from regaug.methods import get
            >>> maker = get("mixup").as_maker()
            >>> sorted(maker.space), get("manifold-mixup").as_maker()
            (['alpha', 'share'], None)
        """
        where = self.space.get("place")
        places = where.values if isinstance(where, OneOf) else ()
        if self.augmentation is Identity or INPUT not in (self.defaults["place"], *places):
            return None

        def kept(own: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in own.items() if name not in _IN_TRAINING}

        # A method may have a share of its own, as a copy of no method at all has: none.
        usual = {} if "share" in self.defaults else {"share": SHARE}
        return replace(
            self,
            defaults={"share": _SHARE, **kept(self.defaults), "place": INPUT},
            space={**kept(self.space), **usual},
            starts=(),  # what is good in a training says nothing of rows
        )

    def suited(self, rows: int) -> Self:
        """Return the method with defaults and a space that so many training rows allow.

        Example:
            >>> from regaug.methods import get
            >>> ada = get("ada").suited(7)
            >>> ada.defaults["clusters"], ada.space["clusters"]
            (7, OneOf(values=(4,)))
        """
        defaults, space = self.lowered(self.defaults, rows), dict(self.space)
        most = {}
        for name in self.counts:
            if isinstance(choice := space.get(name), OneOf):
                few = tuple(value for value in choice.values if value <= rows) or (rows,)
                space[name], most[name] = OneOf(few), max(few)
        starts = tuple(
            {name: min(value, most[name]) if name in most else value for name, value in own.items()}
            for own in self.starts
        )
        return replace(self, defaults=defaults, space=space, starts=starts)

    def taught(self, baselines: Collection[str]) -> Self | None:
        """Return the method with teachers that are among these baselines; None if none is.

        Example:
            >>> from regaug.methods import get
            >>> get("teacher-rows").taught(["mean", "trees"]).defaults["teacher"]
            'trees'
            >>> get("mixup").taught([]) is get("mixup")
            True
        """
        left = tuple(name for name in self.teachers if name in baselines)
        if left == self.teachers:
            return self
        if not left:
            return None
        first = self.defaults["teacher"]
        defaults = {**self.defaults, "teacher": first if first in left else left[0]}
        starts = tuple(own for own in self.starts if own.get("teacher", left[0]) in left)
        space = {**self.space, "teacher": OneOf(left)}
        return replace(self, defaults=defaults, space=space, starts=starts, teachers=left)

    def placed(self, reach: Reach) -> Self | None:
        """Return the method with settings that act where it can; None if it cannot act anywhere.

        Example:
            >>> from regaug.methods import get
            >>> get("foma").placed(Reach(layers=False)).space["place"]
            OneOf(values=('input',))
            >>> get("mixup").placed(Reach(inputs=False)).defaults["place"]
            'layer'
            >>> get("manifold-mixup").placed(Reach(layers=False)) is None
            True
            >>> get("mixup").placed(Reach(categories=True)).space["categories"]
            OneOf(values=('mix', 'whole'))
        """
        if self.augmentation is Identity:
            return self
        augmentation = self.prepare().augmentation
        if augmentation.learns and not reach.inputs:  # from them
            return None
        at_layer = reach.layers and (reach.pairs or not augmentation.changes_rows)
        can = {INPUT: reach.inputs, LAYER: at_layer, LAYERS: at_layer}
        can[BOTH] = reach.inputs and at_layer

        def fits(place: object) -> bool:
            # A layer by its name is there or not, whatever else is.
            return can.get(place, True) if isinstance(place, str) else True

        choice = self.space.get("place")
        tried = choice.values if isinstance(choice, OneOf) else ()
        possible = tuple(place for place in tried if fits(place))
        defaults, space = dict(self.defaults), dict(self.space)
        if not fits(defaults["place"]):
            # What acts on inputs can act on the output of a layer. Not so the other way round:
            # what is made for a layer would be another method.
            if not possible and (defaults["place"] != INPUT or not at_layer):
                return None
            defaults["place"] = possible[0] if possible else LAYER
        if possible:
            space["place"] = OneOf(possible)
        else:
            space.pop("place", None)
        acts_on_inputs = INPUT in (defaults["place"], *possible)  # what a layer puts out has none
        if reach.categories and acts_on_inputs and "categories" in self.options:
            space.setdefault("categories", OneOf(CATEGORIES))
            defaults.setdefault("categories", CATEGORIES[0])
        starts = tuple(start for start in self.starts if fits(start.get("place")))
        return replace(self, defaults=defaults, space=space, starts=starts)


@dataclass(frozen=True)
class Prepared:
    """A method with its settings, ready for a training: the one way from a method to its parts."""

    method: Method
    settings: dict[str, Any]  # all of them
    augmentation: Augmentation[Any]  # seeded
    seed: int  # of the batches
    given: frozenset[str] = frozenset()  # settings that somebody has asked for

    @property
    def inputs_too(self) -> bool:
        """Whether the augmentation acts on the inputs as well as at its place."""
        return bool(self.settings["place"] == BOTH)

    def fit(
        self,
        x: Batch | Inputs,
        y: Batch,
        *,
        groups: Labels | None = None,
        blocks: Sequence[int] | None = None,
    ) -> Self:
        """Let the augmentation learn from the training rows; they are read only if it does.

        With ``groups``, a label for every row, rows of different ones are not to be mixed. With
        ``blocks``, a number for every column, such as ``split.blocks`` of a table, columns of equal
        numbers belong together.
        """
        if blocks is not None:
            self.augmentation.learn_blocks(blocks)
        if self.augmentation.learns:
            self._adapt(len(y))
            limits: dict[str, Any] = {} if groups is None else {"groups": groups}
            self.augmentation.fit(x if isinstance(x, Mapping) else x[:], y, **limits)
        return self

    def _adapt(self, rows: int) -> None:
        """Lower what nobody has asked for to what so many training rows allow."""
        for name in set(self.method.counts) - self.given:
            self.settings[name] = min(self.settings[name], rows)
            setattr(self.augmentation, name, self.settings[name])

    def sampler(
        self,
        y: Tensor,
        batch_size: int,
        *,
        seed: int | None = None,
        drop_last: bool = False,
        groups: Labels | None = None,
    ) -> BatchSampler:
        """Make the batch sampler for rows with these targets.

        With ``groups``, a label for every row, it brings rows of a group together where the method
        needs that, or gives them a partner of their group. Its batches are as large, and as many,
        as ever: say the groups of a batch's rows when it is augmented.
        """
        options = {name: self.settings[name] for name in self.method.sampler_options}
        name = self.settings["sampler"]
        sampler = lookup("sampler", name, SAMPLERS)
        if unknown := options.keys() - signature(sampler).parameters.keys():
            raise ArgumentError(
                f"`sampler` must be {self.method.defaults['sampler']!r} for this method, which "
                f"draws by {', '.join(sorted(unknown))}, got {name!r}."
            )
        if groups is not None and self._needs_groups(sampler, groups, batch_size):
            if "groups" not in signature(sampler).parameters:
                raise ArgumentError(
                    f"`sampler` must take `groups` to keep them apart, which {name!r} does not. "
                    "Take another one, such as 'random'."
                )
            options["groups"] = groups
        if sampler.paired:  # however far apart its partners are
            for part in self.augmentation.modules():
                if isinstance(part, CMixup):
                    part.trust_pairs()
        seed = self.seed if seed is None else seed
        return sampler(y, batch_size, seed=seed, drop_last=drop_last, **options)

    def _needs_groups(self, sampler: type[BatchSampler], groups: Labels, batch_size: int) -> bool:
        """Tell whether the batches must be made by group.

        They stay as those of plain training where a row finds enough of its group in them.
        """
        company = self.augmentation.company
        if company != "partner" or sampler.paired or sampler is not SAMPLERS["random"]:
            return sampler.paired or company in ("partner", "batch")
        codes = code_labels(groups)
        sizes, n = torch.unique(codes, return_counts=True)[1], len(codes)
        met = (batch_size - 1) * float((sizes * (sizes - 1)).sum()) / max(n * (n - 1), 1)
        return met < _ENOUGH

    def place(self, model: nn.Module) -> str | tuple[str, ...]:
        """Return where in a model the augmentation acts: a name, or several of which one is drawn.

        Networks of :mod:`regaug.models` name their layers in ``model.places``, the best known one
        first. For any other model give the name of a layer as ``place``, or a list of names.
        """
        place = self.settings["place"]
        if place not in (LAYER, LAYERS, BOTH):
            return place if isinstance(place, str) else tuple(place)
        known = getattr(model, "places", ())
        if not known:
            layers = ", ".join(repr(name) for name, _ in model.named_modules() if name)
            raise PlaceError(
                f"{type(model).__name__} does not say where {place!r} is: give it an attribute "
                f"`places`, or name a layer as `place`, one of {layers}."
            )
        return tuple(known) if place == LAYERS else str(known[0])

    def at(self, model: nn.Module) -> AtLayer[Any] | None:
        """Return what is called instead of the model; None if the inputs are the only place."""
        place = self.place(model)
        return None if place == INPUT else self.augmentation.at(model, place)

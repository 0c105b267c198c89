"""What the code says of a method, as text: how it is called, its paper, where it acts."""

import re
from inspect import signature

from regaug.augment import Identity
from regaug.methods import BOTH, INPUT, LAYER, LAYERS, MAKERS, Method, OneOf
from regaug.methods.table import OWN

PLACES = {INPUT: "inputs", LAYER: "a layer", LAYERS: "a hidden layer", BOTH: "inputs and a layer"}
# Options that say when a method acts, not what it does.
_WHEN = {"p", "anneal", "append"}


def described() -> dict[str, Method]:
    """Return all methods, and what makes rows and is one, not something to compare with."""
    return {**OWN, **{name: method for name, method in MAKERS.items() if method.formula}}


def paper(method: Method) -> str:
    """Return the paper, with links."""
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[arXiv \1](https://arxiv.org/abs/\1)", method.paper)


def call(method: Method) -> str:
    """Write the augmentation with the options that make it this method."""
    if method in MAKERS.values():
        return ""
    make = method.augmentation
    known = {own.name: own.default for own in signature(make).parameters.values()}
    apart = {"sampler", "place", *method.sampler_options, *_WHEN}
    options = [
        f"{name}={value!r}".replace("'", '"')
        for name, value in method.defaults.items()
        if name not in apart and name in known and known[name] != value
    ]
    return f"`{make.__name__}({', '.join(options)})`" if options else f"`{make.__name__}`"


def place(method: Method) -> str:
    """Say where a method acts: its place, others that a search tries, and its batches."""
    if "place" not in method.defaults:
        return "rows of a table"
    choice, sampler = method.space.get("place"), method.defaults["sampler"]
    tried = choice.values if isinstance(choice, OneOf) else ()
    places = dict.fromkeys(PLACES.get(own, own) for own in (method.defaults["place"], *tried))
    words = [] if method.augmentation is Identity else [" or ".join(places)]
    words += [] if sampler == "random" else [f"batches (`{sampler}`)"]
    return ", ".join(words) or "nothing"

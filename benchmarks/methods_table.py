"""The table of methods in the README and the docs, from the code and the results.

What a method does, its formula and its paper are said in ``regaug/methods/table.py`` and nowhere
else; what it costs and what it is worth come from ``python -m benchmarks.costs`` and
``python -m benchmarks.atlas.field``.
"""

import re
from inspect import signature

from benchmarks import costs
from benchmarks.atlas.field import ENOUGH
from benchmarks.atlas.pooling import Line, Pooled, pool, table
from regaug.augment import Identity
from regaug.formatting import count
from regaug.methods import BOTH, INPUT, LAYER, LAYERS, MAKERS, Method, OneOf
from regaug.methods.table import OWN
from regaug.studies.config import REFERENCE

MISSING = "not measured yet"
PLACES = {INPUT: "inputs", LAYER: "a layer", LAYERS: "a hidden layer", BOTH: "inputs and a layer"}
# Options that say when a method acts, not what it does.
_WHEN = {"p", "anneal", "append"}
CAPTION = (
    "`make tables` writes this table. A change is the mean over real tables against plain training",
    "with as many trainings, with its 95 % interval; told apart is what remains so after a",
    "correction for the number of methods ([more](docs/field.md)).",
)
HEAD = ("method", "augmentation", "what it does", "formula", "paper", "acts on")


def make_table(known: list[Line], cost: costs.Costs) -> list[str]:
    """Return the table, with what was measured of each method."""
    enough = known if len(known) >= ENOUGH else []
    found = {own.name: own for own in pool(enough, OWN, REFERENCE)}
    rows = []
    for name, method in described().items():
        step = f"x{cost[name]['defaults']:.2f}" if name in cost else MISSING
        if name == REFERENCE:
            measured = ["x1.00", "what the others are compared with"]
        elif name in MAKERS:
            measured = ["makes rows, no steps", "for regressors and `regaug augment`"]
        else:
            measured = [step, _worth(found.get(name))]
        rows.append([f"`{name}`", *_facts(method), *measured])
    head = [*HEAD, "step, plain training = 1", "change of the RMSE over tables"]
    return [*table(head, rows), *CAPTION, ""]


def described() -> dict[str, Method]:
    """Return all methods, and what makes rows and is one, not something to compare with."""
    return {**OWN, **{name: method for name, method in MAKERS.items() if method.formula}}


def _facts(method: Method) -> list[str]:
    formula = f"`{method.formula}`" if method.formula else ""
    return [call(method), method.summary, formula, paper(method), place(method)]


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


def _worth(own: Pooled | None) -> str:
    if own is None:
        return MISSING
    middle, span = own.words
    told = "told apart" if own.is_sure else "not told apart"
    return f"{middle} ({span}; {count(own.tables, 'table')}): {told}"

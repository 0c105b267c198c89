"""What two studies differ in, in the words of whoever asked for them."""

from collections.abc import Callable, Mapping
from typing import Any

from regaug.formatting import count
from regaug.runs.run import run_key
from regaug.studies.config import NEWER

Values = Mapping[str, Any]
# What follows from something else that was changed: other rows, splits or settings.
_FOLLOWS = {
    "checksum": (
        "rows",
        "columns",
        "categories",
        "target_names",
        "splits",
        "seed",
        "test_share",
        "problem",
    ),
    "test_share": ("rows", "splits", "problem"),
    "train_rows": ("rows", "splits", "seed", "test_share", "problem"),
    "baselines": ("rows", "columns", "problem", "model"),
    "network": ("problem", "columns", "target_names"),
    "recipes": ("trials", "kind"),
    "recipe": ("trials", "metric", "rows", "seed", "methods", "epochs", "kind"),
    "methods": ("kind", "model"),
    "reference": ("kind",),
    "hidden": ("kind",),
    "kind": ("model",),
    "repeats": ("splits",),
    "rungs": ("epochs", "recipes"),
}


def _names(values: Any) -> str:
    return ", ".join(map(str, values)) or "none"


def _span(numbers: Any) -> str:
    ends = dict.fromkeys((min(numbers, default=0), max(numbers, default=0)))
    return " to ".join(map(str, ends))


# How a part of a configuration is said; what is not here is named as it is.
_WORDS: Mapping[str, Callable[[Any], str]] = {
    "problem": lambda name: f"the data {name}",
    "methods": lambda names: f"the methods {_names(names)}",
    "baselines": lambda names: f"the baselines {_names(names)}",
    "trials": lambda n: f"{count(n, 'setting')} of every method",
    "splits": lambda n: count(n, "split"),
    "metric": lambda name: f"the metric {name}",
    "independent": lambda is_so: f"{'independent' if is_so else 'overlapping'} splits",
    "search": lambda name: f"the search {name}",
    "seed": lambda n: f"seed {n}",
    "rows": lambda n: count(n, "row"),
    "columns": lambda n: count(n, "input"),
    "train_rows": lambda n: f"splits of {count(n, 'training row')} and more",
    "target_names": lambda names: (
        f"the {'target' if len(names) == 1 else 'targets'} {_names(names)}"
    ),
    "places": lambda names: f"methods that act at {_names(names)}",
    "pairs_pass": lambda is_so: f"layers that {'all' if is_so else 'a part'} of a sample passes",
    "hidden": lambda widths: f"hidden layers {_names(widths)}",
    "recipes": lambda n: count(n, "recipe"),
    "test_share": lambda share: f"{share:.2g} test rows for every other one",
    "reference": lambda name: f"the reference {name}",
    "kind": lambda name: "a regressor" if name == "estimator" else f"a {name} net",
    "model": lambda name: f"the model {name}" if name else "a net",
    "categories": lambda is_so: f"{'some' if is_so else 'no'} columns that belong together",
    "keep_integers": lambda is_so: f"whole numbers {'kept' if is_so else 'mixed'} in new rows",
    "repeats": lambda n: f"{count(n, 'repetition')} of a split",
    "epochs": lambda numbers: f"{_span(numbers)} epochs",
    "fair": lambda name: f"the same {name} for every method",
    "rungs": lambda numbers: f"recipes that may end after {_names(numbers)} epochs",
}
_TABLE = (
    "problem",
    "rows",
    "columns",
    "categories",
    "train_rows",
    "target_names",
    "test_share",
    "baselines",
)


def say_differences(was: Values, now: Values) -> list[str]:
    """Return what the study of a folder has, and what was asked for instead, each in words.

    What follows from another difference is left out. Both are configurations as plain values.

    Example:
        >>> say_differences({"splits": 10, "checksum": "a"}, {"splits": 5, "checksum": "b"})
        ['it has 10 splits, and you asked for 5 splits']
        >>> say_differences({"checksum": "a"}, {"checksum": "b"})
        ['the table has changed since: as many rows, with other values']
    """
    if not set(was) ^ set(now) <= set(NEWER):
        return ["another version of regaug has written it"]
    usual = {name: NEWER[name] for name in NEWER if name in was or name in now}
    was, now = {**usual, **was}, {**usual, **now}
    changed = [name for name in now if run_key({name: was[name]}) != run_key({name: now[name]})]
    told = [name for name in changed if not set(_FOLLOWS.get(name, ())) & set(changed)]
    return [_say(name, was[name], now[name]) for name in told]


def _say(name: str, was: Any, now: Any) -> str:
    if name == "checksum":
        return "the table has changed since: as many rows, with other values"
    if name == "network":
        return "the network has changed since"
    if name == "recipe":
        return "another version of regaug has written it, with other recipes"
    words = _WORDS.get(name, lambda value: f"{name} {value}")
    asked = "the table has" if name in _TABLE else "you asked for"
    return f"it has {words(was)}, and {asked} {words(now)}"

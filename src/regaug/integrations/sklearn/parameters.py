"""The parameters of the estimators, checked under their own names before anything is trained."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regaug import methods
from regaug._checks import check_choice, check_integer, check_range
from regaug.ensemble.contents import AUTO
from regaug.ensemble.fit import MOST_MEMBERS
from regaug.exceptions import ArgumentError, ArgumentTypeError

_FLAGS = ("linear", "relevance", "early_stopping")


def check_regressor(own: Mapping[str, Any]) -> None:
    """Refuse what cannot be used as the parameters of ``AugmentedMLPRegressor``."""
    check_method(own["method"], own["method_settings"], auto=True)
    check_integer("members", own["members"], 1, MOST_MEMBERS)
    hidden_widths(own["hidden_layer_sizes"])
    check_integer("frequencies", own["frequencies"], 0)
    for name in _FLAGS:
        check_flag(name, own[name])
    check_range("average", own["average"], 0.0, 1.0)
    check_integer("max_iter", own["max_iter"], 1)
    if isinstance(own["batch_size"], str):
        check_choice("batch_size", own["batch_size"], ("auto",))
    else:
        check_integer("batch_size", own["batch_size"], 1)
    check_range("learning_rate_init", own["learning_rate_init"], 0.0, open_low=True)
    check_range("weight_decay", own["weight_decay"], 0.0)
    check_range("validation_fraction", own["validation_fraction"], 0.0, 0.5, open_low=True)
    patience(own["n_iter_no_change"])


def check_method(name: object, changes: object, *, auto: bool = False) -> None:
    """Refuse a method that there is not, and settings that it does not have."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"`method` must be the name of a method, got {name!r}.")
    if not (changes is None or isinstance(changes, Mapping)):
        raise ArgumentTypeError(
            f"`method_settings` must be a dict of settings or None, got {changes!r}."
        )
    if auto and name == AUTO:
        if changes:
            raise ArgumentError(
                f'`method_settings` must be None with method="auto", got {dict(changes)!r}: each '
                "method that is compared has settings of its own. Name a method."
            )
        return
    known = methods.MAKERS[name] if name == methods.SMOGN and not auto else methods.get(name)
    known.settings(**(changes or {}))


def check_flag(name: str, value: object) -> bool:
    """Return a flag, NumPy's own among them; a text such as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)


def patience(value: Any) -> int | None:
    """Return the epochs to wait for progress; None, for ever, if that is infinity."""
    if isinstance(value, float | np.floating) and value == np.inf:
        return None
    return check_integer("n_iter_no_change", value, 1)


def hidden_widths(value: Any) -> tuple[int, ...]:
    """Return the widths of the hidden layers; a number is that of one."""
    name = "hidden_layer_sizes"
    widths = [value] if isinstance(value, str) or np.ndim(value) == 0 else list(value)
    if not widths:
        raise ArgumentError(f"`{name}` must give the width of at least one layer, got none.")
    return tuple(check_integer(name, width, 1) for width in widths)

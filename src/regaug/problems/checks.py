"""What a problem refuses: splits, models, functions and rows that do not fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from regaug._checks import check_floating
from regaug._registry import lookup
from regaug.augment.limits import join_masks
from regaug.data.base import Mask, Part, Split
from regaug.data.scaling import StandardizedSplit
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.samplers.base import PairsWithin
from regaug.training.estimators import REGRESSORS

_FUNCTIONS = {
    "inputs": "a function from a sample to its inputs",
    "targets": "a function from a sample to its targets; their names are `target_names`",
    "mask": "a function from a batch of inputs to flags",
}


def check_functions(given: Mapping[str, object]) -> None:
    """Refuse what cannot be called; None is left out."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise ArgumentTypeError(f"`{name}` must be {_FUNCTIONS[name]}, got {value!r}.")


def check_places(places: object) -> None:
    """Refuse one name where a list of them belongs."""
    if isinstance(places, str):
        raise ArgumentTypeError(
            f"`places` must be a list of names of layers, got {places!r}. "
            f"Write places=[{places!r}]."
        )


def check_model(model: Any) -> None:
    """Refuse what makes no network and is no regressor."""
    if isinstance(model, str):
        lookup("regressor", model, dict.fromkeys(REGRESSORS))
        return
    is_net = isinstance(model, nn.Module)
    if model is None or (not is_net and (callable(model) or hasattr(model, "fit"))):
        return
    way_out = " Every run trains a fresh one: def make_net(split): return ..." if is_net else ""
    raise ArgumentTypeError(
        "`model` must be a function that makes a network for a split, got "
        f"{type(model).__name__}.{way_out}"
    )


def check_list(splits: object) -> None:
    """Refuse what is no list of splits."""
    what, way_out = "`splits` must be a list of splits, got", "Make them with data.split(seed)."
    if not isinstance(splits, Sequence) or not splits:
        raise ArgumentTypeError(f"{what} {type(splits).__name__}. {way_out}")
    for split in splits:
        if not isinstance(split, Split):
            raise ArgumentTypeError(f"{what} {type(split).__name__} in it. {way_out}")


def check_splits(splits: Sequence[Split], *, is_for_table: bool, is_scaled: bool) -> None:
    """Refuse inputs that the table net cannot take, and targets that have lost their units."""
    for number, split in enumerate(splits):
        if is_for_table:
            _check_for_table_net(split, number)
        if not is_scaled:
            _check_scale(split)


def _check_for_table_net(split: Split, number: int) -> None:
    if not isinstance(split.train.x, Tensor):
        raise ArgumentError(
            "`splits` must have their inputs in memory for the table net, as tables do. "
            "Give a network of your own: Problem(splits, model=make_net)."
        )
    check_floating(f"splits[{number}].train.x", split.train.x)


def _check_scale(split: Split) -> None:
    if isinstance(split, StandardizedSplit):
        raise ArgumentError(
            "`splits` must be in the target's own units, got standardized ones. A study "
            "scales them itself: give data.split(seed). Those of a series are scaled; say "
            "is_scaled=True to train on them as they are."
        )


def check_limits(
    splits: Sequence[Split], pairs_within: PairsWithin | None, mask: Mask | None
) -> None:
    """Refuse rows without the groups that pairs stay within, and a mask that does not fit them."""
    for split in splits:
        _check_limits_of(split, pairs_within, mask)


def _check_limits_of(split: Split, pairs_within: PairsWithin | None, mask: Mask | None) -> None:
    if pairs_within is not None and split.train.groups is None:
        raise ArgumentError(
            "`splits` must have groups for pairs_within='group', a label for every row in "
            "part.groups, got none."
        )
    if mask is None:
        return
    x = split.train.x[:2]
    try:
        found = mask(x)
    except Exception as error:  # it is somebody else's code that is tried
        raise ArgumentError(
            f"`mask` must make flags of a batch of inputs, and ends with {type(error).__name__}: "
            f"{error}"
        ) from error
    join_masks(x, found)


def check_regressor_options(given: Mapping[str, object]) -> None:
    """Refuse what nets have no use for."""
    for name, value in given.items():
        if value:
            raise ArgumentError(
                f"`{name}` needs a regressor that learns from new rows, got nets. Choose one: "
                'model="boosting".'
            )


def check_rows(rows: Sequence[Part], splits: Sequence[Split]) -> None:
    """Refuse rows from elsewhere that do not fit."""
    if not rows:
        return
    if len(rows) not in (1, len(splits)):
        raise ArgumentError(
            f"`rows` must be one part, or one for each of the {len(splits)} splits, got "
            f"{len(rows)}."
        )
    train = splits[0].train
    wanted = (*train.x.shape[1:], train.y.shape[1])
    for part in rows:
        came = (*part.x.shape[1:], part.y.shape[1])
        if came != wanted:
            raise ArgumentError(
                f"`rows` must have the {wanted} inputs and targets of the splits, got {came}."
            )

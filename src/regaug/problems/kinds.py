"""What is trained: the net for tables, a network of one's own, a regressor, Lightning's module."""

from collections.abc import Sequence
from typing import Any, Literal

from regaug.data.base import Split
from regaug.problems.sequences import LoadedSplits
from regaug.training.estimators import call_factory, is_regressor

Kind = Literal["table", "network", "estimator", "lightning"]


def find_kind(model: Any, splits: Sequence[Split]) -> Kind:
    """Return what the model of a problem is; a function is called to see what it makes."""
    if model is None:
        return "table"
    if isinstance(model, str) or is_regressor(model):
        return "estimator"
    if isinstance(splits, LoadedSplits):  # calling it would read the data
        return "network"
    try:
        made = call_factory(model, splits[0], 0)
    except Exception:  # which comes again, where it can be told
        return "network"
    return "estimator" if is_regressor(made) else "network"

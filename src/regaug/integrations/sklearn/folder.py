"""What a model folder says about the estimator that wrote it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regaug.data.scaling import Scaler
from regaug.data.tabular.columns import Number
from regaug.data.tabular.encoding import Encoder
from regaug.ensemble import Ensemble
from regaug.ensemble.preparation import Preparation
from regaug.exceptions import ArgumentTypeError, CheckpointError

KEY = "estimator"


def make_preparation(scaler: Scaler, names: Sequence[str] | None) -> Preparation:
    """Return what lets ``regaug predict`` find the columns of a table by name, if it can."""
    if names is None or len(set(names)) < len(names):
        return Preparation(None, scaler)
    means = zip(names, scaler.mean, strict=True)
    columns = [Number(name, fill=float(mean), indicator=False) for name, mean in means]
    return Preparation(Encoder(tuple(columns)), scaler)


def as_plain(name: str, value: object) -> object:
    """Return a parameter as JSON can hold it; a random state that is an object is left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, Mapping):
        return {str(key): as_plain(f"{name}.{key}", item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        items = [as_plain(name, item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if value is None or isinstance(value, str | int | float):
        return value
    came = type(value).__name__
    raise ArgumentTypeError(
        f"`{name}` must be a number, text or a list of them to be saved, got {came}."
    )


def read_about(model: Ensemble, kind: str, parameters: Sequence[str]) -> dict[str, Any]:
    """Return what an estimator of this class noted in its model, after checking it."""
    about = model.about.get(KEY)
    if not isinstance(about, dict) or about.get("kind") != kind:
        raise CheckpointError(
            f"The model was not saved by {kind}. Read it with regaug.ensemble.Ensemble.load."
        )
    own = about.get("parameters")
    names, columns = about.get("feature_names"), len(model.preparation.scaler.mean)
    are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
    is_sound = (
        set(about)
        == {"kind", "parameters", "feature_names", "is_flat", "is_single", "n_iter", "inner_errors"}
        and isinstance(own, dict)
        and set(own) == set(parameters)
        and (names is None or (are_names and len(names) == columns))
        and isinstance(about["is_flat"], bool)
        and isinstance(about["is_single"], bool)
        and (len(model.targets) == 1 or not about["is_flat"])
        and type(about["n_iter"]) is int
        and isinstance(about["inner_errors"], dict)
    )
    if not is_sound:
        raise CheckpointError(
            f"What the model says about its {kind} cannot be used. It was changed after it was "
            "written, or written by another version of regaug. Fit it again."
        )
    return about

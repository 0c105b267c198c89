"""A model as a folder: written at once, and read as data that nobody vouches for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regaug import methods
from regaug.data.scaling import Scaler
from regaug.data.tabular.encoding import Encoder
from regaug.ensemble.intervals import Calibration
from regaug.ensemble.members import Members
from regaug.ensemble.model import Ensemble
from regaug.ensemble.preparation import Preparation
from regaug.exceptions import CheckpointError, DataError, RegaugError
from regaug.metrics import Scores
from regaug.training.settings import Settings
from regaug.training.state_files import read_state, write_state

FORMAT, VERSION, NAME = "regaug-ensemble", 1, "model"
_PLAIN = (str, int, float, type(None))
_KEYS = {
    "format",
    "version",
    "targets",
    "method",
    "settings",
    "made_by",
    "encoder",
    "inputs",
    "outputs",
    "log",
    "hidden",
    "weights",
    "floor",
    "scores",
    "held_out",
}
_MORE = "about"  # only where there is something


def write_model(model: Ensemble, folder: Path) -> None:
    """Write a model so that ``folder`` holds all of it or is as before."""
    encoder, calibration = model.preparation.encoder, model.calibration
    state: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "targets": list(model.targets),
        "method": model.method,
        "settings": model.settings.to_dict(),
        "made_by": dict(model.made_by),
        "encoder": None if encoder is None else encoder.to_json(),
        "inputs": model.preparation.scaler.to_dict(),
        "outputs": model.members.scaler.to_dict(),
        "log": model.members.log,
        "hidden": list(model.members.hidden),
        "weights": dict(model.members.weights),
        "floor": None if calibration is None else calibration.floor,
        "scores": None if calibration is None else calibration.scores,
        "held_out": None if model.held_out is None else model.held_out.to_dict(),
    }
    if model.about:
        state[_MORE] = dict(model.about)
    write_state(folder, state, name=NAME)


def read_model(folder: Path) -> Ensemble:
    """Read a model, or say in a ``CheckpointError`` why it cannot be used."""
    for file in (f"{NAME}.json", f"{NAME}.safetensors"):
        # A folder whose writing was killed may be under another name, which read_state knows.
        if folder.is_dir() and not (folder / file).is_file():
            raise CheckpointError(f"There is no model in {folder}: the file {file} is missing.")
    state = read_state(folder, name=NAME)
    try:
        return _model_from(state)
    except RegaugError as error:
        raise CheckpointError(
            f"Cannot use the model {folder}: {error} It was changed after it was written, or "
            "written by another version of regaug. Fit it again."
        ) from error


def _model_from(state: Mapping[str, Any]) -> Ensemble:
    """Make the model, checking every value, and every size before anything is made of it."""
    is_known = _is_whole(state.get("version")) and state["version"] == VERSION
    is_model = isinstance(state.get("format"), str) and state["format"] == FORMAT
    _check(is_model and is_known, "format", f"be {FORMAT!r} of version {VERSION}")
    has_all = set(state) - {_MORE} == _KEYS
    _check(has_all, "model.json", f"have exactly the keys {', '.join(sorted(_KEYS))}")
    about = state.get(_MORE, {})
    _check(
        isinstance(about, dict) and all(isinstance(k, str) for k in about), _MORE, "be an object"
    )
    targets = _texts("targets", state["targets"])
    _check(len(set(targets)) == len(targets) > 0, "targets", "be different names")
    inputs, outputs = (_scaler(key, state[key]) for key in ("inputs", "outputs"))
    _check(len(outputs.mean) == len(targets), "outputs", "have a number for every target")
    encoder = None if state["encoder"] is None else Encoder.from_json(state["encoder"])
    if encoder is not None:
        is_fitting = len(encoder.feature_names) == len(inputs.mean)
        _check(is_fitting, "inputs", "have a number for every encoded column")
    _check(isinstance(state["log"], bool), "log", "be true or false")
    hidden, weights = _weights(state["hidden"], state["weights"], len(inputs.mean), len(targets))
    method, settings = _settings(state["method"], state["settings"])
    are_both = (state["held_out"] is None) == (state["floor"] is None)
    _check(are_both, "held_out", "be there if and only if there is a calibration")
    made_by = state["made_by"]
    _check(isinstance(made_by, dict), "made_by", "be an object")
    _texts("made_by", [*made_by, *made_by.values()])
    return Ensemble(
        targets=targets,
        method=method,
        settings=settings,
        preparation=Preparation(encoder, inputs),
        members=Members(hidden, weights, outputs, state["log"]),
        calibration=_calibration(state["floor"], state["scores"], len(targets)),
        held_out=_held_out(state["held_out"]),
        made_by=made_by,
        about=about,
    )


def _weights(
    hidden: Any, weights: Any, inputs: int, targets: int
) -> tuple[tuple[int, ...], dict[str, Tensor]]:
    """Return the widths and the weights if they belong together."""
    is_list = isinstance(hidden, list) and len(hidden) > 0
    _check(is_list and all(_is_whole(w) and w > 0 for w in hidden), "hidden", "be widths of layers")
    has_all = isinstance(weights, dict) and len(weights) == 2 * (len(hidden) + 1)
    _check(has_all, "weights", "be two tensors for every layer")
    for name, weight in weights.items():
        is_float = isinstance(weight, Tensor) and weight.dtype == torch.float32
        _check(is_float and weight.ndim > 0, f"weights.{name}", "be a tensor of float32")
        _check(bool(weight.isfinite().all()), f"weights.{name}", "be finite")
    members = len(next(iter(weights.values())))
    # The net is made only if it is as large as the tensors that are here already.
    widths = [inputs, *hidden, targets]
    size = sum((before + 1) * after for before, after in pairwise(widths))
    found = sum(weight.numel() for weight in weights.values())
    _check(
        members > 0 and found == members * size, "weights", "fit the layers that `hidden` describes"
    )
    shapes = {
        name: (members, *shape)
        for name, shape in Members.layout(inputs, targets, hidden).shapes.items()
    }
    are_fitting = {name: tuple(weight.shape) for name, weight in weights.items()} == shapes
    _check(are_fitting, "weights", "fit the layers that `hidden` describes")
    return tuple(hidden), {name: weights[name] for name in shapes}


def _calibration(floor: Any, scores: Any, targets: int) -> Calibration | None:
    if floor is None and scores is None:
        return None
    for name, tensor in (("floor", floor), ("scores", scores)):
        is_double = isinstance(tensor, Tensor) and tensor.dtype == torch.float64
        _check(is_double and tensor.numel() > 0, name, "be a tensor of float64")
        _check(bool(tensor.isfinite().all()), name, "be finite")
    _check(floor.shape == (targets,) and bool((floor > 0).all()), "floor", "be positive")
    is_table = scores.ndim == 2 and scores.shape[1] == targets
    is_sorted = is_table and bool((scores[0] >= 0).all() and (scores.diff(dim=0) >= 0).all())
    _check(is_sorted, "scores", "be ascending columns, one for each target")
    return Calibration(floor, scores)


def _scaler(name: str, numbers: Any) -> Scaler:
    _check(isinstance(numbers, dict) and set(numbers) == {"mean", "std"}, name, "be a scale")
    for values in numbers.values():
        _check(isinstance(values, list) and len(values) > 0, name, "be lists of numbers")
        _check(all(_is_finite(value) for value in values), name, "be lists of finite numbers")
    return Scaler.from_dict(numbers)


def _settings(method: Any, values: Any) -> tuple[str, Settings]:
    _check(isinstance(method, str), "method", "be text")
    known = {part.name for part in fields(Settings)}
    has_all = isinstance(values, dict) and set(values) == known
    _check(has_all, "settings", f"have the keys {', '.join(sorted(known))}")
    own = values["method"]
    _check(isinstance(own, dict), "settings.method", "be values by name")
    _texts("settings.method", list(own))
    others = [value for name, value in values.items() if name != "method"]
    are_plain = all(_is_plain(value) for value in (*others, *own.values()))
    _check(are_plain, "settings", "be numbers, texts and lists of them")
    methods.get(method).settings(**own)  # refuses names that the method does not have
    return method, Settings(**values)


def _held_out(values: Any) -> Scores | None:
    if values is None:
        return None
    is_dict = isinstance(values, dict) and values.get("groups") == {}
    _check(is_dict, "held_out", "be scores without groups")
    numbers = [value for key, value in values.items() if key != "groups" and value is not None]
    are_finite = all(_is_finite(value) or _is_whole(value) for value in numbers)
    _check(are_finite, "held_out", "be finite numbers")
    return Scores.from_dict(values)


def _texts(name: str, values: Any) -> tuple[str, ...]:
    are_texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
    _check(are_texts, name, "be texts")
    return tuple(values)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return all(isinstance(item, _PLAIN) for item in value)
    return isinstance(value, _PLAIN)


def _check(is_right: bool, name: str, must: str) -> None:
    if not is_right:
        raise DataError(f"`{name}` must {must}.")

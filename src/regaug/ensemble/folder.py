"""A model as a folder: written at once, and read as data that nobody vouches for."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regaug import _files, methods
from regaug._files import entry
from regaug._version import __version__
from regaug.data.scaling import Scaler
from regaug.data.tabular.encoding import Encoder
from regaug.ensemble.intervals import Calibration
from regaug.ensemble.members import Members
from regaug.ensemble.preparation import Preparation
from regaug.exceptions import CheckpointError, DataError, FileError, RegaugError
from regaug.metrics import Scores
from regaug.models.mlp import NetForm
from regaug.training.results import versions
from regaug.training.settings import Settings
from regaug.training.state import pack, unpack

FORMAT, VERSION = "regaug-ensemble", 1
JSON, TENSORS = "model.json", "model.safetensors"
_KEYS = {
    *("targets", "method", "settings", "made_by", "encoder", "inputs", "outputs", "log"),
    *("form", "weights", "floor", "scores", "held_out"),
}
_MORE = "about"  # only where there is something


@dataclass(frozen=True, eq=False)
class Contents:
    """What a model consists of; :class:`regaug.ensemble.Ensemble` says what it is."""

    targets: tuple[str, ...]
    method: str
    settings: Settings
    preparation: Preparation = field(repr=False)
    members: Members
    calibration: Calibration | None = field(default=None, repr=False)
    held_out: Scores | None = None
    made_by: Mapping[str, str] = field(default_factory=versions, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)


def write_model(model: Contents, folder: Path) -> None:
    """Write a model so that ``folder`` holds all of it or is as before."""
    encoder, calibration = model.preparation.encoder, model.calibration
    state: dict[str, object] = {
        "targets": list(model.targets),
        "method": model.method,
        "settings": model.settings.to_dict(),
        "made_by": dict(model.made_by),
        "encoder": None if encoder is None else encoder.to_json(),
        "inputs": model.preparation.scaler.to_dict(),
        "outputs": model.members.scaler.to_dict(),
        "log": model.members.log,
        "form": model.members.form.to_dict(),
        "weights": dict(model.members.weights),
        "floor": None if calibration is None else calibration.floor,
        "scores": None if calibration is None else calibration.scores,
        "held_out": None if model.held_out is None else model.held_out.to_dict(),
    }
    if model.about:
        state[_MORE] = dict(model.about)
    write_state(folder, state)


def read_model(folder: Path) -> Contents:
    """Read a model, or say in a ``CheckpointError`` why it cannot be used."""
    state = read_state(folder)
    try:
        return _model_from(state)
    except RegaugError as error:
        raise _unusable(folder, str(error)) from error


def write_state(folder: Path, state: Mapping[str, object]) -> None:
    """Write what a model consists of as the two files of a folder."""
    if folder.is_dir() and (others := sorted(set(os.listdir(folder)) - {JSON, TENSORS})):
        raise CheckpointError(  # it would be lost
            f"Could not write the model {folder}: the folder holds something else ({others[0]}). "
            "Choose a folder of its own."
        )
    tree, tensors = pack("state", state)
    content, checksum = _files.dump_tensors(tensors, {})
    head = {"format": FORMAT, "version": VERSION, "regaug": __version__, "tensors": checksum}
    try:
        _files.write_folder(folder, {TENSORS: content, JSON: _files.seal({**head, "state": tree})})
    except FileError as error:
        raise CheckpointError(str(error)) from error


def read_state(folder: Path) -> dict[str, object]:
    """Return what :func:`write_state` wrote, after checking that it is undamaged."""
    folder = _files.find_folder(folder)
    for name in (JSON, TENSORS):
        if not (folder / name).is_file():
            raise CheckpointError(f"There is no model in {folder}: the file {name} is missing.")
    try:
        document = _files.read_json(folder / JSON, dict)
        _check(document.get("format") == FORMAT, JSON, f"have the format {FORMAT!r}")
        version = entry(document, "version", int)
        _files.check_format(folder / JSON, version, VERSION, document.get("regaug"))
        tensors, about = _files.read_tensors(folder / TENSORS)
        is_intact = _files.is_sealed((folder / JSON).read_bytes())
        _check(is_intact and document.get("tensors") == about["tensors"], JSON, f"fit {TENSORS}")
        return unpack(document.get("state"), tensors)
    except FileError as error:
        raise CheckpointError(f"{error} Fit the model again.") from error
    except DataError as error:
        raise _unusable(folder, str(error)) from error


def _unusable(folder: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"Cannot use the model {folder}: {reason} It was changed after it was written, or "
        "written by another version of regaug. Fit it again."
    )


def _model_from(state: Mapping[str, object]) -> Contents:
    """Make the model, checking every value, and every size before anything is made of it."""
    _check(set(state) - {_MORE} == _KEYS, JSON, f"have the keys {', '.join(sorted(_KEYS))}")
    targets = _texts("targets", entry(state, "targets", list))
    _check(len(set(targets)) == len(targets) > 0, "targets", "be different names")
    inputs, outputs = (_scaler(key, entry(state, key, dict)) for key in ("inputs", "outputs"))
    _check(len(outputs.mean) == len(targets), "outputs", "have a number for every target")
    encoder = None
    if state["encoder"] is not None:
        encoder = Encoder.from_json(entry(state, "encoder", str))
        columns = len(encoder.feature_names)
        _check(columns == len(inputs.mean), "inputs", "have a number for every encoded column")
    form = _form(entry(state, "form", dict), len(inputs.mean), len(targets))
    weights = _weights(state, form)
    are_both = (state["held_out"] is None) == (state["floor"] is None)
    _check(are_both, "held_out", "be there if and only if there is a calibration")
    made_by = entry(state, "made_by", dict)
    _texts("made_by", [*made_by, *made_by.values()])
    about = entry({_MORE: {}, **state}, _MORE, dict)
    _texts(_MORE, list(about))
    method = entry(state, "method", str)
    return Contents(
        targets=targets,
        method=method,
        settings=_settings(method, entry(state, "settings", dict)),
        preparation=Preparation(encoder, inputs),
        members=Members(form, weights, outputs, entry(state, "log", bool)),
        calibration=_calibration(state, len(targets)),
        held_out=None if state["held_out"] is None else _scores(entry(state, "held_out", dict)),
        made_by=made_by,
        about=about,
    )


def _form(values: Mapping[str, object], inputs: int, targets: int) -> NetForm:
    """Return the form of the nets, for a table of so many columns and targets."""
    names = [part.name for part in fields(NetForm)]
    _check(sorted(values) == sorted(names), "form", f"have the keys {', '.join(names)}")
    hidden, periodic = entry(values, "hidden", list), entry(values, "periodic", list)
    are_widths = hidden and all(type(width) is int and width > 0 for width in hidden)
    _check(are_widths, "form.hidden", "be widths of layers")
    are_columns = all(type(column) is int and 0 <= column < inputs for column in periodic)
    _check(are_columns and len(set(periodic)) == len(periodic), "form.periodic", "be columns")
    count, slope = entry(values, "frequencies", int), entry(values, "slope", float)
    _check(count > 0, "form.frequencies", "be positive")
    _check(0.0 <= slope <= 1.0, "form.slope", "lie in [0, 1]")
    sizes = entry(values, "inputs", int), entry(values, "outputs", int)
    _check(sizes == (inputs, targets), "form", "fit the columns and targets")
    linear = entry(values, "linear", bool)
    return NetForm(inputs, targets, tuple(hidden), slope, tuple(periodic), count, linear)


def _weights(state: Mapping[str, object], form: NetForm) -> dict[str, Tensor]:
    """Return the weights if they are those of nets of this form."""
    weights = entry(state, "weights", dict)
    _check(weights, "weights", "be tensors")
    for name in weights:
        _check(_tensor(weights, name, torch.float32).ndim > 0, f"weights.{name}", "have axes")
    members = len(next(iter(weights.values())))
    # The net is made only if it is as large as the tensors that are here already.
    found, must = sum(map(Tensor.numel, weights.values())), "fit the layers that `form` describes"
    _check(members > 0 and found == members * form.size, "weights", must)
    shapes = {name: (members, *own.shape) for name, own in form.make().state_dict().items()}
    _check({name: weight.shape for name, weight in weights.items()} == shapes, "weights", must)
    return {name: weights[name] for name in shapes}


def _calibration(state: Mapping[str, object], targets: int) -> Calibration | None:
    if state["floor"] is None and state["scores"] is None:
        return None
    floor, scores = (_tensor(state, name, torch.float64) for name in ("floor", "scores"))
    _check(floor.shape == (targets,) and (floor > 0).all(), "floor", "be positive")
    is_table = scores.ndim == 2 and scores.shape[1] == targets and len(scores) > 0
    is_sorted = is_table and (scores[0] >= 0).all() and (scores.diff(dim=0) >= 0).all()
    _check(is_sorted, "scores", "be ascending columns, one for each target")
    return Calibration(floor, scores)


def _tensor(values: Mapping[str, object], name: str, dtype: torch.dtype) -> Tensor:
    tensor = entry(values, name, Tensor)
    is_right = tensor.dtype == dtype and tensor.isfinite().all()
    _check(is_right, name, f"be a tensor of {dtype}, all of it finite")
    return tensor


def _scaler(name: str, numbers: Mapping[str, list[float]]) -> Scaler:
    _check(set(numbers) == {"mean", "std"}, name, "be a scale")
    for key in numbers:
        values = entry(numbers, key, list)
        _check(values and all(map(_is_finite, values)), name, "be lists of finite numbers")
    return Scaler.from_dict(numbers)


def _settings(method: str, values: dict[str, object]) -> Settings:
    own = entry(values, "method_settings", dict)
    _texts("settings.method", list(own))
    for value in (*(values | {"method_settings": None}).values(), *own.values()):
        items = value if isinstance(value, list | tuple) else [value]
        are_plain = all(isinstance(item, str | int | float | None) for item in items)
        _check(are_plain, "settings", "be numbers, texts and lists of them")
    methods.get(method).settings(**own)  # refuses names that the method does not have
    return Settings.from_dict(values)  # which checks the others


def _scores(values: Mapping[str, object]) -> Scores:
    _check(values.get("groups") == {}, "held_out", "be scores without groups")
    numbers = [value for key, value in values.items() if key != "groups" and value is not None]
    are_finite = all(type(value) is int or _is_finite(value) for value in numbers)
    _check(are_finite, "held_out", "be finite numbers")
    return Scores.from_dict(values)


def _texts(name: str, values: Sequence[object]) -> tuple[str, ...]:
    texts = tuple(value for value in values if isinstance(value, str))
    _check(len(texts) == len(values), name, "be texts")
    return texts


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _check(is_right: object, name: str, must: str) -> None:
    if not is_right:
        raise DataError(f"`{name}` must {must}.")

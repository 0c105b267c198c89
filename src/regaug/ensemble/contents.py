"""What a model consists of, and the same as plain values and tensors that nobody vouches for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import torch
from torch import Tensor

from regaug import methods
from regaug._files import entry
from regaug.data.scaling import Scaler
from regaug.data.tabular.encoding import Encoder
from regaug.ensemble.component import Component, Predictors
from regaug.ensemble.intervals import Calibration
from regaug.ensemble.members import Members
from regaug.ensemble.preparation import Preparation
from regaug.ensemble.scale import Bounds, TargetScale
from regaug.exceptions import DataError
from regaug.metrics import Scores
from regaug.models.mlp import NetForm
from regaug.training.baselines import PREDICTORS, load_predictor
from regaug.training.results import versions
from regaug.training.settings import Settings

# What a model may be called that is made of several methods.
AUTO, NETS = "auto", "nets"
_KEYS = {
    *("targets", "group", "method", "made_by", "encoder", "inputs", "outputs", "log", "low"),
    *("high", "components", "floor", "scores", "held_out", "notes"),
}
_MORE = "about"  # only where there is something
_COMPONENT = {"method", "share", "outputs", "log"}
_NETS, _BASELINE = {"settings", "form", "weights"}, {"predictors"}
_ROUNDING = 1e-9
# Beyond these, differences and quotients of ordinary numbers leave the range of float64.
_SMALLEST, _LARGEST = 1e-307, 1e307


@dataclass(frozen=True, eq=False)
class Contents:
    """What a model consists of; :class:`regaug.ensemble.Ensemble` says what it is."""

    targets: tuple[str, ...]
    method: str
    preparation: Preparation = field(repr=False)
    components: tuple[Component, ...]
    bounds: Bounds = field(repr=False)
    scale: TargetScale = field(repr=False)
    calibration: Calibration | None = field(default=None, repr=False)
    held_out: Scores | None = None
    group: str | None = None
    notes: tuple[str, ...] = ()
    made_by: Mapping[str, str] = field(default_factory=versions, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_state(self) -> dict[str, object]:
        """Return everything as tensors and plain values, for the files of a folder."""
        encoder, calibration = self.preparation.encoder, self.calibration
        state: dict[str, object] = {
            "targets": list(self.targets),
            "group": self.group,
            "method": self.method,
            "made_by": dict(self.made_by),
            "encoder": None if encoder is None else encoder.to_json(),
            "inputs": self.preparation.scaler.to_dict(),
            "outputs": self.scale.scaler.to_dict(),
            "log": self.scale.log,
            "low": self.bounds.low,
            "high": self.bounds.high,
            "components": [_component_state(own) for own in self.components],
            "floor": None if calibration is None else calibration.floor,
            "scores": None if calibration is None else calibration.scores,
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "notes": list(self.notes),
        }
        return state | ({_MORE: dict(self.about)} if self.about else {})

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> Self:
        """Make the model, checking every value, and every size before anything is made of it."""
        _check_keys("model", set(state) - {_MORE}, _KEYS)
        targets = _texts("targets", entry(state, "targets", list))
        _check(len(set(targets)) == len(targets) > 0, "targets", "be different names")
        inputs = _scaler("inputs", entry(state, "inputs", dict))
        encoder = None
        if state["encoder"] is not None:
            encoder = Encoder.from_json(entry(state, "encoder", str))
            columns = len(encoder.feature_names)
            _check(columns == len(inputs.mean), "inputs", "have a number for every encoded column")
        are_both = (state["held_out"] is None) == (state["floor"] is None)
        _check(are_both, "held_out", "be there if and only if there is a calibration")
        made_by = entry(state, "made_by", dict)
        _texts("made_by", [*made_by, *made_by.values()])
        about = entry({_MORE: {}, **state}, _MORE, dict)
        _texts(_MORE, list(about))
        method = entry(state, "method", str)
        if method not in (AUTO, NETS, *PREDICTORS):
            methods.get(method)
        log, sizes = entry(state, "log", bool), (len(inputs.mean), len(targets))
        return cls(
            targets=targets,
            method=method,
            preparation=Preparation(encoder, inputs),
            components=_components(state, *sizes),
            bounds=_bounds(state, len(targets), is_positive=log),
            scale=_scale(state, len(targets)),
            calibration=_calibration(state, len(targets)),
            held_out=_scores(state["held_out"], len(targets)),
            group=None if state["group"] is None else entry(state, "group", str),
            notes=_texts("notes", entry(state, "notes", list)),
            made_by=made_by,
            about=about,
        )


def _component_state(own: Component) -> dict[str, object]:
    state: dict[str, object] = {
        "method": own.method,
        "share": own.share,
        "outputs": own.models.scale.scaler.to_dict(),
        "log": own.models.scale.log,
    }
    if isinstance(own.models, Members):
        return state | {
            "settings": None if own.settings is None else own.settings.to_dict(),
            "form": own.models.form.to_dict(),
            "weights": dict(own.models.weights),
        }
    if isinstance(own.models, Predictors):
        return state | {"predictors": [one.to_state() for one in own.models.predictors]}
    raise TypeError(f"a component of {type(own.models).__name__} cannot be stored")


def _components(state: Mapping[str, object], inputs: int, targets: int) -> tuple[Component, ...]:
    stored = entry(state, "components", list)
    _check(stored, "components", "be at least one")
    components = tuple(_component(one, inputs, targets) for one in stored)
    total = math.fsum(own.share for own in components)
    _check(abs(total - 1.0) < _ROUNDING, "components", "have shares whose sum is 1")
    return components


def _component(state: object, inputs: int, targets: int) -> Component:
    if not isinstance(state, Mapping):
        raise DataError("`components` must be dicts.")
    is_baseline = "predictors" in state
    _check_keys("components", set(state), _COMPONENT | (_BASELINE if is_baseline else _NETS))
    method, share = entry(state, "method", str), entry(state, "share", float)
    _check(0.0 < share <= 1.0 + _ROUNDING, "share", "lie in (0, 1]")
    scale = _scale(state, targets)
    if is_baseline:
        stored = entry(state, "predictors", list)
        _check(stored, "predictors", "be at least one")
        sizes = {"inputs": inputs, "outputs": targets}
        loaded = tuple(load_predictor(method, one, **sizes) for one in stored)
        return Component(method, share, Predictors(loaded, scale))
    form = _form(entry(state, "form", dict), inputs, targets)
    nets = Members(form, _weights(state, form), scale)
    return Component(method, share, nets, _settings(method, entry(state, "settings", dict)))


def _scale(state: Mapping[str, object], targets: int) -> TargetScale:
    scaler = _scaler("outputs", entry(state, "outputs", dict))
    _check(len(scaler.mean) == targets, "outputs", "have a number for every target")
    return TargetScale(scaler, entry(state, "log", bool))


def _bounds(state: Mapping[str, object], targets: int, *, is_positive: bool) -> Bounds:
    low, high = (_tensor(state, name, torch.float64) for name in ("low", "high"))
    _check(low.shape == high.shape == (targets,), "low", "have a number for every target")
    _check((low <= high).all(), "low", "be at most `high`")
    _check(not is_positive or (low > 0).all(), "low", "be positive for logarithms")
    return Bounds(low, high)


def _check_keys(name: str, found: set[str], wanted: set[str]) -> None:
    _check(found == wanted, name, f"have the keys {', '.join(sorted(wanted))}")


def _form(values: Mapping[str, object], inputs: int, targets: int) -> NetForm:
    """Return the form of the nets, for a table of so many columns and targets."""
    _check_keys("form", set(values), {part.name for part in fields(NetForm)})
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
    scaler = Scaler.from_dict(numbers)
    is_small = max(abs(scaler.mean).max(), scaler.std.max()) <= _LARGEST
    _check(is_small and scaler.std.min() >= _SMALLEST, name, "lie between 1e-307 and 1e307")
    return scaler


def _settings(method: str, values: dict[str, object]) -> Settings:
    own = entry(values, "method_settings", dict)
    _texts("settings.method", list(own))
    for value in (*(values | {"method_settings": None}).values(), *own.values()):
        items = value if isinstance(value, list | tuple) else [value]
        are_plain = all(isinstance(item, str | int | float | None) for item in items)
        _check(are_plain, "settings", "be numbers, texts and lists of them")
    methods.get(method).settings(**own)  # refuses names that the method does not have
    return Settings.from_dict(values)  # which checks the others


def _scores(values: object, targets: int) -> Scores | None:
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise DataError("`held_out` must be scores.")
    each = values.get("targets", [])
    _check(isinstance(each, list) and len(each) in (0, targets), "held_out", "fit the targets")
    for own in (values, *each):
        _check(isinstance(own, Mapping) and own.get("groups") == {}, "held_out", "have no groups")
        _texts("held_out", list(own))
        others = ("groups", "targets", "rare", "tenths")  # the last two are looked at below
        numbers = {key: value for key, value in own.items() if key not in others}
        are_finite = all(
            value is None or type(value) is int or _is_finite(value) for value in numbers.values()
        )
        _check(are_finite, "held_out", "be finite numbers")
        _check(own is values or not own.get("targets"), "held_out", "have targets of one level")
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

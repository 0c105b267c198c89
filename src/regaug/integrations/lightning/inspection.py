"""A short look at a module, its data and the methods, before a study trains for hours."""

import math
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from regaug import methods
from regaug._registry import unknown
from regaug.augment.collate import get_pair
from regaug.exceptions import ArgumentError, ArgumentTypeError, PlaceError, RegaugError
from regaug.integrations.lightning import batches
from regaug.integrations.lightning.epochs import Clock
from regaug.integrations.lightning.parts import LightningParts, package_of
from regaug.integrations.lightning.sessions import quiet, run_trainer, seeded
from regaug.methods import INPUT
from regaug.training.logged import LoggedFacts
from regaug.training.settings import Settings

# Batches of training, and of validation and test, that are enough to see whether something works.
_STEPS, _BATCHES = 4, 2
# Standard deviations and means beyond which settings for standardized values do not fit.
_SMALL, _LARGE = 0.2, 5.0


def name_at_test(monitor: str) -> str:
    """Return what the test is expected to log if validation logs ``monitor``.

    Example:
        >>> name_at_test("val_loss"), name_at_test("valid/mae"), name_at_test("loss")
        ('test_loss', 'test/mae', 'loss')
    """
    return re.sub(r"^(validation|valid|val)(?=[^a-z]|$)", "test", monitor)


def wanted(parts: LightningParts) -> str:
    """Return the name that the test is expected to log."""
    return parts.test_metric or name_at_test(parts.monitor)


def inspect(parts: LightningParts) -> LoggedFacts:
    """Begin a plain training, end it after a few batches, and say what was seen.

    What would end a study hours later is an error now: a metric that nobody logs, a layer that
    there is not, batches in which x and y cannot be found.
    """
    with quiet(), seeded(0):
        module, data = parts.make_net(0, 0), parts.make_data(0)
        _check_parts(parts, module, data)
        clock = Clock()
        trainer = parts.make_trainer(module, [clock], limit_val_batches=_BATCHES)
        run_trainer(trainer.validate, module, datamodule=data, verbose=False)
        _check_logged("monitor", parts.monitor, list(trainer.callback_metrics), "validation")
        limits = {"limit_train_batches": _STEPS, "limit_val_batches": _BATCHES, "max_epochs": 1}
        trainer = parts.make_trainer(module, [clock], **limits)
        run_trainer(trainer.fit, module, datamodule=data)
        judged = judge(parts, module, data, limit_test_batches=_BATCHES, limit_val_batches=2)
        name, notes = _judged_by(parts, module, judged)
        has_test = judged is not None
        test_rows = count_rows(data.test_dataloader() if has_test else clock.validation_loader)
    x, y = get_pair(clock.batch, parts.get, user="Problem.from_lightning(..., ")
    steps, validation = count_batches(clock.train_loader), count_batches(clock.validation_loader)
    sizes = count_rows(clock.train_loader), count_rows(clock.validation_loader), test_rows
    return LoggedFacts(
        sizes=sizes,
        inputs=_shape("inputs", x),
        targets=math.prod(_shape("targets", y)),
        batch_size=max(1, len(_tensors(x)[0])),
        step_seconds=clock.step_seconds(steps, validation),
        judged_by=name,
        has_test=has_test,
        can_sample=_can_sample(clock.train_loader),
        notes=(*notes, *_about_scale("inputs", x), *_about_scale("targets", y)),
    )


def judge(parts: LightningParts, module: Any, data: Any, **limits: Any) -> dict[str, float] | None:
    """Return what is logged for the test rows; None if the data have none.

    A module without a test step is validated on them.
    """
    if not _has(data, "test_dataloader"):
        return None
    trainer = parts.make_trainer(module, [], **limits)
    if _has(module, "test_step"):
        run_trainer(trainer.test, module, datamodule=data, verbose=False)
    else:
        data.setup("test")
        data.val_dataloader = data.test_dataloader
        run_trainer(trainer.validate, module, datamodule=data, verbose=False)
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


def why_no_layer(parts: LightningParts, layers: tuple[str, ...]) -> str:
    """Say why no method can act at some layers of the module; empty if methods can."""
    if not layers:
        return "The module names no layer: give places=[...] or an attribute `places`."
    return try_method(parts, "mixup", methods.get("mixup").settings(place=layers), error=PlaceError)


def count_rows(loaders: Any) -> int:
    """Return the rows of a loader, or of several; 1 where it does not say."""
    if isinstance(loaders, Mapping | list | tuple):
        each = loaders.values() if isinstance(loaders, Mapping) else loaders
        return sum(count_rows(loader) for loader in each)
    try:
        return max(1, len(loaders.dataset))
    except (AttributeError, TypeError):  # a stream
        return 1


def count_batches(loaders: Any) -> int:
    """Return the batches of a loader, or of several; 1 where it does not say."""
    if isinstance(loaders, Mapping | list | tuple):
        each = loaders.values() if isinstance(loaders, Mapping) else loaders
        return sum(count_batches(loader) for loader in each)
    try:
        return max(1, len(loaders))
    except TypeError:
        return 1


def try_method(
    parts: LightningParts,
    method: str,
    own: Mapping[str, Any],
    *,
    error: type[Exception] = Exception,
) -> str:
    """Train with a method for a few batches; return what went wrong, empty if nothing did."""
    with quiet(), seeded(0):
        module, data = parts.make_net(0, 0), parts.make_data(0)
        callbacks = parts.make_callbacks(method, Settings(method_settings=own))
        if not callbacks:  # plain training has been looked at
            return ""
        limits = {"limit_train_batches": _BATCHES, "limit_val_batches": 1, "max_epochs": 1}
        trainer = parts.make_trainer(module, callbacks, **limits)
        try:
            run_trainer(trainer.fit, module, datamodule=data)
        except error as found:  # plain training works, so it is the method's doing
            ours = isinstance(found, RegaugError)
            return str(found) if ours else f"the training step fails with it ({found!r})."
    return ""


def _check_parts(parts: LightningParts, module: Any, data: Any) -> None:
    """Refuse a module or data without validation, and places that the module has not."""
    for argument, thing, part in (
        ("make_module", module, "validation_step"),
        ("make_datamodule", data, "train_dataloader"),
        ("make_datamodule", data, "val_dataloader"),
    ):
        if not _has(thing, part):
            raise ArgumentError(
                f"`{argument}` must return a {type(thing).__name__} with a {part}, got one "
                f"without: validation rows choose the epoch, by {parts.monitor!r}."
            )
    layers = [name for name, _ in module.named_modules() if name]
    for place in getattr(module, "places", ()):
        if place not in (*layers, INPUT):
            raise ArgumentError(f"`places` must name layers. {unknown('layer', place, layers)}")


def _judged_by(
    parts: LightningParts, module: Any, judged: Mapping[str, float] | None
) -> tuple[str, list[str]]:
    """Return the name of the metric that is compared, and what is to be said of it."""
    if judged is None:
        if parts.test_metric is not None:
            raise ArgumentError(
                f"`test_metric` must be None without test rows, got {parts.test_metric!r}. Give "
                "the data module a test_dataloader, or leave `test_metric` out."
            )
        return parts.monitor, [
            f"The data have no test_dataloader: {parts.monitor} of the validation rows, which "
            "choose the epoch, is what is compared, so all values are somewhat too good; every "
            "method has one setting, since nothing could judge a choice."
        ]
    if not _has(module, "test_step"):
        name = parts.test_metric or parts.monitor
        _check_logged("test_metric", name, list(judged), "the validation step, on the test rows,")
        return name, [f"The module has no test_step: {name} of its validation step on the test "
                      "rows is what is compared."]  # fmt: skip
    _check_logged("test_metric", wanted(parts), list(judged), "the test step")
    return wanted(parts), [
        f"{parts.monitor} of the validation rows chooses, {wanted(parts)} of the test rows is "
        "compared."
    ]


def _can_sample(loader: Any) -> bool:
    """Tell whether the train loader lets another sampler decide who shares a batch."""
    try:
        batches.check_map_style(loader, "`sampler`")
    except ArgumentTypeError:
        return False
    return isinstance(getattr(loader.batch_sampler, "batch_size", None), int)


def _check_logged(argument: str, name: str, logged: Sequence[str], step: str) -> None:
    """Refuse the name of a metric that a step does not log."""
    if name not in logged:
        known = unknown("metric", name, logged) if logged else "It logs nothing at all."
        raise ArgumentError(
            f"`{argument}` must be a metric that {step} logs, got {name!r}. {known} Log it there: "
            f'self.log("{name}", ...), or give {argument}="...".'
        )


def _has(thing: Any, name: str) -> bool:
    """Tell whether somebody has written this hook: Lightning's own does nothing."""
    base = "LightningModule" if isinstance(thing, nn.Module) else "LightningDataModule"
    helpers = import_module(f"{package_of(thing, base)}.utilities.model_helpers")
    return bool(helpers.is_overridden(name, thing))


def _shape(name: str, batch: Any) -> tuple[int, ...]:
    """Return the shape of a row; of several tensors, how many numbers they have together."""
    found = _tensors(batch)
    if not found:
        raise ArgumentTypeError(
            f"The {name} of a training batch must be a tensor, or a tuple, list or dict of "
            f"tensors, got a {type(batch).__name__}. Say where they are: "
            "Problem.from_lightning(..., get=lambda batch: (x, y), set=lambda batch, x, y: batch)."
        )
    if len(found) == 1:
        return tuple(found[0].shape[1:])
    return (sum(math.prod(tensor.shape[1:]) for tensor in found),)


def _tensors(batch: Any) -> list[Tensor]:
    if isinstance(batch, Tensor):
        return [batch]
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    return (
        [own for part in batch for own in _tensors(part)] if isinstance(batch, list | tuple) else []
    )


def _about_scale(name: str, batch: Any) -> list[str]:
    """Say that values are far from standardized ones, which the settings of methods are for."""
    known = [own.detach().double().flatten() for own in _tensors(batch) if own.is_floating_point()]
    if not known or sum(len(own) for own in known) < 2:
        return []
    values = torch.cat(known)
    mean, spread = float(values.mean()), float(values.std())
    if _SMALL <= spread <= _LARGE and abs(mean) <= _LARGE:
        return []
    return [
        f"The {name} of the first batch have the mean {mean:.3g} and the standard deviation "
        f"{spread:.3g}: methods are meant for standardized ones. Scale them in the data module."
    ]

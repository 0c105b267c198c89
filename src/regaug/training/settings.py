"""What one training needs to know, beside the data, the model and the method."""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any, Literal, Self, get_args

from regaug._checks import check_choice, check_integer, check_range
from regaug.exceptions import ArgumentError
from regaug.metrics import METRICS, MetricName

Optimizer = Literal["adamw", "adam"]
Schedule = Literal["constant", "cosine", "waves"]
# How often the rate of the schedule "waves" falls to zero.
WAVES = 4
Recorded = Literal["train", "validation", "test"]
Precision = Literal["32", "bf16", "16", "64"]
# Half precision is mixed: the weights stay in float32.
_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "64": "64-true"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one training.

    Attributes:
        epochs: Passes over the training rows, at most.
        batch_size: Samples in a batch, of each process if there are several. An epoch leaves out
            the rows that do not fill a batch, other rows in every epoch. Fewer training rows than
            that make one batch.
        learning_rate: Step size of the optimizer.
        weight_decay: Shrinks the weights; ``"adamw"`` does it beside the gradient, ``"adam"``
            through it.
        optimizer: ``"adamw"`` or ``"adam"``.
        schedule: ``"constant"`` keeps the learning rate, ``"cosine"`` lowers it to zero along half
            a cosine, step by step, and ``"waves"`` lets it rise from zero and fall back four times,
            each wave twice as long as the one before.
        clip: Largest norm of the gradient of a step; None leaves it.
        patience: Stop after so many epochs without a lower validation error; None never stops.
        patience_share: Wait for at least this share of the epochs that led to the lowest error: a
            net that learns for long may rest for longer.
        metric: The error that chooses the epoch and stops the training.
        seed: Decides the batches, the augmentation's draws and dropout.
        frequencies: Of the table net alone, as are the next five: how many periodic features
            every number column has (:class:`regaug.models.mlp.PeriodicFeatures`); 0 for none.
        spread: Standard deviation of their initial frequencies.
        linear: Whether a ridge regression comes first, and the net learns what that leaves.
        relevance: Whether columns that matter more are larger inputs of the net, as a Gaussian
            process finds (:func:`regaug.training.stacked.groundwork.column_factors`).
        average: Share that the mean of the weights over the epochs keeps when an epoch is added to
            it; that mean is what is judged after an epoch, and the result. 0 for the weights alone.
        stop_after: Pause after so many epochs; None does not. Rates and ``anneal`` go on as for all
            ``epochs``, so that the same training with a later ``stop_after``, or without one,
            continues from the checkpoint of this one. Not for runs of a stack.
        halve: Whether a run of a stack may end early because others of its split are ahead: the
            worse half of them do after a fifth of the epochs, and again about half-way.
        method_settings: Changes to the method's own settings, such as ``{"rho": 0.95}``.
    """

    epochs: int = 100
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    optimizer: Optimizer = "adamw"
    schedule: Schedule = "constant"
    clip: float | None = None
    patience: int | None = None
    patience_share: float = 0.0
    metric: MetricName = "rmse"
    seed: int = 0
    frequencies: int = 0
    spread: float = 0.1
    linear: bool = False
    relevance: bool = False
    average: float = 0.0
    halve: bool = False
    stop_after: int | None = None
    method_settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, 1)
        check_integer("batch_size", self.batch_size, 1)
        check_range("learning_rate", self.learning_rate, 0.0, open_low=True)
        check_range("weight_decay", self.weight_decay, 0.0)
        check_choice("optimizer", self.optimizer, ("adamw", "adam"))
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_choice("metric", self.metric, tuple(METRICS))
        check_integer("seed", self.seed, 0)
        check_integer("frequencies", self.frequencies, 0)
        check_range("spread", self.spread, 0.0, open_low=True)
        check_range("average", self.average, 0.0, 1.0)
        for name in ("linear", "relevance", "halve"):
            if not isinstance(value := getattr(self, name), bool):
                raise ArgumentError(f"`{name}` must be True or False, got {value!r}.")
        if self.clip is not None:
            check_range("clip", self.clip, 0.0, open_low=True)
        if self.patience is not None:
            check_integer("patience", self.patience, 1)
        if self.stop_after is not None:
            check_integer("stop_after", self.stop_after, 1)
        check_range("patience_share", self.patience_share, 0.0)

    def rate_at(self, progress: float) -> float:
        """Return the learning rate when so much of training is done."""
        if self.schedule == "constant":
            return self.learning_rate
        angle = math.pi * progress
        if self.schedule == "waves":
            angle = math.pi + 2.0 * math.pi * math.log2(1.0 + (2**WAVES - 1) * progress)
        return self.learning_rate * round(0.5 * (1.0 + math.cos(angle)), 15)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        own = self.method_settings.items()
        listed = {name: list(v) if isinstance(v, tuple) else v for name, v in own}
        plain = asdict(self) | {"method_settings": listed}
        # What is stored of other nets need not know of these.
        return {name: v for name, v in plain.items() if name not in _USUAL or v != _USUAL[name]}

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """Return the settings that :meth:`to_dict` wrote down."""
        names = {part.name for part in fields(cls)}
        if not isinstance(values, Mapping) or {*values, *_USUAL} != names:
            raise ArgumentError(f"`values` must have the keys {', '.join(sorted(names))}.")
        own = values["method_settings"]
        if not isinstance(own, Mapping):
            raise ArgumentError(f"`method_settings` must be settings of a method, got {own!r}.")
        listed = {key: tuple(v) if isinstance(v, list) else v for key, v in own.items()}
        return cls(**{**values, "method_settings": listed})


# What hardly any network but the table net has other than so.
_TABLE_NET = ("frequencies", "spread", "linear", "relevance", "average", "halve")
_RARE = ("patience_share", *_TABLE_NET, "stop_after")
_USUAL = {name: getattr(Settings, name) for name in _RARE}


@dataclass(frozen=True)
class Machine:
    """What a training runs on.

    Attributes:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``; ``"auto"`` takes the best there is.
            Only CPUs were at hand to test it.
        precision: ``"32"``, ``"bf16"`` or ``"16"`` (mixed precision), or ``"64"``.
        workers: Processes that read inputs which are not in memory (images, videos).
    """

    device: str = "auto"
    precision: Precision = "32"
    workers: int = 0

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, tuple(_PRECISIONS))
        check_integer("workers", self.workers, 0)

    def make_fabric(self) -> Any:
        """Return a launched Fabric: in all processes of ``torchrun`` (DDP), or in this one."""
        accelerator, _, number = self.device.partition(":")
        precision = _PRECISIONS[self.precision]
        if "TORCHELASTIC_RUN_ID" in os.environ:
            local = int(os.environ["LOCAL_WORLD_SIZE"])
            nodes = int(os.environ["WORLD_SIZE"]) // local
            return _launch(accelerator, precision, devices=local, num_nodes=nodes, strategy="ddp")
        devices = (int(number),) if number else 1
        # Making one takes longer than some epochs. That of half precision has a state of its own.
        make = _launch if self.precision == "16" else _launch_once
        return make(accelerator, precision, devices=devices)


def _launch(
    accelerator: str, precision: str, *, devices: int | tuple[int, ...], **more: Any
) -> Any:
    from lightning_fabric import Fabric

    own = list(devices) if isinstance(devices, tuple) else devices
    fabric = Fabric(accelerator=accelerator, precision=precision, devices=own, **more)  # type: ignore[arg-type]
    fabric.launch()
    return fabric


_launch_once = cache(_launch)

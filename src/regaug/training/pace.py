"""How long a training is going to take, from a few of its steps."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from torch import nn

from regaug import methods
from regaug._checks import check_range
from regaug._files import JSON
from regaug.data.base import Split
from regaug.training.loop import fit
from regaug.training.settings import Machine, Settings

# Steps that are always taken, the most that are, and about how many seconds of them are enough.
_FEWEST, _MOST, _ENOUGH = 2, 40, 0.4
# Seconds of the first steps after which what is done once hardly counts among them.
_LONG = 2.0
# Rows of the other parts that are predicted meanwhile.
_PREDICTED = 256


@dataclass(frozen=True)
class Pace:
    """How long a training takes on one core, in seconds.

    Attributes:
        start: Before the first epoch and after the last.
        epoch: An epoch, with a look at the validation rows.
        step: A step of the optimizer.

    Example:
        >>> Pace(start=1.0, epoch=0.5, step=0.01).seconds(10)
        6.0
    """

    start: float
    epoch: float
    step: float

    def __post_init__(self) -> None:
        for name in ("start", "epoch", "step"):
            check_range(name, getattr(self, name), 0.0)

    def seconds(self, epochs: float) -> float:
        """Return what a training of so many epochs takes."""
        return self.start + epochs * self.epoch

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`to_dict` wrote down."""
        return cls(**{name: float(values[name]) for name in ("start", "epoch", "step")})


def measure_pace(
    make_net: Callable[[], nn.Module],
    split: Split,
    method: str,
    settings: Settings,
    *,
    machine: Machine | None = None,
) -> Pace:
    """Measure how long a training with a method takes, without doing it.

    A few steps are taken on a few rows, and more where they are short: the first ones take longer,
    and do not count unless all of them do.

    Args:
        make_net: Makes a fresh network.
        split: What is to be trained on.
        method: One of ``regaug.methods.names()``.
        settings: Batch size and the method's own settings; the number of epochs does not matter.
        machine: What the training is to run on.
    """
    machine = machine or Machine()
    machine.make_fabric()  # which is imported then
    begin = time.perf_counter()
    net = make_net()
    making = time.perf_counter() - begin
    size = min(settings.batch_size, len(split.train))
    most = max(1, min(_MOST, len(split.train) // size))
    own = replace(settings, epochs=1, patience=None, stop_after=None)
    steps, taken, around, predicted = min(_FEWEST, most), 0.0, 0.0, 0.0
    for _ in range(2):
        few = _excerpt(split, steps * size)
        begin = time.perf_counter()
        result = fit(net, few, method, own, machine=machine, record=())
        around = time.perf_counter() - begin - result.seconds
        predicted = result.predict_seconds or 0.0
        taken = max(1e-6, result.seconds - predicted * len(few.validation))
        if taken > _LONG:
            break
        # Once more: what is imported, or found out, in the first steps is not done again.
        steps = min(most, max(_FEWEST, int(_ENOUGH * steps / taken)))
    steps = len(few.train) // size
    begin = time.perf_counter()
    ready = methods.get(method).prepare(own.method_settings)
    ready.fit(split.train.x, split.train.y, blocks=split.blocks)
    learning = time.perf_counter() - begin
    step, validation = taken / steps, len(split.validation)
    return Pace(
        start=making + learning + around + predicted * (validation + len(split.test)),
        epoch=(len(split.train) // size) * step + predicted * validation,
        step=step,
    )


def _excerpt(split: Split, rows: int) -> Split:
    """Return a split with a few rows of every part."""
    return replace(
        split,
        train=split.train.take(slice(rows)),
        validation=split.validation.take(slice(_PREDICTED)),
        test=split.test.take(slice(_PREDICTED)),
        more={},
    )

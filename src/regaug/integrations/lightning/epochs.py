"""Callbacks of a study's trainings: which epoch was the best, and how long a step takes."""

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regaug.integrations.lightning.base import Callback
from regaug.metrics import Mode

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


class BestEpoch(Callback):
    """Keeps the weights of the epoch with the best value of a metric, in memory.

    Args:
        monitor: What validation logs.
        mode: ``"min"`` if lower values are better, ``"max"`` if higher ones are.
    """

    def __init__(self, monitor: str, mode: Mode) -> None:
        super().__init__()
        self.monitor, self._sign = monitor, -1.0 if mode == "max" else 1.0
        self.history: list[float] = []
        self.value, self.epoch = math.nan, 0
        self.state: dict[str, Any] = {}

    def on_validation_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Note the value, and keep the weights if it is the best so far."""
        if trainer.state.fn != "fit" or trainer.sanity_checking:
            return
        value = float(trainer.callback_metrics.get(self.monitor, math.nan))
        self.history.append(value)
        if not math.isfinite(value) or (self.epoch and self._sign * (value - self.value) >= 0):
            return
        self.value, self.epoch = value, trainer.current_epoch + 1
        self.state = {name: _copy(own) for name, own in pl_module.state_dict().items()}


class Clock(Callback):
    """Looks at the first batches: what is in them, and how long they take."""

    def __init__(self) -> None:
        super().__init__()
        self.batch: Any = None
        self.train_loader: Any = None
        self.validation_loader: Any = None
        self._steps: list[float] = []
        self._validation: list[float] = []
        self._start = 0.0

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Note the loader."""
        self.train_loader = trainer.train_dataloader

    def on_train_batch_start(
        self, trainer: "Trainer", pl_module: "LightningModule", batch: Any, batch_idx: int
    ) -> None:
        """Keep the first batch, and note the time."""
        self.batch = batch if batch_idx == 0 else self.batch
        self._start = time.perf_counter()

    def on_train_batch_end(
        self,
        trainer: "Trainer",
        pl_module: "LightningModule",
        outputs: "Tensor | Mapping[str, Any] | None",
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Note how long it took."""
        self._steps.append(time.perf_counter() - self._start)

    def on_validation_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Note the loader, and the time."""
        self.validation_loader = trainer.val_dataloaders
        self._start = time.perf_counter()

    def on_validation_batch_end(
        self,
        trainer: "Trainer",
        pl_module: "LightningModule",
        outputs: "Tensor | Mapping[str, Any] | None",
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Note how long it took."""
        now = time.perf_counter()
        self._validation.append(now - self._start)
        self._start = now

    def step_seconds(self, steps: int, batches: int) -> float:
        """Return the time of a step of so many in an epoch that ends with so many batches."""
        # The first ones are slow, as torch's first calls are.
        step, validation = min(self._steps, default=0.0), min(self._validation, default=0.0)
        return step + validation * batches / max(1, steps)


def _copy(value: Any) -> Any:
    return value.detach().cpu().clone() if isinstance(value, Tensor) else value

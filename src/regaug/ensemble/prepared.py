"""A table ready to fit models to: rows put aside, columns and scales learned on the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from regaug.data.arrays import ArrayData
from regaug.data.base import Data, Part, Rows
from regaug.data.scaling import StandardizedSplit, is_skewed
from regaug.data.splits import SplitRule
from regaug.data.tabular.table import Table
from regaug.ensemble.component import Component, combine
from regaug.ensemble.evidence import Evidence
from regaug.ensemble.intervals import Calibration
from regaug.ensemble.model import Ensemble
from regaug.ensemble.preparation import Preparation
from regaug.ensemble.rows import calibration_rows, check_table
from regaug.ensemble.scale import Bounds, TargetScale
from regaug.metrics import evaluate

# In standard deviations of a target: errors of zero would leave nothing to divide by.
_SMALLEST_FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table, the rows that are put aside for the intervals, and what the others have taught.

    Attributes:
        data: The table.
        held_out: Rows that are used for nothing but the intervals.
        rest: The other rows.
        preparation: From the user's rows to inputs.
        x: Inputs of all rows, float32.
        y: Targets of all rows in their own units, float64.
    """

    data: Table | ArrayData
    held_out: Rows
    rest: Rows
    preparation: Preparation
    x: Tensor
    y: Tensor

    @classmethod
    def of(cls, data: Data, *, seed: int) -> Self:
        """Put rows aside and learn the columns from the others."""
        data = check_table(data)
        held_out = calibration_rows(data, seed=seed)
        rest = np.setdiff1d(np.arange(len(data)), held_out)
        preparation = Preparation.fit(data, rest)
        y = torch.from_numpy(np.array(data.y, dtype=np.float64))  # frames give read-only memory
        return cls(data, held_out, rest, preparation, preparation(data).float(), y)

    @property
    def may_log(self) -> bool:
        """Whether logarithms of the targets may fit better: they are positive and skewed."""
        return is_skewed(self.y[self.rest]) and bool((self.y > 0).all())

    def scale(self, *, log: bool = False) -> TargetScale:
        """Return the scale of the targets, or of their logarithms."""
        if log:  # a row put aside may have no logarithm
            TargetScale.fit(self.y, log=True)
        return TargetScale.fit(self.y[self.rest], log=log)

    def splits(self, folds: Sequence[Rows], *, log: bool = False) -> list[StandardizedSplit]:
        """Return a split for every fold: the fold stops a training, all other rows are learned."""
        scale = self.scale(log=log)
        whole = Part(self.x, scale.transform(self.y).float(), np.arange(len(self.y)))
        encoder, splits = self.preparation.encoder, []
        blocks = None if encoder is None else encoder.blocks
        for rows in folds:
            train, chosen = whole.take(np.setdiff1d(self.rest, rows)), whole.take(rows)
            # There are no test rows, as nobody looks at them.
            own = StandardizedSplit(
                train, chosen, chosen, y_scaler=scale.scaler, log=log, blocks=blocks
            )
            splits.append(own)
        return splits

    def finish(
        self,
        method: str,
        components: Sequence[Component],
        errors: Tensor,
        *,
        log: bool,
        notes: Sequence[str] = (),
    ) -> Ensemble:
        """Calibrate a model on the rows that were put aside.

        Args:
            method: What it is called.
            components: What it is made of.
            errors: Errors ``(n, m)`` on rows that were not trained on, in the scale of the
                intervals: their size is what is expected.
            log: Whether that is the scale of logarithms.
            notes: What its reader should know, in sentences.
        """
        bounds, scale = self.bounds(log=log), self.scale(log=log)
        floor = errors.square().mean(dim=0).sqrt().clamp(min=_SMALLEST_FLOOR)
        x, y = self.x[self.held_out], self.y[self.held_out]
        mean, _, spread = combine(components, x, bounds=bounds, scale=scale)
        found = scale.transform(mean), spread, scale.transform(y)
        targets = self.y.shape[1]
        names = self.data.targets if isinstance(self.data, Table) else default_names(targets)
        return Ensemble(
            targets=names,
            method=method,
            preparation=self.preparation,
            components=tuple(components),
            bounds=bounds,
            scale=scale,
            calibration=Calibration.fit(*found, floor=floor),
            held_out=evaluate(mean, y),
            group=getattr(self.data, "group", None),
            notes=tuple(notes),
            evidence=self._evidence(),
        )

    def _evidence(self) -> Evidence:
        """Return the rows that were put aside; by time in its order."""
        data, rows = self.data, self.held_out
        rule: SplitRule = "random" if data.groups is None else "group"
        if data.groups is None and data.times is not None:
            rule, rows = "time", rows[np.argsort(data.times[rows], kind="stable")]
        groups = None if data.groups is None else data.groups[rows].astype(np.str_)
        return Evidence(self.x[rows].double(), self.y[rows], groups, rule)

    def bounds(self, *, log: bool = False) -> Bounds:
        """Return the range that predictions are clamped to."""
        return Bounds.fit(self.y[self.rest], log=log)


def default_names(targets: int) -> tuple[str, ...]:
    """Return names for targets that have none."""
    return ("target",) if targets == 1 else tuple(f"target_{i}" for i in range(1, targets + 1))

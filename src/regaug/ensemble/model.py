"""The fitted model, and what it predicts."""

from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import Tensor

from regaug import _random
from regaug.data.tabular.sources import read_frame
from regaug.data.tabular.table import Table
from regaug.ensemble.component import combine
from regaug.ensemble.contents import Contents
from regaug.ensemble.diagnosis import Diagnosis
from regaug.ensemble.evidence import Evidence
from regaug.ensemble.folder import read_model, write_model
from regaug.ensemble.shares import describe, shares_of
from regaug.ensemble.truth import Truth
from regaug.exceptions import ArgumentError
from regaug.formatting import TextTable, as_html, count, number, percent
from regaug.metrics import Scores
from regaug.training.settings import Settings


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an ensemble predicts, ``(n, m)``, float64, in the targets' own units.

    Attributes:
        targets: Names of the ``m`` targets.
        mean: Mean over the models, each with its weight.
        spread: Standard deviation over the models: how much they disagree. The interval, not the
            spread, says how far off the mean may be.
        low: Lower ends of the intervals, if they were asked for.
        high: Upper ends of the intervals, if they were asked for.
        scores: How good it is, on the rows of a table that has the targets; by group too, if it has
            the column of groups. None if it does not have them.
        coverage: Share of these rows whose target lies in its interval, for each target.
    """

    targets: tuple[str, ...]
    mean: Tensor = field(repr=False)
    spread: Tensor = field(repr=False)
    low: Tensor | None = field(default=None, repr=False)
    high: Tensor | None = field(default=None, repr=False)
    scores: Scores | None = None
    coverage: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.mean)

    def to_frame(self, original: Any = None) -> Any:
        """Return the predictions as columns of a pandas frame.

        The columns are ``price_predicted`` and ``price_spread`` for a target ``price``, and
        ``price_low`` and ``price_high`` if there are intervals. If the user's table has one of
        these already, all of them end in ``_2``, or the next number that is free.

        Args:
            original: The table that was predicted, a path or a frame: its columns, and a pandas
                frame's index, come first, as they are.

        Example:
            >>> import torch
            >>> Prediction(("price",), torch.tensor([[2.5]]), torch.tensor([[0.1]])).to_frame()
               price_predicted  price_spread
            0              2.5           0.1
        """
        import pandas as pd

        if original is None:
            frame = pd.DataFrame(index=range(len(self)))
        else:
            frame = original if isinstance(original, pd.DataFrame) else read_frame(original)
        if len(frame) != len(self):
            wanted = f"the {len(self):,} rows that were predicted"
            raise ArgumentError(f"`original` must have {wanted}, got {len(frame):,}.")
        values = {"predicted": self.mean, "spread": self.spread, "low": self.low, "high": self.high}
        new = {
            f"{target}_{name}": own[:, place]
            for place, target in enumerate(self.targets)
            for name, own in values.items()
            if own is not None
        }
        names, number = list(new), 1
        while {str(name) for name in frame.columns}.intersection(names):
            number += 1
            names = [f"{name}_{number}" for name in new]
        columns = {name: own.numpy() for name, own in zip(names, new.values(), strict=True)}
        return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1)


@dataclass(frozen=True, eq=False)
class Ensemble(Contents):
    """A fitted model; :func:`regaug.fit` makes one, and ``print(model)`` says what it is made of.

    It predicts the mean of its single models, each with its weight. All of them are clamped to the
    range of the training targets and as much beyond.

    Attributes:
        targets: Names of the targets.
        method: What was asked for: a method, a baseline, ``"nets"`` or ``"auto"``.
        preparation: From the user's rows to inputs.
        components: Groups of nets and of baselines, each with its share.
        bounds: The range that predictions are clamped to.
        scale: The scale that the intervals are measured in.
        calibration: What the intervals are made from; None for a model that was trained on all its
            rows, which has no intervals.
        held_out: Scores on the calibration rows: an honest estimate of those on new rows, as no
            choice depended on them. None if there are no such rows.
        group: Name of the column of groups in the table that it was fitted to, if any.
        notes: What its reader should know, in sentences.
        made_by: Versions of what it was made with.
        about: Further plain values that whoever made the model keeps with it.
        evidence: The calibration rows of a model that was just fitted; no folder keeps them.

    Example:
        >>> import tempfile
        >>> from regaug.data import load
        >>> from regaug.ensemble import fit_ensemble
        >>> from regaug.training import Settings
        >>> data = load("synthetic-sine", n=60)
        >>> model = fit_ensemble(data, members=2, settings=Settings(epochs=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(folder)
        ...     same = Ensemble.load(folder)
        >>> bool((same.predict([[0.5]]).mean == model.predict([[0.5]]).mean).all())
        True
        >>> model.describe()
        'erm: 2 nets'
    """

    evidence: Evidence | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Return the number of single models."""
        return sum(len(own.models) for own in self.components)

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        """Return it for a notebook: what it is made of, and how good it is."""
        shares = [(name, percent(share)) for name, share in self.shares.items()]
        scores, told = self.held_out, ""
        if scores is not None:
            told = f"On {count(scores.n, 'row')} put aside: RMSE {number(scores.rmse)}"
            told += "." if scores.r2 is None else f", R2 {scores.r2:.3f}."
        title = f"{self.describe()}; predicts {', '.join(self.targets)}."
        return as_html(title, TextTable("", ("part", "share"), shares), told)

    @property
    def shares(self) -> dict[str, float]:
        """The share of every method and baseline in the prediction, the largest first."""
        return shares_of(self.components)

    @property
    def settings(self) -> Settings | None:
        """The settings of the nets, if all have the same ones but for the seed."""
        return self.components[0].settings if len(self.components) == 1 else None

    def describe(self) -> str:
        """Return what the model is made of, in a line."""
        return describe(self.method, self.components)

    @_random.plain_defaults()
    def predict(self, source: Any, *, interval: float | None = None) -> Prediction:
        """Predict new rows.

        Args:
            source: For a model of a table: a path or a frame with the same columns; their order
                does not matter, further columns are ignored, missing values and categories that
                training did not know are dealt with as
                :class:`~regaug.data.tabular.encoding.Encoder` says.
                For a model of arrays: ``(n, d)``, NaN where a value is missing.
            interval: Share of new rows whose target is to lie in their interval, such as 0.9; in
                (0, 1). With several targets it holds for each by itself. It holds if the new rows
                come from where the calibration rows came from. None gives no intervals.

        Returns:
            Means, spreads and intervals, a row for each row of ``source``; scores if the targets
            are among its columns.
        """
        if self.preparation.encoder is not None:
            source = source.frame if isinstance(source, Table) else read_frame(source)
        found = self.predict_inputs(self.preparation(source), interval=interval)
        truth = Truth.find(source, self.targets, self.group)
        if truth is None:
            return found
        low, high = found.low, found.high
        coverage = None if low is None or high is None else truth.coverage(low, high)
        return replace(found, scores=truth.score(found.mean), coverage=coverage)

    @property
    def usual_interval(self) -> float | None:
        """The level of intervals where none is asked for: 0.9, or what its few rows allow."""
        return None if self.calibration is None else min(0.9, self.calibration.highest)

    @_random.plain_defaults()
    def predict_inputs(self, x: Tensor, *, interval: float | None = None) -> Prediction:
        """Predict from what :attr:`preparation` returns, ``(n, d)``."""
        if interval is not None and self.calibration is None:
            raise ArgumentError(
                "`interval` must be None for a model that was trained on all its rows, got "
                f"{interval!r}. Fit one that has intervals: regaug.fit(data)."
            )
        found = combine(self.components, x, bounds=self.bounds, scale=self.scale)
        mean, spread, scaled_spread = found
        if interval is None or self.calibration is None:
            return Prediction(self.targets, mean, spread)
        half = self.calibration.half_width(scaled_spread, interval)
        center = self.scale.transform(mean)
        low, high = (self.scale.inverse(end) for end in (center - half, center + half))
        return Prediction(self.targets, mean, spread, low, high)

    def diagnose(self, source: Any = None) -> Diagnosis:
        """Look at the model with rows that it has not learned.

        Says how much it rests on each column (shuffled among these rows), where it is wrong and how
        many rows lie in their intervals.

        Args:
            source: Rows with their targets, as for :meth:`predict`, that the model has not learned.
                None takes those that were put aside when it was fitted; a model that was read from
                a folder no longer has them.
        """
        evidence = self.evidence if source is None else self._read(source)
        if evidence is None:
            raise ArgumentError(
                "`source` must be rows with their targets that the model has not learned, got "
                "None: a model that was read from a folder, or trained on all rows, has no others."
            )
        return Diagnosis.of(self, evidence)

    def report(self, path: str | Path, source: Any = None, *, force: bool = False) -> Path:
        """Write a page about the model: one HTML file that needs no network.

        Args:
            path: The HTML file; its folder is made. A report that regaug has written there is
                replaced.
            source: Rows to look at it with, as for :meth:`diagnose`.
            force: Replace any other file too.
        """
        write = import_module("regaug.report").write_model_report  # which knows models
        written: Path = write(self.diagnose(source), Path(path), force=force)
        return written

    def _read(self, source: Any) -> Evidence:
        where = "rows that it was given"
        if self.preparation.encoder is not None:
            where = f"rows of {Path(source).name}" if isinstance(source, str | Path) else where
            source = source.frame if isinstance(source, Table) else read_frame(source)
        truth = Truth.find(source, self.targets, self.group)
        if truth is None or not truth.is_known.any():
            raise ArgumentError(
                f"`source` must have the targets, {', '.join(self.targets)}, in rows that the "
                "model has not learned, got none."
            )
        rows = np.flatnonzero(truth.is_known)
        x, groups = self.preparation(source)[rows], truth.groups
        known = None if groups is None else groups[rows]
        return Evidence(x, truth.y[rows], known, made_intervals=False, where=where)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the model to a folder: ``model.safetensors`` and ``model.json``.

        A model that regaug has written there is replaced; a folder with anything else in it is
        refused.

        Args:
            folder: Where to; its parents are made.
            force: Replace two files of these names that regaug has not written.
        """
        write_model(self, Path(folder), force=force)

    @classmethod
    @_random.plain_defaults()
    def load(cls, folder: str | Path) -> Self:
        """Read a model that :meth:`save` wrote, after checking all of it; nothing is executed.

        Args:
            folder: Where it is. One that is damaged, or no model, is a ``CheckpointError``.
        """
        return cls(**vars(read_model(Path(folder))))

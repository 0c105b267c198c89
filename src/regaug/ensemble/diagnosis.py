"""A model looked at with rows that it has not learned: what it rests on, and where it is wrong."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import Tensor

from regaug._files import read_optional, write_json
from regaug._version import __version__
from regaug.ensemble.component import combine
from regaug.ensemble.contents import Contents
from regaug.ensemble.coverage import Coverage, observe_coverage
from regaug.ensemble.evidence import Evidence
from regaug.ensemble.importance import Importance, Importances, find_importances
from regaug.ensemble.shares import describe, shares_of
from regaug.exceptions import ArgumentError
from regaug.metrics import Scores, evaluate

DIAGNOSIS = "diagnosis.json"
FORMAT = 1
# Rows that a model is looked at with, and dots that a plot of them has.
MOST_ROWS, MOST_SHOWN = 2_000, 500
# Columns whose importance is kept, and of these those whose values are.
MOST_COLUMNS, MOST_VALUES = 30, 4


@dataclass(frozen=True)
class Values:
    """The values of a column for the rows that are shown: all numbers, or all texts.

    Attributes:
        numbers: Of a column of numbers, true and false or dates (as years); None is a gap.
        texts: Of a column of categories.
    """

    numbers: tuple[float | None, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """What rows that a model has not learned say of it, as plain values.

    Attributes:
        what: What the model is made of, in a line.
        where: What rows they are, in words.
        targets: Names of the targets.
        scores: Scores on these rows, by group where there are groups.
        shares: Share of every method and baseline in the prediction.
        importances: How much the model rests on each column, the largest first.
        coverage: Rows in their intervals, level by level; empty without intervals.
        rule: How the rows were chosen: at random, by group or by time.
        made_intervals: Whether the intervals were measured on these rows.
        true: Targets of the rows that are shown, ``(n, m)``.
        predicted: What is predicted for them.
        group: Name of the column of groups; "group" if it has none.
        groups: Their groups; empty if there are none.
        columns: The values of the columns that matter most, by name.
        notes: What a reader should know of the model, in sentences.
    """

    what: str
    where: str
    targets: tuple[str, ...]
    scores: Scores
    shares: Mapping[str, float]
    importances: Importances
    coverage: tuple[Coverage, ...]
    rule: str
    made_intervals: bool
    true: tuple[tuple[float, ...], ...] = field(repr=False)
    predicted: tuple[tuple[float, ...], ...] = field(repr=False)
    group: str = "group"
    groups: tuple[str, ...] = field(default=(), repr=False)
    columns: Mapping[str, Values] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Contents, evidence: Evidence) -> Self:
        """Look at a model with rows that it has not learned."""
        evidence = evidence.some(MOST_ROWS)
        mean, _, _ = combine(model.components, evidence.x, bounds=model.bounds, scale=model.scale)
        found = find_importances(model, evidence)
        shown = _some(len(evidence))
        important = [own.column for own in found.columns[:MOST_VALUES] if own.mean > 0]
        return cls(
            what=describe(model.method, model.components),
            where=evidence.where,
            targets=model.targets,
            scores=evaluate(mean, evidence.y, evidence.groups),
            shares=shares_of(model.components),
            importances=Importances(found.columns[:MOST_COLUMNS], found.rows, found.repeats),
            coverage=tuple(observe_coverage(model, evidence)),
            rule=evidence.rule,
            made_intervals=evidence.made_intervals,
            true=_rows(evidence.y[shown]),
            predicted=_rows(mean[shown]),
            group=model.group or "group",
            groups=() if evidence.groups is None else tuple(evidence.groups[shown].tolist()),
            columns=_values(model, evidence.x[shown], important),
            notes=model.notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return asdict(self) | {"scores": self.scores.to_dict()}

    def summary(self) -> dict[str, Any]:
        """Return the same without the rows that plots show."""
        rows = ("true", "predicted", "groups", "columns")
        return {name: value for name, value in self.to_dict().items() if name not in rows}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the diagnosis that :meth:`to_dict` wrote down."""
        try:
            own = values["importances"]
            columns = tuple(_importance(**one) for one in own["columns"])
            found = cls(
                **{name: str(values[name]) for name in ("what", "where", "rule", "group")},
                targets=_texts(values["targets"]),
                scores=Scores.from_dict(values["scores"]),
                shares={str(name): _number(share) for name, share in values["shares"].items()},
                importances=Importances(columns, int(own["rows"]), int(own["repeats"])),
                coverage=tuple(_coverage(**one) for one in values["coverage"]),
                made_intervals=bool(values["made_intervals"]),
                true=_table(values["true"]),
                predicted=_table(values["predicted"]),
                groups=_texts(values["groups"]),
                columns={str(name): _column(**one) for name, one in values["columns"].items()},
                notes=_texts(values["notes"]),
            )
            found._check_rows()
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                "`values` must be what Diagnosis.to_dict() returns, got something else: "
                f"{type(error).__name__}: {error}."
            ) from error
        return found

    def _check_rows(self) -> None:
        """Refuse rows that do not belong together, as plots take for granted."""
        n, m = len(self.true), len(self.targets)
        if len(self.predicted) != n or {*map(len, self.true + self.predicted)} - {m}:
            raise ValueError("targets and predictions that do not belong together")
        kept = [own.numbers or own.texts for own in self.columns.values()]
        if {len(self.groups) or n, *map(len, kept)} - {n}:
            raise ValueError("groups or columns of another number of rows")
        if {len(own.inside) for own in self.coverage} - {m}:
            raise ValueError("coverage of other targets")


def write_diagnosis(folder: Path, diagnosis: Diagnosis) -> Path:
    """Write a diagnosis into the folder of a study; the file is whole or as it was."""
    path = folder / DIAGNOSIS
    write_json(path, {"format": FORMAT, "regaug": __version__, **diagnosis.to_dict()})
    return path


def read_diagnosis(folder: Path) -> Diagnosis | None:
    """Read the diagnosis of the model in the folder of a study; None if it has none."""
    without = "the report leaves out what it says of the model"
    return read_optional(folder / DIAGNOSIS, FORMAT, Diagnosis.from_dict, without=without)


def _some(n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.unique(np.linspace(0, n - 1, min(n, MOST_SHOWN)).astype(np.int64))


def _rows(values: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(f"{value:.6g}") for value in row) for row in values.tolist())


def _values(model: Contents, x: Tensor, names: Sequence[str]) -> dict[str, Values]:
    """Return the values of some columns as the user has them."""
    raw = model.preparation.scaler.inverse(x)
    if model.preparation.encoder is None:
        places = {f"x{place + 1}": place for place in range(x.shape[1])}
        return {name: Values(tuple(map(_short, raw[:, places[name]].tolist()))) for name in names}
    frame = model.preparation.encoder.decode(raw.numpy())
    return {name: _read(frame[name]) for name in names}


def _read(series: Any) -> Values:
    import pandas as pd

    if series.dtype.kind == "M":
        years = 1970.0 + (series - pd.Timestamp("1970-01-01")).dt.total_seconds() / 31_556_952
        return Values(tuple(_short(value) for value in years))
    if series.dtype.kind == "f":
        return Values(tuple(_short(value) for value in series))
    return Values(texts=tuple("(missing)" if pd.isna(value) else str(value) for value in series))


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _number(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"not a finite number: {value!r}")
    return float(value)


def _table(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(_number, row)) for row in rows)


def _texts(values: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(own, str) for own in values):
        raise TypeError("not a list of texts")
    return tuple(values)


def _importance(column: str, mean: float, spread: float) -> Importance:
    return Importance(str(column), _number(mean), _number(spread))


def _coverage(level: float, rows: int, inside: Sequence[int]) -> Coverage:
    return Coverage(_number(level), int(rows), tuple(int(count) for count in inside))


def _column(numbers: Sequence[float | None], texts: Sequence[str]) -> Values:
    return Values(tuple(None if own is None else _number(own) for own in numbers), _texts(texts))

"""The user's own table: a file or a frame, checked, split and encoded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from regaug._checks import check_choice
from regaug._registry import unknown
from regaug.data.base import Data, Info, Rules, Split
from regaug.data.splits import SplitRule, ThreeParts, group_split, random_split, time_split
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.sources import read_source
from regaug.data.tabular.summary import summarize
from regaug.data.tabular.values import (
    Floats,
    Levels,
    column_names,
    read_dates,
    read_levels,
    read_numbers,
)
from regaug.exceptions import ArgumentError, DataError
from regaug.formatting import as_html, count

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 20
_SPLITS = {
    "random": "Rows at random by the seed, 60 / 20 / 20 %.",
    "group": "Whole groups at random by the seed, about 60 / 20 / 20 % of the rows.",
    "time": "By time: the first 60 % train, the next 20 % validate, the last 20 % test.",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSplit(Split):
    """A split of a table, with the encoder that was fitted on its training rows.

    Attributes:
        encoder: What made ``x`` of the three parts, and makes it of new tables.
    """

    encoder: Encoder


class Table(Data):
    """A table of the user; :func:`read_table` returns one.

    Attributes:
        frame: The rows that are used, as they were read; the index is the row's place in the
            source, counted from 0.
        targets: Names of the target columns.
        inputs: Names of the columns that may be inputs; what becomes of each is decided on the
            training rows of a split, by :class:`regaug.data.tabular.encoding.Encoder`.
        group: Name of the column of groups, if any.
        time: Name of the column of times, if any.
        y: Targets ``(n, m)``, float64.
        groups: Group of every row as text, ``(n,)``, if there is such a column.
        times: Time of every row, ``(n,)``, if there is such a column: its numbers, or the days
            since 1970 of its dates.
        given: How the user named it all, for a command to copy: ``source``, where it is a file,
            ``target``, ``group``, ``time``, ``drop``; without what was not given.
        summary: What was found and what happens to it, in a few lines of text. It looks at all
            rows; a split may decide otherwise, as it looks at its training rows.
    """

    def __init__(
        self,
        frame: "pd.DataFrame",
        *,
        targets: Sequence[str],
        group: str | None = None,
        time: str | None = None,
        drop: Sequence[str] = (),
        name: str = "table",
        notes: Sequence[str] = (),
    ) -> None:
        named_by = {"target": list(targets), "group": group, "time": time, "drop": list(drop)}
        self.given = {name: value for name, value in named_by.items() if value}
        self.targets, self.group, self.time = tuple(targets), group, time
        self.inputs = _check_columns(column_names(frame), self.targets, group, time, drop)
        y = np.column_stack([_read_target(frame, target) for target in self.targets])
        groups = None if group is None else read_levels(frame[group])
        times = None if time is None else _read_times(frame, time)
        keep, left_out = _usable_rows(y, groups, times)
        self.frame = frame if keep.all() else frame[keep]
        self.y = y[keep]
        self.times: Floats | None = None if times is None else times[keep]
        # Numbers are faster to split by than texts.
        self._codes = None if groups is None else groups[0][keep]
        self.groups = None if groups is None else groups[1][self._codes]
        _check_targets(self.targets, self.y.astype(np.float32), left_out)
        rule = _SPLITS[self._rule(None)]
        self.info = Info(name, "table", "rmse", rule, groups=group, license="the user's own")
        seen = Encoder.fit(self.frame[list(self.inputs)])  # for the summary; splits fit their own
        named = {"Groups": group, "Time": time}
        said = [f"{what}: {column!r}." for what, column in named.items() if column is not None]
        self.summary = summarize(name, len(self), self.targets, seen, [*notes, *left_out, *said])

    def _repr_html_(self) -> str:
        """Return the summary for a notebook."""
        return as_html(self.summary)

    def split(
        self, seed: int = 0, *, split: SplitRule | None = None, protocol: Rules = "tuned"
    ) -> TableSplit:
        """Split the rows in three and encode them; the encoder sees training rows only.

        Args:
            seed: Which of the possible splits; without effect on a split by time.
            split: The rule: ``"random"``, ``"group"`` (whole groups are held out) or ``"time"``
                (the last rows are held out). By default ``"group"`` if there is a column of groups,
                else ``"time"`` if there is one of times, else ``"random"``.
            protocol: ``"tuned"``; the paper says nothing about a user's table.
        """
        if check_choice("protocol", protocol, ("tuned", "paper")) == "paper":
            raise ArgumentError(
                "`protocol` must be 'tuned' for a table of your own, got 'paper': the paper has "
                "no rules for it."
            )
        places = self._split_rows(self._rule(split), seed)
        inputs = self.frame[list(self.inputs)]
        encoder = Encoder.fit(inputs.iloc[places[0]])
        x = encoder.transform(inputs)
        train, validation, test = (
            self._samples(torch.from_numpy(x.take(rows, axis=0)), rows) for rows in places
        )
        return TableSplit(train=train, validation=validation, test=test, encoder=encoder)

    def _rule(self, split: SplitRule | None) -> SplitRule:
        if split is None:
            return "group" if self.group else "time" if self.time else "random"
        check_choice("split", split, tuple(_SPLITS))
        if split != "random" and getattr(self, split) is None:
            raise ArgumentError(
                f"`split` must be 'random' without a column of {split}s, got {split!r}. "
                f"Name the column: read_table(..., {split}=...)."
            )
        return split

    def _split_rows(self, rule: SplitRule, seed: int) -> ThreeParts:
        values = {"group": self._codes, "time": self.times}.get(rule)
        if values is None:
            return random_split(len(self), seed=seed)
        different, first = np.unique(values, return_index=True)
        if len(different) < 3:
            shown = different if self.groups is None or rule == "time" else self.groups[first]
            raise DataError(
                f"Column {getattr(self, rule)!r} must have at least 3 different {rule}s to split "
                f"by, one for each part, got {len(shown)}: {shown.tolist()}. Use "
                ".split(split='random')."
            )
        return time_split(values) if rule == "time" else group_split(values, seed=seed)


def read_table(
    source: object,
    *,
    target: str | Sequence[str],
    group: str | None = None,
    time: str | None = None,
    drop: str | Sequence[str] = (),
) -> Table:
    """Read a table for regression from a file or a frame.

    All columns but the ones named here are inputs. Rows without a target (or group, or time) are
    left out and counted; :class:`~regaug.data.tabular.encoding.Encoder` says what becomes of the
    columns.

    Args:
        source: Path of a CSV file (``.csv``; ``.tsv`` and ``.tab`` with tabs; each also ``.gz``)
            with a header line, or of a Parquet file; a pandas or polars frame; anything with
            ``__arrow_c_stream__``. The index of a pandas frame is no column.
        target: The column to predict, or several.
        group: A column whose groups are held out whole (a city, a patient); no input.
        time: A column of dates or numbers to hold out the last rows by; no input.
        drop: Columns to leave out.

    Returns:
        The table; ``table.summary`` says what was found, ``table.split(seed=0)`` splits it.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"size": range(50, 80), "city": ["Oslo", "Rome"] * 15})
        >>> frame["price"] = frame["size"] ** 2.0
        >>> table = read_table(frame.sample(frac=1.0, random_state=0), target="price")
        >>> print(table.summary)
        table: 30 rows, 1 target ('price'), inputs: 1 number column, 1 category column,
        encoded as 3 numbers per row.
        >>> split = table.split(seed=0)
        >>> split.train.x.shape, split.test.y.shape
        (torch.Size([18, 3]), torch.Size([6, 1]))
    """
    frame, name, notes = read_source(source)
    group, time = (None if column is None else str(column) for column in (group, time))
    targets, dropped = _as_names(target), _as_names(drop)
    table = Table(
        frame, targets=targets, group=group, time=time, drop=dropped, name=name, notes=notes
    )
    if isinstance(source, str | Path):
        table.given["source"] = str(source)
    return table


def _as_names(names: object) -> list[str]:
    """Return one name or several as a list of texts, as the columns' own names are."""
    several = names if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    return [str(name) for name in several]


def _check_columns(
    names: list[str],
    targets: tuple[str, ...],
    group: str | None,
    time: str | None,
    drop: Sequence[str],
) -> tuple[str, ...]:
    """Check the names the user gave, and return those of the inputs."""
    if not targets:
        raise ArgumentError("`target` must name at least one column, got none.")
    given = {"target": targets, "group": (group,), "time": (time,), "drop": drop}
    for argument, chosen in given.items():
        for name in chosen:
            if name is not None and name not in names:
                raise ArgumentError(f"`{argument}`: {_unknown_column(name, names)}")
            if argument != "target" and name in targets:
                raise ArgumentError(f"`target` and `{argument}` must differ, got {name!r} in both.")
    if len(set(targets)) < len(targets):
        raise ArgumentError(f"`target` must name different columns, got {list(targets)}.")
    used = {*targets, group, time, *drop}
    inputs = tuple(name for name in names if name not in used)
    if not inputs:
        raise DataError(f"No input column is left: all of {names} are named otherwise.")
    return inputs


def _unknown_column(name: str, names: list[str]) -> str:
    near = get_close_matches(str(name), names, n=5)
    shown = names if len(names) <= 30 else (near or names[:30])
    message = unknown("column", str(name), shown)
    if len(shown) < len(names):
        message = f"{message[:-1]}, ... ({len(names):,} columns)."
    if all(text.replace(".", "").replace("-", "").isdigit() for text in names):
        message += " The first line holds numbers: does the file lack a header line?"
    return message


def _read_target(frame: "pd.DataFrame", name: str) -> Floats:
    """Return a target as numbers, NaN where it is missing."""
    series = frame[name]
    if series.dtype.kind == "b":
        raise DataError(
            f"Target {name!r} has two values, true and false: this is classification, and regaug "
            "is for regression."
        )
    read = read_numbers(series)
    if read.unreadable:
        levels, texts = read_levels(series)
        row = int((levels == texts.tolist().index(read.example)).argmax())
        more = "" if len(texts) > 2 else " It has two values: this is classification."
        raise DataError(
            f"Target {name!r} must hold numbers, got {read.example!r} in row {row + 1} "
            f"of {len(series):,} ({read.unreadable:,} such values; the header is no row).{more} "
            "Correct them, or leave them empty to drop the rows."
        )
    return read.values


def _read_times(frame: "pd.DataFrame", name: str) -> Floats:
    """Return a column of times as numbers that sort by time, NaN where it is missing."""
    series = frame[name]
    read = read_numbers(series) if series.dtype.kind != "M" else None
    if read is None or read.unreadable:
        read = read_dates(series)
    if read.unreadable:
        raise DataError(
            f"Time column {name!r} must hold numbers or dates such as 2024-01-31 12:30, got "
            f"{read.example!r}."
        )
    return read.values


def _usable_rows(
    y: Floats, groups: Levels | None, times: Floats | None
) -> tuple[NDArray[np.bool_], list[str]]:
    """Say which rows have all they need, and how many have not."""
    has = {"a finite target": np.isfinite(y).all(axis=1)}
    if groups is not None:
        has["a group"] = groups[0] >= 0
    if times is not None:
        has["a time"] = np.isfinite(times)
    counts = {what: int((~rows).sum()) for what, rows in has.items()}
    left_out = [f"{count(n, 'row')} without {what} left out." for what, n in counts.items() if n]
    return np.logical_and.reduce(list(has.values())), left_out


def _check_targets(names: tuple[str, ...], y: NDArray[np.float32], left_out: list[str]) -> None:
    if len(y) < MIN_ROWS:
        because = f" ({' '.join(left_out)})" if left_out else ""
        raise DataError(f"A table must have at least {MIN_ROWS} rows, got {len(y)}{because}.")
    for name, values in zip(names, y.T, strict=True):
        low, high = values.min(), values.max()
        if low == high:
            raise DataError(f"Target {name!r} is constant ({low:g}): there is nothing to predict.")
        if ((values == low) | (values == high)).all():
            raise DataError(
                f"Target {name!r} has two values, {low:g} and {high:g}: this is classification, "
                "and regaug is for regression."
            )

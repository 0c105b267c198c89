"""The user's own table: a file or a frame, checked, split and encoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from regaug._checks import check_choice
from regaug.data.base import Data, Info, Rows, Rules, Split
from regaug.data.duplicates import Duplicates
from regaug.data.splits import SplitRule, ThreeParts, group_split, random_split, time_split
from regaug.data.tabular.columns import Category, Column, Date
from regaug.data.tabular.discovery import read_columns
from regaug.data.tabular.duplicates import find_duplicates
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.leaks import Leak, find_leaks, say_leaks
from regaug.data.tabular.numerals import Decimal
from regaug.data.tabular.readings import Reading
from regaug.data.tabular.roles import (
    as_names,
    check_columns,
    check_targets,
    read_relevance,
    read_target,
    read_times,
    usable_rows,
)
from regaug.data.tabular.sources import read_cells
from regaug.data.tabular.summary import summarize
from regaug.data.tabular.texts import Floats, without_markers
from regaug.data.tabular.values import column_names, read_dates, read_levels, read_numbers
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataError
from regaug.formatting import as_html

if TYPE_CHECKING:
    import pandas as pd

_SPLITS = {
    "random": "Rows at random by the seed, 60 / 20 / 20 %; equal ones stay together.",
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
        frame: The rows that are used, as they were read: numbers and dates that were written as
            text are such. The index is the row's place in the source, counted from 0.
        targets: Names of the target columns.
        inputs: Names of the columns that may be inputs; what becomes of each is decided on the
            training rows of a split, by :class:`regaug.data.tabular.encoding.Encoder`.
        group: Name of the column of groups, if any.
        time: Name of the column of times, if any.
        relevance: Name of the column that says how much the target of a row matters, if any.
        y: Targets ``(n, m)``, float64.
        groups: Group of every row as text, ``(n,)``, if there is such a column.
        times: Time of every row, ``(n,)``, if there is such a column: its numbers, or the days
            since 1970 of its dates.
        relevances: Of every row, ``(n,)``, from 0 to 1, if there is such a column.
        readings: How the texts of inputs, targets and times were read that are not written plainly.
        notes: How columns were read, and what was left out, imputed and pooled; a sentence each.
        given: How the user named it all, for a command to copy: ``source``, where it is a file,
            ``target``, ``group``, ``time``, ``drop``, ``encoding``; without what was not given.
    """

    def __init__(
        self,
        frame: "pd.DataFrame",
        *,
        targets: Sequence[str],
        group: str | None = None,
        time: str | None = None,
        drop: Sequence[str] = (),
        relevance: str | None = None,
        name: str = "table",
        notes: Sequence[str] = (),
        readings: Sequence[Reading] | None = None,
        decimal: Decimal | None = None,
        has_markers: bool = False,
    ) -> None:
        named_by = {"target": list(targets), "group": group, "time": time, "drop": list(drop)}
        named_by["relevance"] = relevance
        self.given = {name: value for name, value in named_by.items() if value}
        self.targets, self.group, self.time = tuple(targets), group, time
        self.relevance, names = relevance, column_names(frame)
        self.inputs = check_columns(names, self.targets, group, time, drop, relevance)
        about: tuple[str, ...] = ()
        if readings is None:
            others = [name for name in (time, relevance) if name]
            texts = [*self.inputs, *self.targets, *others]
            read = read_columns(frame, texts, decimal=decimal, has_markers=has_markers)
            frame, readings, about = read.frame, read.readings, read.notes
        if group is not None and has_markers:
            frame = frame.assign(**{group: without_markers(frame[group])})
        self.readings = tuple(readings)
        y = np.column_stack([read_target(frame, target) for target in self.targets])
        groups = None if group is None else read_levels(frame[group])
        times = None if time is None else read_times(frame, time)
        keep, left_out = usable_rows(y, groups, times)
        self.frame = frame if keep.all() else frame[keep]
        self.y = y[keep]
        self.times: Floats | None = None if times is None else times[keep]
        if relevance is not None:
            self.relevances = read_relevance(self.frame[relevance])
        # Numbers are faster to split by than texts.
        self._codes = None if groups is None else groups[0][keep]
        self.groups = None if groups is None else groups[1][self._codes]
        self._about = (*notes, *left_out)
        check_targets(self.targets, self.y.astype(np.float32), left_out)
        rule = _SPLITS[self._rule(None)]
        self.info = Info(name, "table", "rmse", rule, groups=group, license="the user's own")
        # What all rows say; splits learn from their own training rows.
        self._seen = Encoder.fit(self.frame[list(self.inputs)], readings=self.readings)
        self.notes = (*about, *self._seen.notes)

    @cached_property
    def duplicates(self) -> Duplicates:
        """Rows with equal inputs: those stay on one side of a split at random."""
        return find_duplicates(self.frame, [own.name for own in self._seen.columns], self.y)

    @property
    def units(self) -> Rows:
        """A number for every row, ``(n,)``: those with equal inputs, which stay together."""
        return self.duplicates.units

    @cached_property
    def leaks(self) -> tuple[Leak, ...]:
        """Inputs that give a target away, found on all rows: a warning, nothing is left out."""
        first = np.unique(self.units, return_index=True)[1]  # equal rows prove nothing
        numbers, levels = dict[str, Floats](), dict[str, Floats]()
        for column in self._seen.columns:
            series = self.frame[column.name].iloc[first]
            if isinstance(column, Category):
                codes = read_levels(series)[0]
                levels[column.name] = np.where(codes < 0, np.nan, codes)
            elif isinstance(column, Date):
                numbers[column.name] = read_dates(series).values
            else:
                numbers[column.name] = read_numbers(series).values
        targets = dict(zip(self.targets, self.y[first].T, strict=True))
        return find_leaks(numbers, levels, targets)

    @cached_property
    def summary(self) -> str:
        """What was found and what happens to it, in a few lines of text.

        It looks at all rows; a split may decide otherwise, as it looks at its training rows.
        """
        named = {"Groups": self.group, "Time": self.time, "Relevance": self.relevance}
        said = [f"{what}: {column!r}." for what, column in named.items() if column is not None]
        rule = self._rule(None)
        codes = self._codes if rule == "group" else None
        repeated = self.duplicates.describe(groups=codes, has_times=rule == "time")
        about = [*say_leaks(self.leaks), *self._about, *said, *([repeated] if repeated else [])]
        return summarize(
            self.info.name,
            len(self),
            self.targets,
            self._seen,
            about_table=about,
            about_columns=self.notes,
        )

    @property
    def encoded(self) -> tuple[Column, ...]:
        """What was found out about every input, by all rows."""
        return self._seen.columns

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
        encoder = Encoder.fit(inputs.iloc[places[0]], readings=self.readings)
        x = encoder.transform(inputs)
        train, validation, test = (
            self._samples(torch.from_numpy(x.take(rows, axis=0)), rows) for rows in places
        )
        return TableSplit(
            train=train,
            validation=validation,
            test=test,
            encoder=encoder,
            blocks=encoder.blocks,
        )

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
            return random_split(len(self), units=self.units, seed=seed)
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
    relevance: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table for regression from a file or a frame.

    All columns but the ones named here are inputs. Rows without a target (or group, or time) are
    left out and counted; :class:`~regaug.data.tabular.encoding.Encoder` says what becomes of the
    columns. Numbers and dates that are written as text (``$45,210``, ``3,5``, ``12 km``,
    ``31/12/2024``) are read as such, in the way that a column's values show; the summary says how.

    Args:
        source: Path of a text file with a header line (``.csv``, ``.tsv``, ``.tab``, ``.txt``),
            with commas, semicolons, tabs or ``|`` between the columns, or with a JSON object per
            line (``.jsonl``, ``.ndjson``), each also ``.gz``; of an Excel file (``.xlsx``, an
            extra), a Parquet file, a Feather or Arrow file; ``"-"`` for CSV from the standard
            input; a pandas or polars frame; anything with ``__arrow_c_stream__``. The index of a
            pandas frame is no column.
        target: The column to predict, or several.
        group: A column whose groups are held out whole (a city, a patient); no input.
        time: A column of dates or numbers to hold out the last rows by; no input.
        drop: Columns to leave out.
        relevance: A column that says from 0 to 1 how much the target of every row matters, for
            rows that ``"smogn"`` makes; no input.
        encoding: What a text file is written in, such as ``"cp1250"``; found out if None.

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
    cells = read_cells(source, encoding=encoding)
    given = (group, time, relevance)
    group, time, relevance = (None if column is None else str(column) for column in given)
    targets, dropped = as_names(target), as_names(drop)
    table = Table(
        cells.frame,
        targets=targets,
        group=group,
        time=time,
        drop=dropped,
        relevance=relevance,
        name=cells.name,
        notes=cells.notes,
        decimal=cells.decimal,
        has_markers=cells.has_markers,
    )
    if isinstance(source, str | Path):
        table.given["source"] = str(source)
    if encoding is not None:
        table.given["encoding"] = encoding
    return table


def open_table(
    data: object,
    *,
    target: str | Sequence[str] | None = None,
    group: str | None = None,
    time: str | None = None,
    drop: str | Sequence[str] = (),
    relevance: str | None = None,
) -> Data:
    """Return data as they are, or the table that a path or a frame is.

    Args:
        data: A data set, which knows its columns; or what :func:`read_table` takes.
        target: The column to predict, or several, of a path or a frame.
        group: Its column of groups.
        time: Its column of times.
        drop: Its columns to leave out.
        relevance: Its column that says how much a target matters.
    """
    if isinstance(data, Data):
        columns = {"target": target, "group": group, "time": time, "drop": drop or None}
        columns["relevance"] = relevance
        for name, value in columns.items():
            if value is not None:
                raise ArgumentError(
                    f"`{name}` must be None for data that knows its columns, got {value!r}."
                )
        return data
    if target is None:
        raise ArgumentTypeError(
            "`data` must be a table (regaug.data.read_table, regaug.data.load), or a path or a "
            f"frame with `target`, got {type(data).__name__} without it."
        )
    return read_table(data, target=target, group=group, time=time, drop=drop, relevance=relevance)

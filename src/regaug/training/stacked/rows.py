"""The rows of many runs in one table, and the errors of all runs at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regaug.data.base import Split
from regaug.exceptions import ArgumentError
from regaug.metrics import METRICS
from regaug.training.scores import own_targets, own_units, recorded_rows
from regaug.training.stacked.groundwork import Groundwork, as_rows


@dataclass(frozen=True, eq=False)
class StackedPart:
    """One part (training, validation, test) of several splits.

    Splits with fewer rows than others repeat the table's first, which does not count.
    """

    places: Tensor  # where the rows lie in the table of all rows, (splits, n)
    is_row: Tensor | None  # which of them count, (splits, n); None if all do
    targets: Tensor  # in their own units, (splits, n, m), float64

    @classmethod
    def of(cls, places: Sequence[Tensor], targets: Sequence[Tensor]) -> Self:
        """Pad the rows of all splits to one length."""
        sizes = torch.tensor([len(rows) for rows in places])
        is_row = torch.arange(int(sizes.max())) < sizes[:, None]
        return cls(
            pad_sequence(list(places), batch_first=True, padding_value=0),
            None if bool(is_row.all()) else is_row,
            pad_sequence([target.double() for target in targets], batch_first=True),
        )


class StackedRows:
    """The rows of several splits of tables, one below the other, those of ``Split.more`` left out.

    Args:
        splits: The splits.
        dtype: What is computed in.
        groundwork: What was done before the nets of each split learn; None for nothing.

    Attributes:
        x: Inputs of all parts of all splits, ``(rows, d)``.
        y: What the nets learn of them, ``(rows, m)``.
        first_row: Where the training rows of each split begin.
        parts: The parts by name.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        dtype: torch.dtype,
        groundwork: Sequence[Groundwork] | None = None,
    ) -> None:
        self.splits = splits
        parts = [part for split in splits for part in (split.train, split.validation, split.test)]
        inputs = [as_rows(part) for part in parts]
        shapes = {(x.shape[1], part.y.shape[1]) for x, part in zip(inputs, parts, strict=True)}
        if len(shapes) > 1:
            raise ArgumentError(
                "`data` must be splits with the same numbers of columns and targets, got "
                f"{sorted(shapes)}. Train tables of different shapes apart."
            )
        self.x = torch.cat(inputs).to(dtype)
        done = groundwork or [Groundwork() for _ in splits]
        self._rest = torch.tensor([own.rest for own in done], dtype=torch.float64)
        pairs = list(zip([own for own in done for _ in range(3)], inputs, parts, strict=True))
        self.y = torch.cat([own.learned(x, part.y) for own, x, part in pairs]).to(dtype)
        self._line: Tensor | None = None  # what the lines say of every row
        if any(own.line is not None for own in done):
            zero = [part.y.new_zeros(part.y.shape, dtype=torch.float64) for part in parts]
            said = [own.finish(x, none) for (own, x, _), none in zip(pairs, zero, strict=True)]
            self._line = torch.cat(said)
        starts = torch.tensor([0, *(len(part) for part in parts)]).cumsum(0)[:-1].reshape(-1, 3)
        self.first_row: list[int] = starts[:, 0].tolist()
        self.parts = {
            name: self._part(name, starts[:, column].tolist())
            for column, name in enumerate(("train", "validation", "test"))
        }

    def errors(
        self, part: str, predictions: Tensor, split_of_run: Sequence[int], metric: str
    ) -> list[float]:
        """Return the error of what the nets predict, ``(runs, n, m)``, as a metric tells it."""
        numbers, stacked = torch.tensor(split_of_run), self.parts[part]
        if self._line is not None:
            rest = self._rest[numbers][:, None, None]
            predictions = self._line[stacked.places[numbers]] + rest * predictions
        own = torch.empty_like(predictions, dtype=torch.float64)
        for number in set(split_of_run):
            runs = (numbers == number).nonzero().squeeze(1)
            own[runs] = own_units(self.splits[number], predictions[runs]).double()
        is_row = None if stacked.is_row is None else stacked.is_row[numbers]
        pooled = self.splits[0].pooled  # as all of a stack are
        found = METRICS[metric](own, stacked.targets[numbers], rows=is_row, pooled=pooled)
        errors: list[float] = found.tolist()
        return errors

    def _part(self, name: str, starts: Iterable[int]) -> StackedPart:
        places, targets = [], []
        for split, start in zip(self.splits, starts, strict=True):
            part = split.parts[name]
            rows = torch.arange(len(part))
            if (some := recorded_rows(name, len(part))) is not None:
                rows = torch.from_numpy(some)
            places.append(start + rows)
            targets.append(own_targets(split, part)[rows])
        return StackedPart.of(places, targets)

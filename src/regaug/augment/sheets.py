"""The sheets of all stored rows, found once, and those of many runs in one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regaug.augment.joint import row_keys
from regaug.functional.curvature import Sheets
from regaug.functional.quadratic import FAR


@dataclass(frozen=True, eq=False)
class StoredSheets:
    """The sheets of all stored rows."""

    d: int  # their dimension
    rows: Tensor  # (n, columns)
    sheets: Sheets

    def find(self, rows: Tensor) -> Sheets | None:
        """Return the sheets of some rows; None if one of them is not stored."""
        found = [self._places.get(key) for key in row_keys(rows)]
        return None if None in found else self.sheets[torch.tensor(found, device=self.rows.device)]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        """The place of each row by its bytes."""
        return {key: place for place, key in enumerate(row_keys(self.rows))}

    @property
    def form(self) -> tuple[object, ...]:
        """What sheets in one table must share."""
        # The features of fewer coordinates are not the first ones of those of more.
        is_kernel = self.sheets.knots is not None
        return is_kernel, None if is_kernel else self.d


class SheetTable:
    """The sheets of several sets of stored rows, one below the other.

    All of a row is in one place, so that a step gathers it in one call. Where sets differ in
    dimension or in neighbors, zeros stand for what there is not.
    """

    def __init__(self, sets: Sequence[StoredSheets], dtype: torch.dtype) -> None:
        self.d = max(known.d for known in sets)
        all_sheets = [known.sheets for known in sets]
        features = [s.directions.shape[2] - k.d for s, k in zip(all_sheets, sets, strict=True)]
        self._columns, self._features = all_sheets[0].directions.shape[1], max(features)
        self._has_knots = all_sheets[0].knots is not None
        records = []
        for known, own, count in zip(sets, all_sheets, features, strict=True):
            missing, fewer = self.d - known.d, self._features - count
            tangent, normal = own.directions.split_with_sizes((known.d, count), 2)
            parts = [F.pad(tangent, (0, missing)), F.pad(normal, (0, fewer))]
            record = [own.size, torch.cat(parts, dim=2).flatten(1)]
            if own.knots is not None:
                record.append(F.pad(own.knots, (0, missing, 0, fewer)).flatten(1))
            records.append(torch.cat(record, dim=1))
        sizes = torch.tensor([0, *(len(record) for record in records)], device="cpu")
        self.firsts: list[int] = sizes.cumsum(0)[:-1].tolist()  # where each set begins
        self._records = torch.cat(records).to(dtype)

    def offsets(self, rows: Tensor, eta: Tensor) -> Tensor:
        """Return how far rows of the table, by number ``(n,)``, move for the steps ``(n, d)``."""
        records, width = self._records.index_select(0, rows), self.d + self._features
        eta, knots = eta.to(records.dtype), None
        size, directions, rest = records.split_with_sizes(
            (1, self._columns * width, records.shape[1] - 1 - self._columns * width), 1
        )
        if self._has_knots:
            knots = rest.view(-1, self._features, self.d)
        return Sheets(size, knots, directions.view(-1, self._columns, width)).offsets(eta, FAR)

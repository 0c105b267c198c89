"""How far new rows of a table are from its own: means, spreads, correlations and ranges."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regaug.data.base import Data
from regaug.data.tabular.columns import Boolean, Number
from regaug.data.tabular.generation import as_table
from regaug.data.tabular.values import read_numbers
from regaug.formatting import change, count, number, percent

if TYPE_CHECKING:
    import pandas as pd

# New rows vary clearly less from here on, if that is no chance.
_CLEARLY = 0.08
_KEEPS = "epbeta-mixup"


@dataclass(frozen=True, eq=False)
class Moments:
    """What tells new rows from the rows of a table, in its columns of numbers and its targets.

    Attributes:
        rows: How many new rows were looked at.
        means: By column, how far the mean of the new rows is from that of the old ones, in
            standard deviations of these.
        spreads: Their standard deviation, less 1, in units of that of the old ones.
        correlations: By pair of columns, how much higher their correlation is.
        ranges: By column, how much of the range of the old rows the new ones span.

    Example:
        >>> import pandas as pd
        >>> from regaug.data import read_table
        >>> from regaug.data.tabular.generation import generate
        >>> frame = pd.DataFrame({"size": [i * 7 % 50 + 0.5 for i in range(50)]})
        >>> frame["price"] = frame["size"] ** 2
        >>> table = read_table(frame, target="price")
        >>> found = Moments.of(table, generate(table, method="mixup", rows=2000))
        >>> round(found.spread, 1), found.is_narrow
        (-0.2, True)
    """

    rows: int
    means: Mapping[str, float]
    spreads: Mapping[str, float]
    correlations: Mapping[tuple[str, str], float]
    ranges: Mapping[str, float]

    @classmethod
    def of(cls, data: Data, new: "pd.DataFrame") -> Self:
        """Compare new rows, as ``generate`` makes them, with those of the table.

        Columns that are constant in the table have no spread to compare, nor have single rows.
        """
        table = as_table(data)
        is_number = {
            column.name: isinstance(column, Number) and not isinstance(column, Boolean)
            for column in table.encoded
        }
        names = [name for name in new.columns if is_number.get(name, name in table.targets)]
        old, made = _read(table.frame, names), _read(new, names)
        deviation = old.std(ddof=0)
        names = [name for name in names if deviation[name] > 0 and made[name].notna().any()]
        old, made, deviation = old[names], made[names], deviation[names]
        before, after = old.corr(), made.corr()
        spans = (made.max() - made.min()) / (old.max() - old.min())
        pairs = combinations(names, 2)
        apart = {(a, b): float(after.at[a, b] - before.at[a, b]) for a, b in pairs}
        return cls(
            rows=len(new),
            means=((made.mean() - old.mean()) / deviation).to_dict(),
            spreads=(made.std(ddof=0) / deviation - 1.0).to_dict(),
            correlations={pair: own for pair, own in apart.items() if np.isfinite(own)},
            ranges=spans.to_dict(),
        )

    @property
    def mean(self) -> float:
        """How far means are off, on average over the columns."""
        return _average(map(abs, self.means.values()))

    @property
    def spread(self) -> float:
        """How much larger standard deviations are, less 1: their geometric mean."""
        ratios = np.array([1.0 + own for own in self.spreads.values()])
        with np.errstate(divide="ignore"):
            return float(np.exp(np.log(ratios).mean())) - 1.0 if len(ratios) else 0.0

    @property
    def correlation(self) -> float:
        """How far correlations are off, on average over the pairs."""
        return _average(map(abs, self.correlations.values()))

    @property
    def range(self) -> float:
        """How much of the old ranges is spanned, on average over the columns."""
        return _average(self.ranges.values(), 1.0)

    @property
    def is_narrow(self) -> bool:
        """Whether new rows vary clearly less, and more than chance does with so few of them."""
        chance = 2.0 / np.sqrt(2.0 * max(self.rows, 1))
        return self.spread < -max(_CLEARLY, float(chance))

    def lines(self) -> list[str]:
        """Return the comparison as a few lines of text; none if there is nothing to compare."""
        if not self.means:
            return []
        mean, spread, least = (_farthest(own) for own in (self.means, self.spreads, self._gaps))
        found = [
            f"Beside the table's own rows, over {count(len(self.means), 'column')} of numbers:",
            f"- means differ by {number(self.mean, 2)} standard deviations on average, that of "
            f"{mean!r} by {number(abs(self.means[mean]), 2)}",
            f"- standard deviations: {change(100 * self.spread, 'percent')} on average, that of "
            f"{spread!r} {change(100 * self.spreads[spread], 'percent')}",
        ]
        if self.correlations:
            a, b = _farthest(self.correlations)
            found.append(
                f"- correlations differ by {number(self.correlation, 2)} on average, that of "
                f"{a!r} and {b!r} by {number(abs(self.correlations[a, b]), 2)}"
            )
        found.append(
            f"- they span {percent(self.range)} of the ranges on average, of that of {least!r} "
            f"{percent(self.ranges[least])}"
        )
        return found

    def advice(self, method: str) -> str:
        """Return what to do about rows that vary too little; empty if they do not."""
        if not self.is_narrow:
            return ""
        way_out = f"The method {_KEEPS} keeps the spread."
        if method == _KEEPS:
            way_out = "Others, such as cems, may keep it."
        what = f"They vary by {percent(-self.spread)} less than the table"
        return f"{what}: a model sees too little of the ends. {way_out}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        columns = {
            name: {"mean": own, "spread": self.spreads[name], "range": self.ranges[name]}
            for name, own in self.means.items()
        }
        pairs = [{"columns": [*pair], "change": own} for pair, own in self.correlations.items()]
        names = ("mean", "spread", "correlation", "range")
        return {
            **{name: getattr(self, name) for name in names},
            "columns": columns,
            "correlations": pairs,
        }

    @property
    def _gaps(self) -> dict[str, float]:
        return {name: 1.0 - own for name, own in self.ranges.items()}


def _read(frame: "pd.DataFrame", names: list[str]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame({name: read_numbers(frame[name]).values for name in names})


def _average(values: Iterable[float], empty: float = 0.0) -> float:
    known = [*values]
    return float(np.mean(known)) if known else empty


def _farthest(values: Mapping[Any, float]) -> Any:
    return max(values, key=lambda name: abs(values[name]))

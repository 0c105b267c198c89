"""Does FOMA work? The best rows of every data set, and one table of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regaug import formatting
from regaug.formatting import TextTable
from regaug.metrics import METRICS
from regaug.reproduction import published
from regaug.reproduction.measured import Figure, Line, Measured, Tuned
from regaug.reproduction.problems import SCALINGS
from regaug.reproduction.recipes import metric_of
from regaug.reproduction.tables import FOMA, RELEASED
from regaug.training.baselines import BASELINES

# What the errors of a data set are in; what has no unit is not named.
UNITS = {
    "airfoil": "dB",
    "no2": "log of the concentration",
    "exchange-rate": "shares of each column's maximum",
    "electricity": "shares of each column's maximum",
    "echo": "percent of ejection fraction",
    "rcf-mnist": "turns",
    "crimes": "crimes per head, scaled to [0, 1]",
    "skillcraft": "milliseconds",
}


def name_metric(data: str) -> str:
    """Return a data set's metric with its direction and unit.

    Example:
        >>> name_metric("airfoil"), name_metric("dti")
        ('RMSE ↓, dB', "Pearson's R ↑")
    """
    metric = METRICS[metric_of(data)]
    unit = f", {UNITS[data]}" if data in UNITS and metric.has_unit else ""
    return f"{metric.title} {'↑' if metric.higher_is_better else '↓'}{unit}"


@dataclass(frozen=True)
class Best:
    """The best of some rows: by the test error, so in favor of whoever has several."""

    line: Line
    figure: Figure

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Best | None":
        """Return the row with the best mean; None if nothing is measured."""
        known = [cls(line, line.figures[0]) for line in lines if line.figures]
        return min(
            known, key=lambda own: METRICS[own.figure.metric].error(own.figure.mean), default=None
        )

    def say(self, *, name: bool = True) -> str:
        """Return the mean, which row it is, and what of it was cut short."""
        words = [self.line.label.split(";")[0]] if name else []
        words += self.line.lacks
        note = f" ({', '.join(words)})" if words else ""
        return formatting.short(self.figure.mean) + note


@dataclass(frozen=True)
class Rows:
    """The rows of a data set in the paper's protocol, by what they are."""

    found: Measured

    @property
    def erm(self) -> Best | None:
        """Plain training with C-Mixup's settings, as the paper quotes it."""
        return Best.of(line for line in self.found.paper if line.label == "erm")

    @property
    def foma(self) -> Best | None:
        """The best of FOMA and FOMA_rho by the paper's tables, and of what was released."""
        return Best.of(line for line in self.found.paper if line.label in (*FOMA, RELEASED))

    @property
    def scaled_erm(self) -> Best | None:
        """Plain training with scaled targets, of either kind."""
        return self._scaled("erm")

    @property
    def scaled_foma(self) -> Best | None:
        """The best of FOMA with scaled targets, of either kind."""
        return self._scaled(*FOMA, RELEASED)

    @property
    def baseline(self) -> Best | None:
        """The best of what is no net."""
        return Best.of(line for line in self.found.paper if line.label in BASELINES)

    def _scaled(self, *labels: str) -> Best | None:
        wanted = {f"{label}; targets {scaling}" for label in labels for scaling in SCALINGS}
        return Best.of(line for line in self.found.paper if line.label in wanted)


def make_table(tables: Sequence[Measured]) -> TextTable:
    """Return the one table that answers the question, a row for every data set."""
    header = (
        *("data", "erm, published", "FOMA, published", "erm, here", "FOMA, here"),
        *("erm, scaled targets", "FOMA, scaled targets", "erm, tuned", "FOMA against it, tuned"),
        *("best without a net", "best without a net, tuned"),
    )
    return TextTable("Does FOMA work?", header, [_row(found) for found in tables])


def _row(found: Measured) -> list[str]:
    rows = Rows(found)
    erm = _cell(found, "erm")
    return [
        f"**{found.data}**{' (stand-in)' if found.note else ''}, {name_metric(found.data)}",
        "" if erm is None else f"{erm.mean:g}",
        _published(found),
        "" if rows.erm is None else rows.erm.say(name=False),
        "" if rows.foma is None else rows.foma.say(),
        "" if rows.scaled_erm is None else rows.scaled_erm.say(name=False),
        "" if rows.scaled_foma is None else rows.scaled_foma.say(),
        *say_tuned(found.tuned),
        "" if rows.baseline is None else rows.baseline.say(),
        _tuned_baseline(found.tuned),
    ]


def _cell(found: Measured, method: str) -> published.Cell | None:
    """Return what the paper has of a method; of data that only others have there is nothing."""
    return published.cell(found.data, method, metric_of(found.data)) if found.paper else None


def best_cell(found: Measured) -> published.Cell | None:
    """Return the better published figure of the two FOMA."""
    cells = [_cell(found, method) for method in FOMA]
    error = METRICS[metric_of(found.data)].error
    return min((cell for cell in cells if cell), key=lambda cell: error(cell.mean), default=None)


def _published(found: Measured) -> str:
    best = best_cell(found)
    return "" if best is None else f"{best.mean:g} ({best.method})"


def say_tuned(tuned: Tuned | None) -> tuple[str, str]:
    """Return what tuned plain training has, and what the better FOMA changes of it."""
    if tuned is None:
        return "", ""
    comparison, erm = tuned.comparison, tuned.comparison.row("erm")
    best = best_foma(tuned)
    if best is None:
        return formatting.number(erm.mean), ""
    row = comparison.row(best)
    change = formatting.change(row.change, comparison.unit)
    interval = formatting.between(row.change_low, row.change_high, comparison.unit)
    return formatting.number(erm.mean), f"{change} ({interval}; {best})"


def _tuned_baseline(tuned: Tuned | None) -> str:
    """Return the best of what is no net on the splits of the tuned protocol, and its change."""
    if tuned is None:
        return ""
    comparison = tuned.comparison  # the best mean comes first
    best = next((row for row in comparison.rows if row.is_baseline and row.mean is not None), None)
    if best is None:
        return ""
    change = formatting.change(best.change, comparison.unit)
    interval = formatting.between(best.change_low, best.change_high, comparison.unit)
    against = ", ".join(filter(None, (best.name, f"{change} against erm", interval)))
    return f"{formatting.number(best.mean)} ({against})"


def best_foma(tuned: Tuned) -> str | None:
    """Return the better of the two FOMA in the tuned protocol."""
    comparison = tuned.comparison
    known = [row for row in comparison.rows if row.name in FOMA and row.change is not None]
    error = METRICS[comparison.metric].error
    return min(known, key=lambda row: error(row.change)).name if known else None

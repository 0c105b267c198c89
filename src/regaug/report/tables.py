"""The tables of a report, as text for the page to lay out."""

import math
from dataclasses import dataclass
from statistics import fmean

from regaug import formatting
from regaug.formatting import number, percent, probability
from regaug.metrics import METRICS, RARE_METRICS
from regaug.runs.record import RunRecord
from regaug.studies.details import SHOWN, Details
from regaug.studies.leaderboard import show_details
from regaug.studies.pairs import Pair
from regaug.studies.statistics import Comparison
from regaug.studies.study import Study

# The strongest color of a cell of the table of pairs, in per cent: text must stay readable on it.
STRONGEST = 36


@dataclass(frozen=True)
class PairCell:
    """A cell of the table of pairs: how the row differs from the column.

    ``tone`` is ``"good"`` if the row has won more splits than the column, ``"bad"`` if fewer,
    ``"even"`` otherwise; ``strength`` says how clearly, in per cent of a color.
    """

    change: str
    remark: str
    tone: str
    strength: int
    is_significant: bool


def pair_table(comparison: Comparison) -> list[tuple[str, list[PairCell | None]]]:
    """Return a line for every row: its name, and a cell for every column, None on the diagonal."""
    names = [row.name for row in comparison.rows]
    return [
        (
            name,
            [None if other == name else _cell(comparison, name, other) for other in names],
        )
        for name in names
    ]


def _cell(comparison: Comparison, name: str, other: str) -> PairCell:
    pair: Pair = comparison.pair(name, other)
    p = "" if pair.p_holm is None else f", p {probability(pair.p_holm)}"
    return PairCell(
        change=formatting.change(pair.change, comparison.unit),
        remark=f"won {percent(pair.won)}{p}",
        tone="good" if pair.won > 0.5 else "bad" if pair.won < 0.5 else "even",
        strength=round(2 * abs(pair.won - 0.5) * STRONGEST),
        is_significant=pair.is_significant,
    )


def detail_table(study: Study) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the header and the lines of what is known beside the metric; no lines without any."""
    own = [(row.name, study.details.get(row.name, Details())) for row in study.comparison.rows]
    cells = [(name, show_details(details)) for name, details in own]
    targets = study.comparison.targets
    titles = {
        name: metric.title_for(targets)
        for name, metric in METRICS.items()
        if name not in RARE_METRICS or study.comparison.is_about_rare
    }
    single = f"{study.comparison.title} of a single net"
    titles |= {"single": single, "fit": "Fit", "epochs": "Epochs", "predict": "Predict a row"}
    shown = [name for name in titles if any(name in known for _, known in cells)]
    lines = [(name, [known.get(each, "") for each in shown]) for name, known in cells]
    return [titles[name] for name in shown], lines if shown else []


def gap_table(study: Study) -> list[tuple[str, list[str]]]:
    """Return a line for every method: its error on training and validation rows, and the gap.

    Means over the nets that the splits have chosen, at the epoch that each has chosen; only of
    methods whose runs have kept their curves.
    """
    sign, lines = METRICS[study.config.metric].sign, []
    for name in study.config.methods:
        pairs = [_errors_at_best(record) for record in study.chosen[name]]
        known = [pair for pair in pairs if pair is not None]
        if not known:
            continue
        train, validation = (fmean(column) for column in zip(*known, strict=True))
        gap = number(sign * (validation - train), 3)
        lines.append((name, [number(train), number(validation), gap]))
    return lines


def _errors_at_best(record: RunRecord) -> tuple[float, float] | None:
    """Return a run's errors on training and validation rows after its best epoch, if known."""
    curves, place = record.curves, record.best_epoch - 1
    parts = [curves.get("train", ()), curves.get("validation", ())]
    found = [own[place] for own in parts if 0 <= place < len(own)]
    known = [value for value in found if value is not None and math.isfinite(value)]
    return (known[0], known[1]) if len(known) == 2 else None


def target_tables(study: Study) -> list[tuple[str, list[str], list[tuple[str, list[str]]]]]:
    """Return for every target its name, the header and the lines; nothing if it is one only."""
    names = study.config.target_names if study.config.targets > 1 else ()
    header = [METRICS[metric].title for metric in SHOWN]
    tables = []
    for name in names:
        known = {row: own.targets[name] for row, own in study.details.items() if own.targets}
        lines = [
            (row.name, [number(known[row.name].get(metric)) for metric in SHOWN])
            for row in study.comparison.rows
            if row.name in known
        ]
        tables += [(name, header, lines)] if lines else []
    return tables

"""What the runs of a table have shown, beside what the paper prints."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any, Self

from regaug import formatting, methods
from regaug._files import JSON
from regaug.exceptions import StoreError
from regaug.formatting import TextTable
from regaug.metrics import METRICS, Score
from regaug.reproduction import published
from regaug.reproduction.cuts import Cut, read_cut
from regaug.reproduction.problems import PaperData
from regaug.reproduction.recipes import metric_of
from regaug.reproduction.tables import Experiment, Row, Size
from regaug.runs.record import RunRecord
from regaug.studies.config import StudyConfig
from regaug.studies.leaderboard import leaderboard
from regaug.studies.selection import choose
from regaug.studies.statistics import Comparison
from regaug.studies.study import Study
from regaug.studies.verdict import make_verdict
from regaug.training import Settings

Records = Mapping[str, RunRecord]
UNSHIFTED = "unshifted"
TUNED = "tuned"  # what the study of a data set is kept as
CUT = "Rows that were cut short are no test of the paper: no published figure stands beside them."
CHANGED = (
    "batches changed: share of the training batches in which FOMA scales a singular value, and the "
    "median of its cut k among so many values"
)
_MARKS = {"own": "", "re-run": " (re-run)", "quoted": " (quoted)"}


@dataclass(frozen=True)
class Figure:
    """A number that was measured several times, beside the published one, as it is printed.

    ``apart`` is the difference of the two means in combined standard errors; None if it is unknown.
    """

    metric: str
    domain: str  # "average", "worst" or "unshifted"
    mean: float
    sd: float | None
    n: int
    published: str | None = None
    published_mean: float | None = None
    table: int | None = None
    source: str | None = None
    apart: float | None = None

    @property
    def score(self) -> Score:
        """The mean, which knows its metric."""
        return Score(self.metric, self.mean)

    @property
    def title(self) -> str:
        """What it measures, and where."""
        title = METRICS[self.metric].title
        return title if self.domain == "average" else f"{title}, {self.domain}"


@dataclass(frozen=True)
class Line:
    """A row of a table with what was measured.

    So many of the planned runs are finished. They have at most so many of the epochs that the
    paper's protocol asks for, None for a baseline; the figures are those of the runs in ``keys``.
    ``cut`` is what FOMA did to the batches of these, ``hours`` what all of them took together, and
    ``is_ours`` says that the paper has no such row. ``command`` has run it, if it is another one
    than that of the table.
    """

    label: str
    method: str
    figures: tuple[Figure, ...]
    done: int
    planned: int
    epochs: int | None
    of_epochs: int | None
    keys: tuple[str, ...]
    cut: Cut | None = None
    hours: float = 0.0
    is_ours: bool = False
    command: str = ""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the line that :meth:`Measured.to_dict` wrote down."""
        figures = tuple(Figure(**figure) for figure in values["figures"])
        known = values.get("cut")
        cut = None if known is None else Cut(**known)
        return cls(**{**values, "figures": figures, "keys": tuple(values["keys"]), "cut": cut})

    @property
    def is_cut(self) -> bool:
        """Whether its runs have fewer epochs than the paper's protocol asks for."""
        return None not in (self.epochs, self.of_epochs) and self.epochs != self.of_epochs

    @property
    def lacks(self) -> list[str]:
        """What was cut short or is not finished, in words."""
        words = [f"{self.epochs} of {self.of_epochs} epochs"] if self.is_cut else []
        words += [f"{self.done} of {self.planned} runs"] if self.done < self.planned else []
        return words

    @property
    def words(self) -> str:
        """Its name, and what was cut short or is not finished."""
        return ", ".join([self.label, *self.lacks])


@dataclass(frozen=True)
class Tuned:
    """A data set in the tuned protocol: every method against plain training.

    For every method it has the runs that its splits have chosen, and where it was tuned the
    settings with the best validation errors.
    """

    comparison: Comparison
    keys: Mapping[str, Sequence[str]]
    best: Mapping[str, Settings]
    search: str

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`Measured.to_dict` wrote down."""
        best = {name: Settings.from_dict(own) for name, own in values["best"].items()}
        comparison = Comparison.from_dict(values["comparison"])
        return cls(comparison, values["keys"], best, values["search"])

    @property
    def verdict(self) -> str:
        """What the comparison means, in words."""
        return make_verdict(self.comparison).text


@dataclass(frozen=True)
class Measured:
    """An experiment on a data set, measured: rows of the paper's protocol, and the tuned one.

    It has what must be known of the data, what was cut short, and what is done and left, in words.
    """

    experiment: str
    data: str
    note: str
    size: str
    command: str
    paper: tuple[Line, ...]
    tuned: Tuned | None = None
    left: str = ""

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`to_dict` wrote down."""
        paper = tuple(Line.from_dict(line) for line in values["paper"])
        tuned = None if values["tuned"] is None else Tuned.from_dict(values["tuned"])
        return cls(**{**values, "paper": paper, "tuned": tuned})

    @property
    def keys(self) -> list[str]:
        """The keys of all runs that it is made from."""
        chosen = () if self.tuned is None else self.tuned.keys.values()
        return [key for keys in (*(line.keys for line in self.paper), *chosen) for key in keys]

    def tables(self) -> dict[str, TextTable]:
        """Return the tables by the name of the protocol: the paper's, then the tuned one."""
        title = f"{self.experiment}, {self.data}"
        tables = {"paper protocol": self._paper_table(title)} if self.experiment != TUNED else {}
        if self.tuned is not None:
            notes = [self.tuned.search, self.tuned.verdict]
            notes += [f"Made by: {self.command}"] if self.experiment == TUNED else []
            comparison = self.tuned.comparison
            tables["tuned protocol"] = leaderboard(comparison, f"{title}, tuned", notes)
        return tables

    def _paper_table(self, title: str) -> TextTable:
        # Those with published figures that something compares with have further columns.
        columns: dict[str, bool] = {}
        for line in self.paper:
            for own in line.figures:
                compares = own.published is not None and not line.is_cut
                columns[own.title] = columns.get(own.title, False) or compares
        header, has_cuts = ["method"], any(line.cut for line in self.paper)
        for name, compares in columns.items():
            header += [name, "published", "apart"] if compares else [name]
        header += ["batches changed"] if has_cuts else []
        rows = []
        for line in self.paper:
            known = {own.title: own for own in line.figures}
            cells = [line.words]
            for name, compares in columns.items():
                shown = _cells(known.get(name), is_cut=line.is_cut)
                cells += shown if compares else shown[:1]
            cells += [line.cut.words if line.cut else ""] if has_cuts else []
            rows.append(cells)
        apart = "apart: difference of the means in combined standard errors"
        notes = [apart] if any(columns.values()) else []
        notes += [CHANGED] if has_cuts else []
        notes += [CUT] if any(line.is_cut for line in self.paper) else []
        notes += [f"Data: {self.note}."] if self.note else []
        notes += [self.size] if self.size else []
        others = {line.command: None for line in self.paper if line.command}
        for command in others:
            labels = [line.label for line in self.paper if line.command == command]
            notes.append(f"By `{command}`: {', '.join(labels)}.")
        return TextTable(title, header, rows, [*notes, f"Made by: {self.command}"])

    def on_top_of(self, before: "Measured") -> "Measured":
        """Return this with what an earlier table has of it and this has not: the rows of others.

        A row of which nothing is finished here stays as it was, with the command that ran it; so
        does the tuned part.
        """
        mine = {line.label: line for line in self.paper if line.done}
        kept = [
            mine.pop(line.label)
            if line.label in mine
            else replace(line, command=line.command or before.command)
            for line in before.paper
        ]
        size = before.size if any(line.command for line in kept) else self.size
        tuned = self.tuned or before.tuned
        return replace(self, paper=(*kept, *mine.values()), tuned=tuned, size=size)


def measure(
    experiment: Experiment,
    data: PaperData,
    rows: Sequence[Row],
    records: Records,
    *,
    size: Size,
    command: str,
    left: str = "",
) -> Measured:
    """Read off the store what the rows of an experiment have shown on one data set."""
    paper = tuple(_line(row, records) for row in rows if row.protocol == "paper")
    tuned = _tune(data, [row for row in rows if row.protocol == "tuned"], records)
    said = _say_size(size, {row.protocol for row in rows} or set(size.protocols))
    return Measured(experiment.name, data.name, data.note, said, command, paper, tuned, left)


def choose_runs(row: Row, records: Records) -> list[RunRecord]:
    """Return the record of every split that counts: the one with the best validation error."""
    of_split: dict[int, list[RunRecord]] = {}
    for run in row.runs:
        if run.key in records:
            of_split.setdefault(run.split, []).append(records[run.key])
    trials = {run.trial for run in row.runs}
    # A split that has not tried all settings yet would be judged by fewer than the others.
    whole = [tried for tried in of_split.values() if len(tried) == len(trials)]
    return [choose(tried, metric_of(row.data)) for tried in whole]


def _line(row: Row, records: Records) -> Line:
    chosen = choose_runs(row, records)
    figures = [_figure(row, chosen, metric, domain) for metric, domain in _wanted(row.data)]
    settings = row.runs[0].settings
    line = Line(
        row.label,
        row.method,
        tuple(figure for figure in figures if figure is not None),
        done=sum(run.key in records for run in row.runs),
        planned=len(row.runs),
        epochs=None if settings is None else settings.epochs,
        of_epochs=None if settings is None else row.epochs,
        keys=tuple(record.run.key for record in chosen),
        cut=read_cut(chosen),
        hours=sum(records[run.key].seconds for run in row.runs if run.key in records) / 3600,
        is_ours=row.is_ours,
    )
    if not line.is_cut:
        return line
    return replace(line, figures=tuple(replace(own, apart=None) for own in line.figures))


def _wanted(data: str) -> list[tuple[str, str]]:
    if data in ("crimes", "dti", "povertymap"):
        return [(metric_of(data), "average"), (metric_of(data), "worst")]
    if data == "rcf-mnist":
        return [("rmse", "average"), ("rmse", UNSHIFTED)]
    return [("rmse", "average"), ("mape", "average")]


def _figure(row: Row, chosen: Sequence[RunRecord], metric: str, domain: str) -> Figure | None:
    found = [_value(record, metric, domain) for record in chosen]
    values = [value for value in found if value is not None]
    if not values:
        return None
    sd = stdev(values) if len(values) > 1 else None
    figure = Figure(metric, domain, fmean(values), sd, len(values))
    is_ours = domain == UNSHIFTED or row.is_ours
    if is_ours or row.method not in {cell.method for cell in published.cells()}:
        return figure
    cell = published.cell(row.data, row.method, metric, domain, **row.options)  # type: ignore[arg-type]
    if cell is None:
        return figure
    return replace(
        figure,
        published=cell.printed,
        published_mean=cell.mean,
        table=cell.table,
        source=cell.source,
        apart=_apart(figure, cell),
    )


def _value(record: RunRecord, metric: str, domain: str) -> float | None:
    if domain != "worst":
        return record.score("test" if domain == "average" else f"test-{domain}", metric)
    scores = record.scores.get("test")
    if scores is None or all(own.value(metric) is None for own in scores.groups.values()):
        return None
    return scores.worst(metric)[1]


def _apart(figure: Figure, cell: published.Cell) -> float | None:
    """Return how many combined standard errors two means are apart; the paper's are of three."""
    if figure.sd is None or cell.sd is None:
        return None
    rounding = cell.unit**2 / 12  # the paper's figure may be anywhere within its last digit
    error = math.sqrt(figure.sd**2 / figure.n + cell.sd**2 / 3 + rounding)
    return (figure.mean - cell.mean) / error if error else None


def _cells(figure: Figure | None, *, is_cut: bool) -> list[str]:
    """Return the cells of a figure: itself, and what is published of it if they compare."""
    cells = ["", "", ""]
    if figure is not None:
        spread = "" if figure.sd is None else f" ± {formatting.short(figure.sd, 2)}"
        cells[0] = f"{formatting.short(figure.mean)}{spread}"
    if figure is not None and not is_cut:
        if figure.published is not None and figure.source is not None:
            cells[1] = figure.published + _MARKS[figure.source]
        cells[2] = "" if figure.apart is None else f"{figure.apart:+.1f}"
    return cells


def _tune(data: PaperData, rows: Sequence[Row], records: Records) -> Tuned | None:
    """Compare what is finished; None if no setting was tried with every method."""
    done = [records[run.key] for row in rows for run in row.runs if run.key in records]
    tuned = [row for row in rows if not row.runs[0].is_baseline]
    if not done:
        return None
    first = tuned[0].runs
    train, validation, test = done[0].sizes
    config = StudyConfig(
        problem=first[0].problem,
        methods=tuple(row.method for row in tuned),
        baselines=tuple(row.method for row in rows if row.runs[0].is_baseline),
        trials=len({run.trial for run in first}),
        splits=len({run.split for run in first}),
        metric=metric_of(data.name),
        test_share=test / (train + validation),
        independent=data.problem("tuned").independent,
    )
    try:
        study = Study.read(config, done)
    except StoreError:  # no setting yet that all have tried
        return None
    epochs = max(run.settings.epochs for run in first if run.settings is not None)
    repeats = "split" if data.is_table else "seed"
    search = (
        f"{formatting.count(study.trials, 'setting')} of each method on "
        f"{formatting.count(study.comparison.n_splits, repeats)}, at most {epochs} epochs."
    )
    keys = {name: [own.run.key for own in chosen] for name, chosen in study.chosen.items()}
    nets = {name: run.settings for name, run in study.best.items() if name in methods.names()}
    best = {name: settings for name, settings in nets.items() if settings is not None}
    return Tuned(study.comparison, keys, best, search)


def _say_size(size: Size, protocols: Set[str]) -> str:
    if size.is_full:
        return ""
    share = formatting.percent(size.trials)
    words = {
        "paper": f"at most {size.epochs} epochs in the paper's protocol",
        "tuned": f"{share} of the settings that the tuned one tries",
    }
    said = [text for protocol, text in words.items() if protocol in protocols]
    return f"Cut short: {', '.join(said)}."

"""What the runs of a table have shown, beside what the paper prints."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from regaug import methods
from regaug.exceptions import StoreError
from regaug.metrics import METRICS
from regaug.reproduction import published
from regaug.reproduction.recipes import metric_of, paper_settings
from regaug.reproduction.sources import Source
from regaug.reproduction.tables import Experiment, Row, Size
from regaug.runs.store import StoredRun
from regaug.studies.study import Study

Results = Mapping[str, StoredRun]


@dataclass(frozen=True)
class Figure:
    """A number that was measured several times, beside the published one.

    Attributes:
        metric: What it measures.
        domain: ``"average"``, ``"worst"`` or ``"unshifted"``.
        mean: Mean over the seeds or splits.
        sd: Standard deviation over them; None for one.
        n: How many there are.
        published: The paper's figure as it is printed; None if it has none.
        published_mean: Its mean.
        table: Number of the paper's table.
        source: ``"own"``, ``"re-run"`` or ``"quoted"``.
        apart: Difference of the two means in combined standard errors; None if it is unknown.
    """

    metric: str
    domain: str
    mean: float
    sd: float | None
    n: int
    published: str | None = None
    published_mean: float | None = None
    table: int | None = None
    source: str | None = None
    apart: float | None = None


@dataclass(frozen=True)
class Line:
    """A row of a table with what was measured.

    Attributes:
        label: Its name.
        method: The method, or the baseline.
        figures: What was measured.
        done: Runs that are finished, of ``planned``.
        planned: Runs of the row.
        epochs: Epochs of its runs at most; None for a baseline.
        of_epochs: Epochs that the paper's protocol asks for.
        keys: The runs that the figures are of.
    """

    label: str
    method: str
    figures: tuple[Figure, ...]
    done: int
    planned: int
    epochs: int | None
    of_epochs: int | None
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """An experiment on a data set, measured.

    Attributes:
        experiment: Name of the experiment.
        data: The data set of the paper.
        note: What must be known of the data, such as that it is a stand-in.
        size: What was cut short, in words; empty if nothing was.
        command: The command that makes it.
        paper: Rows in the paper's protocol.
        tuned: Rows in the tuned protocol: a dict each, with the change against plain training and
            the keys of the runs that its splits have chosen.
        best: The settings with the best validation errors of every method that was tuned.
        search: How much was searched for the tuned rows, in words; empty without them.
        verdict: What the tuned rows mean, in words; empty without them.
    """

    experiment: str
    data: str
    note: str
    size: str
    command: str
    paper: tuple[Line, ...]
    tuned: tuple[Mapping[str, Any], ...] = ()
    best: Mapping[str, Any] = field(default_factory=dict)
    search: str = ""
    verdict: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return asdict(self)


def measure(
    experiment: Experiment,
    source: Source,
    rows: Sequence[Row],
    results: Results,
    *,
    size: Size,
    command: str,
) -> Measured:
    """Read off the store what the rows of an experiment have shown on one data set."""
    paper = [row for row in rows if row.protocol == "paper"]
    tuned = [row for row in rows if row.protocol == "tuned"]
    found = Measured(
        experiment.name,
        source.data,
        source.note,
        _say_size(size),
        command,
        tuple(_line(row, results) for row in paper),
    )
    if not tuned:
        return found
    study = _study(source, tuned, results)
    if study is None:
        return found
    lines = [
        {**row, "keys": [run.key for run in study.chosen[row["name"]]]}
        for row in study.comparison.to_dict()["rows"]
    ]
    best = {
        name: dict(run)["settings"]
        for name, run in study.settings.items()
        if name in methods.names()
    }
    epochs = max(run.settings.epochs for run in tuned[0].runs if run.settings is not None)
    repeats = "splits" if source.net is None else "seeds"
    search = (
        f"{study.trials} settings of each method on {study.comparison.n_splits} {repeats}, "
        f"at most {epochs} epochs."
    )
    return replace(found, tuned=tuple(lines), best=best, search=search, verdict=study.verdict.text)


def _line(row: Row, results: Results) -> Line:
    done = [results[run.key] for run in row.runs if run.key in results]
    chosen = choose(row, results)
    figures = tuple(
        figure
        for metric, domain in _wanted(row.data)
        if (figure := _figure(row, chosen, metric, domain)) is not None
    )
    settings = row.runs[0].settings
    epochs = None if settings is None else settings.epochs
    model = row.options.get("as", row.method)
    of_epochs = None if epochs is None else paper_settings(row.data, model, seed=0).epochs
    keys = tuple(run.key for run in chosen)
    return Line(row.label, row.method, figures, len(done), len(row.runs), epochs, of_epochs, keys)


def choose(row: Row, results: Results) -> list[StoredRun]:
    """Return the run of every split that counts: the one with the best validation error."""
    metric = metric_of(row.data)
    of_split: dict[int, list[StoredRun]] = {}
    for run in row.runs:
        if run.key in results:
            of_split.setdefault(run.split, []).append(results[run.key])

    def error(run: StoredRun) -> float:
        value = run.result["scores"]["validation"][metric]
        return math.inf if value is None else METRICS[metric].sign * float(value)

    trials = {run.trial for run in row.runs}
    # A split that has not tried all settings yet would be judged by fewer than the others.
    whole = [runs for runs in of_split.values() if len(runs) == len(trials)]
    return [min(runs, key=error) for runs in whole]


def _wanted(data: str) -> list[tuple[str, str]]:
    if data in ("crimes", "dti", "povertymap"):
        return [(metric_of(data), "average"), (metric_of(data), "worst")]
    if data == "rcf-mnist":
        return [("rmse", "average"), ("rmse", "unshifted")]
    return [("rmse", "average"), ("mape", "average")]


def _figure(row: Row, runs: Sequence[StoredRun], metric: str, domain: str) -> Figure | None:
    values = [value for run in runs if (value := _value(run, metric, domain)) is not None]
    if not values:
        return None
    sd = stdev(values) if len(values) > 1 else None
    figure = Figure(metric, domain, fmean(values), sd, len(values))
    is_ours = domain == "unshifted" or "as" in row.options
    if is_ours or row.method not in {cell.method for cell in published.cells()}:
        return figure
    cell = published.cell(row.data, row.method, metric, domain, **row.options)  # type: ignore[arg-type]
    if cell is None:
        return figure
    return Figure(
        metric,
        domain,
        figure.mean,
        sd,
        len(values),
        cell.printed,
        cell.mean,
        cell.table,
        cell.source,
        _apart(figure, cell),
    )


def _value(run: StoredRun, metric: str, domain: str) -> float | None:
    scores = run.result["scores"].get("test-unshifted" if domain == "unshifted" else "test", {})
    if domain == "worst":
        scores = scores.get("worst", {})
    value = scores.get(metric)
    return None if value is None else float(value)


def _apart(figure: Figure, cell: published.Cell) -> float | None:
    """Return how many combined standard errors two means are apart; the paper's are of three."""
    if figure.sd is None or cell.sd is None:
        return None
    rounding = cell.unit**2 / 12  # the paper's figure may be anywhere within its last digit
    error = math.sqrt(figure.sd**2 / figure.n + cell.sd**2 / 3 + rounding)
    return (figure.mean - cell.mean) / error if error else None


def _study(source: Source, rows: Sequence[Row], results: Results) -> Study | None:
    """Return the study of what is finished; None if no setting was tried with every method."""
    done = [results[run.key] for row in rows for run in row.runs if run.key in results]
    planned = [row for row in rows if row.runs[0].settings is not None]
    if not done:
        return None
    first = planned[0].runs
    train, validation, test = done[0].result["sizes"]
    configuration = {
        "methods": [row.method for row in planned],
        "baselines": [row.method for row in rows if row.runs[0].settings is None],
        "reference": "erm",
        "trials": len({run.trial for run in first}),
        "splits": len({run.split for run in first}),
        "metric": metric_of(source.data),
        "test_share": test / (train + validation),
        # Of data with one split only the seeds differ, and share no training that could be undone.
        "independent": source.net is not None,
    }
    try:
        return Study.read(configuration, done)
    except StoreError:  # no setting yet that all have tried
        return None


def _say_size(size: Size) -> str:
    if size.is_full:
        return ""
    words = {
        "paper": f"at most {size.epochs} epochs in the paper's protocol",
        "tuned": f"{size.trials:.0%} of the settings that the tuned one tries",
    }
    return f"Cut short to fit the budget: {', '.join(words[name] for name in size.protocols)}."

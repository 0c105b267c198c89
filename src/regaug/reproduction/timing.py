"""What an epoch costs: plain training, and FOMA on inputs, at a layer, and at both."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from statistics import median
from typing import Any, Final, Self

from regaug._files import JSON
from regaug.formatting import TextTable
from regaug.methods import BOTH, INPUT, LAYER
from regaug.reproduction import published
from regaug.reproduction.problems import PaperData
from regaug.reproduction.recipes import paper_settings
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.training import Settings

TIME: Final = "time"
DATASETS = ("airfoil", "electricity", "dti")
# The paper does not say which batches it timed: those of its table 8.
BATCH = {"airfoil": 32, "electricity": 128, "dti": 64}
Variant = tuple[str, str | None]
Rounds = Mapping[int | None, float]  # seconds of an epoch by round
PLAIN: Variant = ("erm", None)
VARIANTS = (PLAIN, *product(("foma", "foma-rho"), (INPUT, LAYER, BOTH)))
ROUNDS = 5


@dataclass(frozen=True)
class Time:
    """What an epoch of a variant costs: medians over the rounds, beside the paper's if it has any.

    A ratio is to the plain training of the same round; seconds differ from machine to machine.
    """

    method: str
    place: str | None
    seconds: float
    ratio: float
    published_seconds: float | None
    published_ratio: float | None


@dataclass(frozen=True)
class Times:
    """What an epoch of every variant costs on a data set, timed in so many rounds."""

    data: str
    note: str
    command: str
    rounds: int
    rows: tuple[Time, ...]
    keys: tuple[str, ...]
    experiment: str = TIME

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`to_dict` wrote down."""
        rows = tuple(Time(**row) for row in values["rows"])
        return cls(**{**values, "rows": rows, "keys": tuple(values["keys"])})

    @property
    def left(self) -> str:
        """What is done and left, in words."""
        if self.rounds >= ROUNDS:
            return f"{self.data}: all {ROUNDS} rounds are done."
        done = f"{self.data}: {self.rounds} of {ROUNDS} rounds are done."
        return f"{done} Run the same command again to go on."

    def tables(self) -> dict[str, TextTable]:
        """Return the table, by what its lines are."""
        rows = [
            (
                row.method + ("" if row.place is None else f", {row.place}"),
                f"{row.seconds:.3g}",
                f"{row.ratio:.2f}",
                "" if row.published_ratio is None else f"{row.published_ratio:.2f}",
            )
            for row in self.rows
        ]
        notes = [
            *([f"Data: {self.note}."] if self.note else []),
            f"Medians of {self.rounds} rounds; the paper's seconds are those of another machine.",
            f"Made by: {self.command}",
        ]
        header = ("variant", "seconds per epoch", "times plain", "times plain, published")
        return {"variant": TextTable(f"{TIME}, {self.data}", header, rows, notes)}


def plan_rounds(data: PaperData) -> list[list[Run]]:
    """Return the runs that time an epoch of every variant, round by round.

    In turns, because what else a machine does changes from minute to minute; so only the ratios
    are compared, within a round.
    """
    epochs, name = 5 if data.is_table else 1, data.problem_name(TIME)
    settings = [(method, _settings(data.name, method, place, epochs)) for method, place in VARIANTS]
    return [
        [Run(name, method, 0, 0, own, number) for method, own in settings]
        for number in range(ROUNDS)
    ]


def measure_times(data: PaperData, records: Iterable[RunRecord]) -> Times | None:
    """Return the medians beside the paper's; None without a single round of plain training."""
    own = [record for record in records if record.run.problem == data.problem_name(TIME)]
    seconds: dict[Variant, dict[int | None, float]] = {}
    for record in own:
        times = seconds.setdefault(_variant(record.run), {})
        times[record.run.trial] = record.seconds / record.epochs
    plain = seconds.get(PLAIN, {})
    rows = [
        _time(data.name, variant, times, plain)
        for variant, times in seconds.items()
        if times.keys() & plain.keys()
    ]
    if not rows:
        return None
    command = f"regaug reproduce {TIME} --datasets {data.name}"
    keys = tuple(record.run.key for record in own)
    return Times(data.name, data.note, command, len(plain), tuple(rows), keys)


def _settings(data: str, method: str, place: str | None, epochs: int) -> Settings:
    changes = {} if place is None else {"place": place}
    own = paper_settings(data, method, seed=0, **changes)
    return replace(own, epochs=epochs, batch_size=BATCH[data], learning_rate=1e-4)


def _variant(run: Run) -> Variant:
    return run.method, None if run.settings is None else run.settings.method_settings.get("place")


def _time(data: str, variant: Variant, times: Rounds, plain: Rounds) -> Time:
    method, place = variant
    options = {} if place is None else {"place": place}
    cell = published.cell(data, method, "seconds", **options)  # type: ignore[arg-type]
    plain_cell = published.cell(data, PLAIN[0], "seconds")
    return Time(
        method,
        place,
        seconds=median(times.values()),
        ratio=median(times[number] / plain[number] for number in times if number in plain),
        published_seconds=None if cell is None else cell.mean,
        published_ratio=None if cell is None or not plain_cell else cell.mean / plain_cell.mean,
    )

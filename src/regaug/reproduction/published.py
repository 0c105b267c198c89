"""What the FOMA paper prints: its eleven tables and its settings.

The figures are those of ``published.toml``, by the paper's own table numbers. Data sets, methods
and metrics have the names they have everywhere in this library. Main text (tables 3 and 4) and
appendix (tables 10 and 11) print different means in some cells; both are kept.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from regaug._registry import lookup
from regaug.formatting import TextTable
from regaug.training import Settings

Domain = Literal["average", "worst"]

# The appendix first, because its standard deviations belong to its means. The authors compare
# themselves with what they re-ran, not with what they quote.
_TABLES = (10, 11, 3, 4, 6, 7, 1, 2, 5)
_SOURCES = ("own", "re-run", "quoted")
_SETTINGS = {"foma": 8, "foma-rho": 9}
_PLACES = {"input": "input", "latent": "layer", "both": "both"}
_SCALES = {"small": "trailing", "large": "leading"}


@dataclass(frozen=True)
class Row:
    """A row of a table with its cells as they are printed, ``"-"`` if empty.

    Tables 8 and 9 have neither method nor source (see :class:`Cell`). Options such as ``{"place":
    "input"}`` set it apart from other rows of the method.
    """

    label: str
    values: tuple[str, ...]
    method: str
    source: str
    options: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class Table:
    """A table of the paper, with what a reader should know, contradictions with the text among it.

    Columns are ``"data metric"`` or ``"data metric domain"``; in tables 8 and 9 ``"data"``.
    """

    number: int
    title: str
    where: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Cell:
    """A figure of the paper.

    Attributes:
        data: The data set.
        method: The method.
        metric: ``"rmse"``, ``"mape"`` (per cent), ``"pearson"`` or ``"seconds"`` (of an epoch).
        domain: ``"average"`` or ``"worst"``; in-distribution data has the average only.
        mean: The figure, corrected if it is a misprint.
        sd: Its standard deviation; None if the table has none.
        unit: One step of the last digit of the mean.
        source: ``"own"`` of the authors, ``"re-run"`` by them or ``"quoted"`` from another paper.
        table: Number of the table.
        printed: What stands in the paper.
        note: A remark, empty for most.
        options: As in :class:`Row`.
    """

    data: str
    method: str
    metric: str
    domain: str
    mean: float
    sd: float | None
    unit: float
    source: str
    table: int
    printed: str
    note: str
    options: Mapping[str, str] = field(hash=False)


def table(number: int) -> Table:
    """Return a table by its number in the paper.

    Example:
        >>> table(2).rows[0].values
        ('0.058', '1.406', '33.374')
    """
    entry = lookup("table of the paper", str(number), _entries())
    rows = tuple(_row(**row) for row in entry["rows"])
    keys = ("number", "title", "where", "note")
    return Table(**{key: entry[key] for key in keys}, columns=tuple(entry["columns"]), rows=rows)


def cells(**choice: object) -> tuple[Cell, ...]:
    """Return the figures of the paper whose attributes have these values, empty cells left out.

    Example:
        >>> [cell.mean for cell in cells(table=4, data="rcf-mnist", source="re-run")]
        [0.153, 0.171]
    """
    for name in choice:
        lookup("attribute of a cell", name, Cell.__dataclass_fields__)
    wanted = choice.items()
    return tuple(c for c in _cells() if all(getattr(c, name) == value for name, value in wanted))


def cell(
    data: str,
    method: str,
    metric: str,
    domain: Domain = "average",
    *,
    table: int | None = None,
    source: Literal["own", "re-run", "quoted"] | None = None,
    **options: str,
) -> Cell | None:
    """Return a figure of the paper, or None if it has no such figure.

    Of several, that of the appendix goes before that of the main text, and a figure that the
    authors measured before one that they quote.

    Args:
        data: A data set of the paper.
        method: A method of the paper.
        metric: ``"rmse"``, ``"mape"``, ``"pearson"`` or ``"seconds"``.
        domain: ``"average"`` or ``"worst"``.
        table: Look in this table only.
        source: Take only figures of this source.
        **options: What sets apart the rows of tables 1 (``sampler``), 2 (``place``) and 5
            (``place``, ``weight`` and ``scale``).

    Example:
        >>> cell("airfoil", "foma", "rmse")
        Cell(data='airfoil', method='foma', metric='rmse', domain='average', mean=1.646, sd=0.103,
        unit=0.001, source='own', table=10, printed='1.646 ± 0.103', note='', options={})
        >>> cell("airfoil", "foma", "rmse", sampler="random").mean
        2.159
    """
    wanted = {"data": data, "method": method, "metric": metric, "domain": domain}
    wanted |= {"source": source} if source else {}
    for name, value in wanted.items():
        known = {getattr(found, name): None for found in _cells()}
        lookup(f"{'data set' if name == 'data' else name} of the paper", value, known)
    known = {name: None for found in _cells() for name in found.options}
    for name in options:
        lookup("option of the paper's rows", name, known)
    if table is not None:
        lookup("table of results", str(table), dict.fromkeys(map(str, _TABLES)))
    found = (one for one in cells(**wanted, options=options) if table in (None, one.table))
    return min(found, key=_preference, default=None)


def settings(data: str, method: str) -> Settings:
    """Return what tables 8 and 9 give.

    The paper touches every batch until the end and builds batches of close samples. It names no
    optimizer; the released scripts use Adam, but for Echo. Whether FOMA estimates the dimension of
    the data or of each batch is not given either, and left to the default. ``place`` is
    ``"input"``, ``"layer"`` or ``"both"``.

    Args:
        data: A data set of the paper.
        method: ``"foma"`` or ``"foma-rho"``; the paper gives no settings of others.

    Example:
        >>> found = settings("airfoil", "foma-rho")
        >>> found.epochs, found.batch_size, found.learning_rate, found.optimizer
        (100, 128, 0.0005, 'adam')
        >>> found.method_settings
        {'sampler': 'nearest', 'p': 1.0, 'anneal': None, 'place': 'input', 'scale': 'leading',
        'alpha': 1.4, 'rho': 0.975}
    """
    printed_in = table(lookup("method with published settings", method, _SETTINGS))
    columns = {name: index for index, name in enumerate(printed_in.columns)}
    column = lookup("data set of the paper", data, columns)
    printed = {row.label: row.values[column] for row in printed_in.rows}
    own: dict[str, object] = {"sampler": "nearest", "p": 1.0, "anneal": None}
    own["place"] = _PLACES[printed["Input/Latent"]]
    own["scale"] = _SCALES[printed["Singular values"]]
    own |= {name: float(printed[name]) for name in ("alpha", "rho") if name in printed}
    return Settings(
        epochs=int(printed["Epochs"]),
        batch_size=int(printed["Batch size"]),
        learning_rate=float(printed["Learning rate"]),
        optimizer="adam",
        method_settings=own,
    )


def settings_tables() -> list[TextTable]:
    """Return the tables of settings, 8 and 9, as they are printed."""
    return [
        TextTable(
            f"table {own.number}: {own.title}",
            ("", *own.columns),
            [(row.label, *row.values) for row in own.rows],
        )
        for own in map(table, _SETTINGS.values())
    ]


@cache
def _entries() -> dict[str, dict[str, Any]]:
    text = files(__package__).joinpath("published.toml").read_text("utf-8")
    return {str(entry["number"]): entry for entry in tomllib.loads(text)["tables"]}


def _row(label: str, values: list[str], method: str = "", source: str = "", **options: str) -> Row:
    return Row(label, tuple(values), method, source, options)


@cache
def _cells() -> tuple[Cell, ...]:
    return tuple(found for number in sorted(_TABLES) for found in _cells_of(table(number)))


def _cells_of(printed_in: Table) -> Iterator[Cell]:
    remarks = _entries()[str(printed_in.number)].get("remarks", ())
    by_cell = {(remark["row"], remark["column"]): remark for remark in remarks}
    for row in printed_in.rows:
        for column, printed in zip(printed_in.columns, row.values, strict=True):
            if printed == "-":
                continue
            remark = by_cell.get((row.label, column), {})
            data, metric, domain = (*column.split(), "average")[:3]
            mean, _, sd = printed.partition(" ± ")
            right = Decimal(remark.get("corrected", "") or mean)
            yield Cell(
                data=data,
                method=row.method,
                metric=metric,
                domain=domain,
                mean=float(right),
                sd=float(sd) if sd else None,
                unit=float(Decimal(1).scaleb(int(right.as_tuple().exponent))),
                source=row.source,
                table=printed_in.number,
                printed=printed,
                note=remark.get("note", ""),
                options=row.options,
            )


def _preference(found: Cell) -> tuple[int, int]:
    return _TABLES.index(found.table), _SOURCES.index(found.source)

"""How the columns of a table are written, found out from all their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regaug.data.tabular.dates import Order
from regaug.data.tabular.findings import Finding, find
from regaug.data.tabular.numerals import Decimal
from regaug.data.tabular.readings import Reading
from regaug.data.tabular.remarks import gathered
from regaug.data.tabular.texts import is_text, texts_of, without_markers

if TYPE_CHECKING:
    import pandas as pd

_TWO_WAYS = r"^(?:[-+]?(?:[1-9]\d{0,2}\.\d{3}|\d{1,3}))?$"
_FEW = 5  # rows


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table with their texts read.

    Attributes:
        frame: The table.
        readings: How those columns were read that are not written plainly.
        notes: What was done, and what can be read otherwise; a sentence each.
    """

    frame: "pd.DataFrame"
    readings: tuple[Reading, ...] = ()
    notes: tuple[str, ...] = ()


def read_columns(
    frame: "pd.DataFrame",
    names: Sequence[str] | None = None,
    *,
    decimal: Decimal | None = None,
    has_markers: bool = False,
) -> Columns:
    """Read the texts of a table's columns as the numbers, dates and flags that they are.

    How a column is written is decided by all its values, and where these leave it open by the other
    columns: a decimal sign that is certain elsewhere, an order of day and month that is.

    Args:
        frame: The table; it is not changed.
        names: The columns to look at, all by default.
        decimal: What the file says about the decimal sign, if the columns say nothing.
        has_markers: Whether texts such as ``NA`` are gaps, as in files.

    Example:
        >>> import pandas as pd
        >>> found = read_columns(pd.DataFrame({"price": ["$45,210", "$1,300", "$7"]}))
        >>> found.frame["price"].tolist(), found.notes
        ([45210, 1300, 7], ("'price' read as numbers ('$45,210' is 45210)",))
    """
    chosen = None if names is None else set(names)
    wanted = [name for name in frame.columns if chosen is None or name in chosen]
    known = {name: find(frame[name]) for name in wanted if is_text(frame[name])}
    shown = _common_decimal(list(known.values()))
    decimal = decimal if shown is None else shown
    order = _common_order(list(known.values()), decimal)
    for name, own in known.items():
        if own.is_ambiguous or (
            own.is_plain and decimal == "," and _has_groups(own.series, is_shown=shown == ",")
        ):
            known[name] = find(own.series, decimal=decimal, order=order, is_again=True)
    new = {name: own.read for name, own in known.items() if own.read is not None}
    if has_markers:
        left = {name: own.series for name, own in known.items() if name not in new}
        new |= {name: without_markers(series) for name, series in left.items()}
    readings = tuple(own.reading for own in known.values() if own.reading is not None)
    notes = [f"{name!r} {note}" for name, own in known.items() for note in own.notes]
    return Columns(frame.assign(**new) if new else frame, readings, tuple(gathered(notes)))


def _common_decimal(columns: Sequence[Finding]) -> Decimal | None:
    """Return the decimal sign that is certain in some columns and wrong in none."""
    certain = {own.decimal for own in columns if own.decimal is not None}
    if "." not in certain and any(own.is_plain and not _has_groups(own.series) for own in columns):
        certain.add(".")
    return certain.pop() if len(certain) == 1 else None


def _common_order(columns: Sequence[Finding], decimal: Decimal | None) -> Order | None:
    """Return the order of day and month that is certain in some columns and wrong in none."""
    certain = {own.order for own in columns if own.order is not None}
    if len(certain) == 1:
        return certain.pop()
    return "dmy" if decimal == "," and not certain else None  # who writes 1,5 writes 31/12


def _has_groups(series: "pd.Series", *, is_shown: bool = True) -> bool:
    """Whether the points in plain numbers may stand between thousands.

    Where no other column shows decimal commas, numbers of up to three digits without a point must
    stand beside: of decimals, some would have one digit or two.
    """
    import pyarrow.compute as pc

    tidy = texts_of(series).tidy
    has_point = pc.match_substring(tidy, ".")
    if not pc.all(pc.match_substring_regex(tidy, _TWO_WAYS)).as_py():
        return False
    is_short = pc.and_(pc.invert(has_point), pc.match_substring_regex(tidy, "^[-+]?[1-9]"))
    return is_shown or bool(pc.sum(has_point).as_py() >= _FEW and pc.any(is_short).as_py())

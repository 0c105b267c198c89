"""Numbers written as text: with thousands separators, decimal commas, currencies and units."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular.texts import Floats, Texts
from regaug.data.tabular.units import PERCENT, Around, around, choose_forms, is_currency

Decimal = Literal[".", ","]

# A number alone, from its first to its last digit: what stands between them is decided later.
_RUN = r"[.,]?\d(?:[\d.,' ]*\d)?[.,]?"
_PLAIN = r"^[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"
_INFINITE = r"^[-+]?(?i:inf(?:inity)?)$"
# With a point (or comma) before the decimals and one sign between groups of three digits. Groups
# of two before the last three are Indian. No group begins with a zero: 0,123 is a decimal.
_WITH = {
    ".": r"^(?:\d+|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?: \d{3})+|[1-9]\d{0,2}(?:'\d{3})+|"
    r"[1-9]\d?(?:,\d{2})+,\d{3})(?:\.\d+)?$|^\.\d+$",
    ",": r"^(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+|[1-9]\d{0,2}(?: \d{3})+|[1-9]\d{0,2}(?:'\d{3})+)"
    r"(?:,\d+)?$|^,\d+$",
}
# Square and cubic units: the digit is no part of the number.
_POWERS = r"(\d\s*)(mm|cm|dm|km|m|ft|in|yd)"
_TELEPHONE = 9  # digits: a column of numbers in groups that all have as many are no amounts
_MOST_FORMS, _MOST_SKELETONS = 50, 500
_FEW = 5  # rows


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Attributes:
        name: The column.
        decimal: What stands before the decimals; the other one of point and comma, a space or an
            apostrophe may stand between groups of three digits.
        forms: What stands around the numbers, for which ``#`` stands: ``$#``, ``#km``. A number
            without any is read too.
        factors: What the numbers of each form are multiplied by.
    """

    kind: ClassVar[str] = "number"
    name: str
    decimal: Decimal = "."
    forms: tuple[str, ...] = ()
    factors: tuple[float, ...] = ()

    def read(self, texts: Texts) -> Floats:
        """Return the number that each text is; NaN where it is none.

        Where a number can only be written with the other decimal sign, and none with this one, the
        column is: a file may have been written anew.
        """
        parsed = parse(texts.tidy)
        decided = parsed.decide(texts.rows, default=self.decimal)
        factors = {"#": 1.0, **dict(zip(self.forms, self.factors, strict=True))}
        return parsed.numbers(decided.decimal, factors, texts.known)


@dataclass(frozen=True)
class Decided:
    """Which of point and comma stands before the decimals of a column.

    Attributes:
        decimal: The sign.
        is_certain: Whether some number can be written in no other way.
        is_ambiguous: Whether some number would be another one with the other sign, and none
            decides.
        other_units: How many rows have a number with a unit that is not the column's.
    """

    decimal: Decimal
    is_certain: bool
    is_ambiguous: bool
    other_units: int = 0


@dataclass(frozen=True, eq=False)
class Parsed:
    """Texts taken apart: what stands around each number, and its digits with their separators.

    Attributes:
        forms: The different things that stand around the numbers.
        form_of: Place of each text's own in that list; -1 for what is no number.
        is_negative: Whether each is below zero.
        bodies: Digits and separators; of what is no number an empty text.
        matches: For both decimal signs, which bodies can be written with them.
        plain: Numbers such as ``1e5``, which are read as they are; NaN for others.
    """

    forms: tuple[str, ...]
    form_of: NDArray[np.int64]
    is_negative: NDArray[np.bool_]
    bodies: Any
    matches: dict[Decimal, NDArray[np.bool_]]
    plain: Floats

    @property
    def is_ambiguous(self) -> NDArray[np.bool_]:
        """Which numbers are another one with the other decimal sign."""
        import pyarrow.compute as pc

        has_sign = np.asarray(pc.match_substring_regex(self.bodies, "[.,]"))
        return np.asarray(self.matches["."] & self.matches[","] & has_sign)

    def decide(self, rows: NDArray[np.int64], *, default: Decimal) -> Decided:
        """Find the decimal sign that most numbers must have, or take the default."""
        point, comma = (self.matches[sign] for sign in (".", ","))
        only_point, only_comma = rows[point & ~comma].sum(), rows[comma & ~point].sum()
        if only_point or only_comma:
            return Decided("." if only_point >= only_comma else ",", True, False)
        is_ambiguous = self.is_ambiguous
        if not is_ambiguous.any():
            return Decided(default, False, False)
        is_grouped = default == "." and self._are_groups(rows, is_ambiguous)
        return Decided(default, is_grouped, not is_grouped)

    def _are_groups(self, rows: NDArray[np.int64], is_ambiguous: NDArray[np.bool_]) -> bool:
        """Whether 1,234 is a thousand: an amount of money, or beside numbers without a comma.

        Of decimals some would have one or two digits, or all would have three, 567,000 too.
        """
        import pyarrow.compute as pc

        has_comma = is_ambiguous & np.asarray(pc.match_substring(self.bodies, ","))
        if not has_comma.any():
            return False
        forms = [self.forms[form] for form in np.unique(self.form_of[has_comma])]
        if all(is_currency(word) for form in forms for word in [form.replace("#", "")]):
            return True
        is_short = np.asarray(pc.match_substring_regex(self.bodies, r"^[1-9]\d{0,2}$"))
        return bool(rows[has_comma].sum() >= _FEW and is_short.any())

    def rows_by_form(self, rows: NDArray[np.int64]) -> dict[str, int]:
        """Return how many rows have each form."""
        is_there = self.form_of >= 0
        found = np.bincount(self.form_of[is_there], rows[is_there], minlength=len(self.forms))
        return {form: int(n) for form, n in zip(self.forms, found, strict=True)}

    def numbers(self, decimal: Decimal, factors: dict[str, float], known: Floats) -> Floats:
        """Return the numbers of some forms; NaN where there is none, and what is known as it is."""
        import pyarrow as pa
        import pyarrow.compute as pc

        factor = np.array([*(factors.get(form, np.nan) for form in self.forms), np.nan])
        scale = np.where(self.is_negative, -1.0, 1.0) * factor[self.form_of]
        usable = self.matches[decimal] & ~np.isnan(scale) & np.isnan(known)
        found = np.where(np.isnan(known), self.plain, known)
        if usable.any():
            bodies = self.bodies if usable.all() else self.bodies.filter(pa.array(usable))
            for sign in ({".", ",", " ", "'"} - {decimal}) & _signs(bodies):
                bodies = pc.replace_substring(bodies, sign, "")
            bodies = pc.replace_substring(bodies, ",", ".") if decimal == "," else bodies
            found[usable] = np.asarray(pc.cast(bodies, pa.float64())) * scale[usable]
        return found


Numbers = tuple[NumberFormat, Decided, Floats]


def find_numbers(name: str, texts: Texts, *, decimal: Decimal | None = None) -> Numbers | None:
    """Find out how the numbers of a column are written; None if it has none.

    Args:
        name: The column.
        texts: Its texts.
        decimal: What other columns have before the decimals, for numbers that can be read in two
            ways; a point if that is not known.

    Returns:
        The format, how sure its decimal sign is, and the number of each text.
    """
    parsed = parse(texts.tidy)
    decided = parsed.decide(texts.rows, default=decimal or ".")
    rows = parsed.rows_by_form(texts.rows * parsed.matches[decided.decimal])
    forms = choose_forms(rows)
    others = sum(n for form, n in rows.items() if form != "#" and form not in forms)
    numbers = parsed.numbers(decided.decimal, {"#": 1.0, **forms}, texts.known)
    if _are_telephones(parsed, numbers):
        return None
    if PERCENT in forms:
        forms = _with_percent(parsed, numbers, forms)
        numbers = parsed.numbers(decided.decimal, {"#": 1.0, **forms}, texts.known)
    if np.isnan(numbers).all():
        return None
    chosen = NumberFormat(name, decided.decimal, tuple(forms), tuple(forms.values()))
    is_ambiguous = _matters(parsed, decided, numbers)
    return chosen, replace(decided, is_ambiguous=is_ambiguous, other_units=others), numbers


def parse(tidy: Any) -> Parsed:
    """Take texts apart."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tidy, skeleton_of, skeletons = _skeletons(tidy)
    count = len(skeleton_of)
    forms: dict[str, int] = {}
    form_of, is_negative = np.full(count, -1), np.zeros(count, dtype=bool)
    places, bodies = list[NDArray[np.int64]](), []
    often = np.argsort(-np.bincount(skeleton_of, minlength=len(skeletons)), kind="stable")
    for number in often[:_MOST_SKELETONS]:
        known = around(skeletons[number])
        if known is None or (known.form not in forms and len(forms) == _MOST_FORMS):
            continue
        own = np.flatnonzero(skeleton_of == number)
        texts = tidy if len(own) == count else tidy.take(pa.array(own))
        body, is_negative[own] = _body(texts, skeletons[number], known)
        form_of[own] = forms.setdefault(known.form, len(forms))
        bodies.append(body)
        places.append(own)
    whole = _in_order(bodies, places, count)
    matches: dict[Decimal, NDArray[np.bool_]] = {
        sign: np.asarray(pc.match_substring_regex(whole, pattern), dtype=bool)  # type: ignore[misc]
        for sign, pattern in _WITH.items()
    }
    plain = _read_plain(tidy, form_of < 0)
    return Parsed(tuple(forms), form_of, is_negative, whole, matches, plain)


def _skeletons(tidy: Any) -> tuple[Any, NDArray[np.int64], list[str]]:
    """Return texts, and each one with ``#`` for its numbers: the place in a list, and the list."""
    import pyarrow.compute as pc

    encoded = pc.replace_substring_regex(tidy, _RUN, "#").dictionary_encode()
    skeletons = encoded.dictionary.to_pylist()
    if any(re.fullmatch(r"[^#]*#\s*[a-z]+#", skeleton) for skeleton in skeletons[:_MOST_FORMS]):
        for digit, power in (("2", "²"), ("3", "³")):
            tidy = pc.replace_substring_regex(tidy, f"{_POWERS}{digit}$", rf"\1\2{power}")
        encoded = pc.replace_substring_regex(tidy, _RUN, "#").dictionary_encode()
        skeletons = encoded.dictionary.to_pylist()
    return tidy, np.asarray(encoded.indices), skeletons


def _body(texts: Any, skeleton: str, known: Around) -> tuple[Any, NDArray[np.bool_]]:
    """Return the digits and separators of texts with one skeleton, and which are below zero."""
    import pyarrow.compute as pc

    start = skeleton.index("#")
    stop = start + 1 - len(skeleton)
    body = pc.utf8_slice_codeunits(texts, start, stop if stop else None)
    is_negative = np.full(len(texts), known.is_negative)
    if known.has_dash:
        is_negative |= ~np.asarray(pc.match_substring_regex(body, "[.,]$"))
        body = pc.replace_substring_regex(body, "([.,])$", r"\10")
    if known.is_short:
        body = pc.utf8_ltrim(body, ".")
    return pc.utf8_rtrim(body, ".,"), is_negative


def _in_order(bodies: Sequence[Any], places: Sequence[NDArray[np.int64]], count: int) -> Any:
    """Return bodies at their places; what has none is an empty text."""
    import pyarrow as pa

    if len(bodies) == 1 and len(bodies[0]) == count:
        return bodies[0]
    source = np.full(count, sum(map(len, places)))
    if places:
        source[np.concatenate(places)] = np.arange(source.max())
    return pa.concat_arrays([*bodies, pa.array([""], pa.large_string())]).take(pa.array(source))


def _read_plain(tidy: Any, is_left: NDArray[np.bool_]) -> Floats:
    """Read those of the texts that are left which have an exponent or are infinite."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = np.full(len(tidy), np.nan)
    left = tidy.filter(pa.array(is_left))
    is_plain = pc.match_substring_regex(left, f"{_PLAIN}|{_INFINITE}")
    if pc.any(is_plain).as_py():
        own = pc.replace_substring_regex(pc.utf8_lower(left.filter(is_plain)), r"^\+", "")
        numbers[np.flatnonzero(is_left)[np.asarray(is_plain)]] = pc.cast(own, pa.float64())
    return numbers


def _signs(bodies: Any) -> set[str]:
    import pyarrow.compute as pc

    return {s for s in ".,' " if pc.any(pc.match_substring(bodies, s)).as_py()}


def _matters(parsed: Parsed, decided: Decided, numbers: Floats) -> bool:
    """Whether a number that was read would be another one with the other sign, and none decides."""
    return decided.is_ambiguous and bool((parsed.is_ambiguous & ~np.isnan(numbers)).any())


def _with_percent(parsed: Parsed, numbers: Floats, forms: dict[str, float]) -> dict[str, float]:
    """Decide what a percent is: itself, or a hundredth beside numbers that are shares."""
    is_plain = (parsed.form_of == parsed.forms.index("#")) if "#" in parsed.forms else None
    if is_plain is None:
        return forms
    plain = numbers[is_plain & ~np.isnan(numbers)]
    are_shares = len(plain) > 0 and bool((np.abs(plain) <= 1.0).all())
    return forms | ({PERCENT: 0.01} if are_shares else {})


def _are_telephones(parsed: Parsed, numbers: Floats) -> bool:
    """Whether all are digits, equally many, with spaces between groups of them and no unit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    usable = pa.array(~np.isnan(numbers) & (parsed.form_of >= 0))
    bodies = parsed.bodies.filter(usable)
    is_alone = all(
        parsed.forms[form] == "#" for form in np.unique(parsed.form_of[np.asarray(usable)])
    )
    if not is_alone or not pc.all(pc.match_substring_regex(bodies, r"^\d+( \d+)+$")).as_py():
        return False
    digits = pc.utf8_length(pc.replace_substring(bodies, " ", ""))
    return bool(pc.min(digits).as_py() == pc.max(digits).as_py() >= _TELEPHONE)

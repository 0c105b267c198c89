"""What stands around a number: signs, currencies, units, thousands and millions."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_CODES = frozenset(
    (
        *("USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "SEK", "NOK", "DKK", "ISK"),
        *("PLN", "CZK", "HUF", "RON", "BGN", "RSD", "RUB", "UAH", "TRY", "INR", "PKR", "BDT"),
        *("LKR", "CNY", "RMB", "HKD", "SGD", "TWD", "KRW", "THB", "MYR", "IDR", "PHP", "VND"),
        *("AED", "SAR", "QAR", "KWD", "ILS", "EGP", "ZAR", "NGN", "KES", "GHS", "MAD", "TND"),
        *("BRL", "MXN", "ARS", "CLP", "COP", "PEN", "UYU"),
    )
)
_SHORT = frozenset(["kr", "rs", "zł", "kč", "ft", "fr", "sfr", "rm", "rp", "tl", "lei"])
_LONGEST = 16  # letters of a unit: "per square metre" is one, a sentence is none
_IN_UNITS = frozenset(" /%‰°µ²³·*^-.'\"\N{PRIME}\N{DOUBLE PRIME}")
_FIRST_OF_UNITS = frozenset("%‰°/'\"\N{PRIME}\N{DOUBLE PRIME}")
_ORDINAL = frozenset(("st", "nd", "rd", "th"))
PERCENT = "#%"
# Always, and those that are units too: millions beside thousands, but meters by themselves.
_LARGE = {"k": 1e3, "K": 1e3, "M": 1e6, "mn": 1e6, "mio": 1e6, "million": 1e6, "B": 1e9}
_LARGE |= {"bn": 1e9, "mrd": 1e9, "billion": 1e9, "thousand": 1e3}
_PERHAPS_LARGE = {"m": 1e6, "b": 1e9}


@dataclass(frozen=True)
class Around:
    """What stands around the number in a text such as ``-$5`` or ``(12 km)``.

    Attributes:
        form: The unit before or after ``#``, which stands for the number: ``$#``, ``#km``.
        is_negative: Whether a minus or parentheses say so.
        has_dash: Whether it ends with a dash: a minus, but in ``45,-`` a way to write no cents.
        is_short: Whether letters stand right before: in ``Rs.500`` the point belongs to them.
    """

    form: str
    is_negative: bool = False
    has_dash: bool = False
    is_short: bool = False


@lru_cache(maxsize=10_000)
def around(skeleton: str) -> Around | None:
    """Read what stands around a number, for which ``#`` stands; None if that is no number alone.

    Example:
        >>> around("-$#"), around("# km").form, around("#-#"), around("No. #")
        (Around(form='$#', is_negative=True, has_dash=False, is_short=False), '#km', None, None)
    """
    before, found, after = skeleton.partition("#")
    if not found or "#" in after or (before.count("("), after.count(")")) not in ((0, 0), (1, 1)):
        return None
    in_parentheses = "(" in before
    before, after = before.replace("(", " ").strip(), after.replace(")", " ").strip()
    has_dash = after.endswith("-")
    after = after.removesuffix("-").strip()
    sign = next((s for s in "-+" if before.startswith(s) or before.endswith(s)), "")
    before = before.removeprefix(sign).strip() if before.startswith(sign) else before[:-1].strip()
    if in_parentheses + (sign != "") + has_dash > 1:
        return None
    if (before and not is_currency(before)) or (after and not _is_unit(after)):
        return None
    form = f"{_key(before)}#{_key(after)}"
    return Around(form, in_parentheses or sign == "-", has_dash, before[-1:].isalpha())


def is_currency(text: str) -> bool:
    """Whether a text is the sign, the code or the short name of a currency.

    Example:
        >>> [is_currency(text) for text in ("$", "US$", "EUR", "kr.", "No.")]
        [True, True, True, True, False]
    """
    plain = text.strip(" .")
    others = [letter for letter in plain if unicodedata.category(letter) != "Sc"]
    if len(others) < len(plain):
        return len(others) <= 3 and all(letter.isalpha() for letter in others)
    return plain in _CODES or plain.lower() in _SHORT


def choose_forms(rows: Mapping[str, int]) -> dict[str, float]:
    """Return the forms that one column can have, each with what its numbers are multiplied by.

    One unit, the most frequent one; and numbers without any, which are taken to have it. Thousands
    and millions go together. ``rows`` says how many rows have each form.

    Example:
        >>> choose_forms({"#": 3, "#km": 5, "#mi": 2})
        {'#km': 1.0}
        >>> choose_forms({"€#": 1, "€#K": 5, "€#M": 5})
        {'€#': 1.0, '€#K': 1000.0, '€#M': 1000000.0}
    """
    units = {form: n for form, n in rows.items() if form != "#"}
    if not units:
        return {}
    main = max(units, key=lambda form: units[form])
    before = main.partition("#")[0]
    own = {form.partition("#")[2]: form for form in rows if form.partition("#")[0] == before}
    large = {after: form for after, form in own.items() if after in _LARGE}
    perhaps = {after: form for after, form in own.items() if after in _PERHAPS_LARGE}
    is_large = main in (*large.values(), *perhaps.values(), f"{before}#")
    has_others = bool(large) and len(large) + len(perhaps) + ("" in own) > 1
    if is_large and (has_others or (before and (large or perhaps))):
        factors = {"": 1.0, **_LARGE, **_PERHAPS_LARGE}
        return {form: factors[after] for after, form in own.items() if after in factors}
    return {main: 1.0}


def _is_unit(text: str) -> bool:
    if is_currency(text):
        return True
    is_start = text[0].isalpha() or text[0] in _FIRST_OF_UNITS
    return (
        is_start
        and len(text) <= _LONGEST
        and all(letter.isalpha() or letter in _IN_UNITS or is_currency(letter) for letter in text)
    )


def _key(unit: str) -> str:
    """Return one text for the ways to write a unit: ``Year``, ``years`` and ``years.``."""
    plain = re.sub(r"\s+", " ", unit.rstrip(". "))
    if plain in _ORDINAL:
        return "th"
    if len(plain) < 3:  # mW is no MW
        return plain
    plain = plain.lower()
    return plain[:-1] if plain[-1] == "s" and plain[-2] != "s" and plain.isalpha() else plain

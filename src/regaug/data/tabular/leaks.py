"""Inputs that give the target away: copies of it, and columns whose sum or product it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regaug.data.tabular.texts import Floats

SURE = 0.999  # share of the target's variance that one column may explain
EXACT = 1e-6  # share that columns whose sum or product is the target leave over
_EVEN = 1e-9  # what a column that counts up, as years do, must leave over to be a copy
_MOST_ROWS = 20_000
_FEWEST_ROWS = 20
_FEWEST_VALUES = 10  # of a column that is to be a copy
_MOST_COLUMNS = 60  # among which sums are looked for; of more, the nearest to the target
_MOST_TERMS, _MOST_FACTORS = 15, 3
_ROWS_PER_TERM = 5
_MOST_SAID = 5  # leaks that have a sentence each
_SAME = 1e-3  # how far apart coefficients of one size may be, relatively


@dataclass(frozen=True)
class Leak:
    """Inputs that give a target away.

    Attributes:
        columns: Their names.
        target: The target.
        what: What they are to it, as the end of a sentence.
    """

    columns: tuple[str, ...]
    target: str
    what: str

    def __str__(self) -> str:
        dropped = " or ".join(f"--drop {_word(name)}" for name in self.columns[:3])
        it = "it is" if len(self.columns) == 1 else "they are"
        return (
            f"Likely leak: {self.what}. If {it} not known before the target is, leave "
            f"{'it' if len(self.columns) == 1 else 'some'} out: {dropped}."
        )


def find_leaks(
    numbers: Mapping[str, Floats], levels: Mapping[str, Floats], targets: Mapping[str, Floats]
) -> tuple[Leak, ...]:
    """Look for inputs that give a target away.

    One column alone: it explains more than 99.9 % of the target's variance, or has the same order,
    or each of its values has one target. Several columns: their sum, difference, mean, product or
    quotient is the target, exactly; other combinations may well be what is to be learned, and so
    may be a trend over numbers that count up.

    Args:
        numbers: Inputs that are numbers, ``(n,)`` each; NaN is a gap.
        levels: Inputs that are categories, as numbers; NaN is a gap.
        targets: The targets, ``(n,)`` each.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> a, b = rng.uniform(size=(2, 50))
        >>> [leak.what for leak in find_leaks({"a": a, "b": b}, {}, {"y": a - b})]
        ["'a' - 'b' is 'y'"]
    """
    rows = len(next(iter(targets.values())))
    step = -(-rows // _MOST_ROWS)
    some_numbers, some_levels = (
        {name: values[::step] for name, values in own.items()} for own in (numbers, levels)
    )
    found: list[Leak] = []
    for target, values in targets.items():
        y = values[::step]
        alone = [
            leak
            for name, x in (*some_numbers.items(), *some_levels.items())
            if (leak := _alone(name, x, target, y, is_number=name in some_numbers))
        ]
        named = {leak.columns[0] for leak in alone}
        rest = {name: x for name, x in some_numbers.items() if name not in named}
        together = _together(rest, target, y)
        found += [*alone, *([together] if together else [])]
    return tuple(found)


def say_leaks(leaks: Sequence[Leak]) -> list[str]:
    """Return a sentence for each of the first leaks, and one for the others if there are many.

    Example:
        >>> say_leaks([Leak((f"c{i}",), "y", f"'c{i}' equals 'y'") for i in range(9)])[-1]
        "4 more inputs give a target away: 'c5', 'c6', 'c7', 'c8'."
    """
    said, more = [str(leak) for leak in leaks[:_MOST_SAID]], leaks[_MOST_SAID:]
    if more:
        names = [" and ".join(map(repr, leak.columns)) for leak in more[:_MOST_SAID]]
        rest = f" and {len(more) - _MOST_SAID:,} more" if len(more) > _MOST_SAID else ""
        verb = "input gives" if len(more) == 1 else "inputs give"
        said.append(f"{len(more):,} more {verb} a target away: {', '.join(names)}{rest}.")
    return said


def _alone(name: str, x: Floats, target: str, y: Floats, *, is_number: bool) -> Leak | None:
    """Look at one column."""
    there = ~np.isnan(x)
    x, y = x[there], y[there]
    if len(x) < max(_FEWEST_ROWS, len(there) / 2) or np.ptp(y) == 0 or np.ptp(x) == 0:
        return None
    different, places, rows = np.unique(x, return_inverse=True, return_counts=True)
    if is_number:
        left = 1.0 - float(np.corrcoef(x, y)[0, 1]) ** 2
        steps = np.diff(different)
        is_even = np.ptp(steps) <= 1e-6 * steps.mean()
        if left < (_EVEN if is_even else 1.0 - SURE):
            return Leak((name,), target, f"{name!r} {_copied(x, y, left)} the target {target!r}")
        if not is_even and len(different) >= _FEWEST_VALUES and _is_monotone(x, y):
            return Leak((name,), target, f"{name!r} has the same order as the target {target!r}")
    if len(different) < 3 or len(different) > len(x) / 3:
        return None
    means = np.bincount(places, y) / rows
    within = float(((y - means[places]) ** 2).sum()) / (len(y) - len(different))
    if within < (1.0 - SURE) * float(y.var(ddof=1)):
        return Leak(
            (name,), target, f"each value of {name!r} has one value of the target {target!r}"
        )
    return None


def _is_monotone(x: Floats, y: Floats) -> bool:
    """Whether one column rises, or falls, with the other, up to ties."""
    return any((np.diff(y[np.lexsort((y, own))]) >= 0).all() for own in (x, -x))


def _together(numbers: Mapping[str, Floats], target: str, y: Floats) -> Leak | None:
    """Look for columns whose sum or product is the target."""
    usable = {name: x for name, x in numbers.items() if np.isnan(x).mean() < 0.05}
    if len(usable) < 2:
        return None
    there = ~np.isnan(np.column_stack(list(usable.values()))).any(axis=1)
    columns = {name: x[there] for name, x in usable.items()}
    y = y[there]
    columns = {name: x for name, x in columns.items() if np.ptp(x) > 0}
    if len(y) < _FEWEST_ROWS or len(columns) < 2 or np.ptp(y) == 0:
        return None
    found = _sum(columns, y)
    if found is not None:
        return Leak(tuple(found), target, f"{_written(found)} is {target!r}")
    positive = {name: np.log(x) for name, x in columns.items() if (x > 0).all()}
    if (y > 0).all() and len(positive) > 1 and np.ptp(np.log(y)) > 0:
        found = _sum(positive, np.log(y), most=_MOST_FACTORS, is_product=True)
        if found is not None:
            return Leak(tuple(found), target, f"{_multiplied(found)} is {target!r}")
    return None


def _sum(
    columns: Mapping[str, Floats], y: Floats, *, most: int = _MOST_TERMS, is_product: bool = False
) -> dict[str, float] | None:
    """Return the columns whose sum is ``y``, each with its coefficient, all of one size."""
    names = list(columns)
    x = np.column_stack([columns[name] for name in names])
    center, scale = x.mean(axis=0), x.std(axis=0)
    z, v = (x - center) / scale, (y - y.mean()) / y.std()
    nearest = np.argsort(-np.abs(z.T @ v), kind="stable")[: min(_MOST_COLUMNS, len(y) // 3)]
    chosen = _few(z[:, nearest], v)
    if chosen is None or len(chosen) < 2 or len(chosen) > min(most, len(y) // _ROWS_PER_TERM):
        return None
    own = nearest[chosen]
    weights = np.linalg.lstsq(z[:, own], v, rcond=None)[0] * y.std() / scale[own]
    size = float(np.median(np.abs(weights)))
    size = 1.0 if abs(size - 1.0) < _SAME else size
    if (np.abs(np.abs(weights) / size - 1.0) > _SAME).any() or (is_product and size != 1.0):
        return None
    exact = size * np.sign(weights)
    rest = y - x[:, own] @ exact
    offset = float(rest.mean())
    if rest.var() > EXACT * y.var() or abs(offset) > _SAME * max(y.std(), abs(y.mean())):
        return None
    order = np.argsort(own)
    return {names[own[place]]: float(exact[place]) for place in order}


def _few(z: Floats, v: Floats) -> list[int] | None:
    """Return as few columns as possible that explain ``v`` exactly; None if even all do not."""
    gram, product = z.T @ z, z.T @ v
    total = float(v @ v)

    def left(columns: Sequence[int]) -> float:
        some = np.ix_(columns, columns)
        weights = np.linalg.lstsq(gram[some], product[list(columns)], rcond=1e-12)[0]
        rest = v - z[:, list(columns)] @ weights
        return float(rest @ rest) / total

    kept = list(range(z.shape[1]))
    if left(kept) > EXACT:
        return None
    for column in reversed(range(z.shape[1])):  # the farthest from the target first
        fewer = [own for own in kept if own != column]
        if fewer and left(fewer) <= EXACT:
            kept = fewer
    return kept


def _written(found: Mapping[str, float]) -> str:
    """Write ``'a' + 'b' - 'c'``, a mean or a multiple of it."""
    terms = sorted(found.items(), key=lambda item: item[1] < 0)
    text = "".join(_terms(terms))
    size = abs(terms[0][1])
    if size == 1.0:
        return text
    if abs(size * len(terms) - 1.0) < _SAME and all(weight > 0 for _, weight in terms):
        return f"the mean of {', '.join(repr(name) for name, _ in terms)}"
    return f"{size:.4g} * ({text})"


def _terms(terms: Sequence[tuple[str, float]]) -> Iterator[str]:
    for place, (name, weight) in enumerate(terms):
        sign = "-" if weight < 0 else "+"
        yield (f" {sign} " if place else "-" * (weight < 0)) + repr(name)


def _multiplied(found: Mapping[str, float]) -> str:
    above = [repr(name) for name, power in found.items() if power > 0]
    below = [repr(name) for name, power in found.items() if power < 0]
    return f"{' * '.join(above) or '1'}{''.join(f' / {name}' for name in below)}"


def _copied(x: Floats, y: Floats, left: float) -> str:
    if np.array_equal(x, y):
        return "equals"
    if left < EXACT:
        return "is, but for its unit,"
    return f"(R2 {1.0 - left:.5f}) is nearly a copy of"


def _word(name: str) -> str:
    import shlex

    return shlex.quote(name)

"""What a study's statistics mean, in plain sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from regaug.metrics import METRICS
from regaug.studies.leaderboard import BASELINE_NAMES
from regaug.studies.statistics import Change, Comparison, Row

# With fewer splits than this a difference must be large to be seen among several methods.
FEW_SPLITS = 5


@dataclass(frozen=True)
class Verdict:
    """The answer of a study.

    Attributes:
        text: The answer in plain sentences.
        recommended: Name of the net to train: of the augmentations that help the one with the best
            mean, or the reference if none does. Whether a baseline does better, the text says. If
            the reference has failed, the net with the best mean that has not.
        helps: Augmentations that are significantly better than the reference, the best mean first.
        hurts: Augmentations that are significantly worse, in the same order.
    """

    text: str
    recommended: str
    helps: tuple[str, ...]
    hurts: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


def make_verdict(comparison: Comparison) -> Verdict:
    """Say what a study has found.

    What stands beside the nets comes first. A baseline beats every net if its mean is better than
    the best net's and the interval of the change between these two leaves out zero; with a better
    mean alone it is at least as good. The mean of the targets must be beaten in the same way.

    Args:
        comparison: The statistics, from :func:`regaug.studies.statistics.analyze`.

    Example:
        >>> from regaug.studies.statistics import analyze
        >>> errors = {"erm": [1.0, 1.2, 0.9, 1.1, 1.0], "mixup": [0.9, 1.1, 0.8, 1.0, 0.9]}
        >>> print(make_verdict(analyze(errors, test_share=0.25)))
        mixup lowers RMSE by 9.7 % (7.7 to 11.6) against plain training; recommended: mixup.
    """
    sign = METRICS[comparison.metric].sign
    found = [(row, sign * (row.change or 0.0)) for row in comparison.rows if row.is_significant]
    helps = [row for row, change in found if change < 0]
    hurts = [row for row, change in found if change > 0]
    recommended = _recommended(comparison, helps)
    beside = _beside(comparison)
    advice = f"recommended{' net' if beside else ''}: {recommended}."
    sentences = (beside, _nets(comparison, helps, hurts, advice), *_remarks(comparison))
    return Verdict(
        text=" ".join(sentence for sentence in sentences if sentence),
        recommended=recommended,
        helps=tuple(row.name for row in helps),
        hurts=tuple(row.name for row in hurts),
    )


def _recommended(comparison: Comparison, helps: Sequence[Row]) -> str:
    if helps:
        return helps[0].name
    best = _best(comparison, baselines=False)
    has_failed = comparison.row(comparison.reference).mean is None
    return best.name if has_failed and best is not None else comparison.reference


def _beside(comparison: Comparison) -> str:
    """Say what the baselines have done better, if anything."""
    best, net = _best(comparison, baselines=True), _best(comparison, baselines=False)
    if best is None:
        return ""
    name = BASELINE_NAMES.get(best.name, best.name)
    is_, s, it = ("are", "", "them") if best.name == "trees" else ("is", "s", "it")
    if net is None:
        return f"{name} {is_} the best of what worked on every split: use {it}."
    if only_the_mean := _only_the_mean(comparison):
        return only_the_mean
    if not _is_level(comparison, best, net):
        return ""
    change = comparison.paired(best.name, net.name)
    if not _is_better(change, comparison):
        return f"{name} {is_} at least as good as the best net."
    of = "" if comparison.unit == "percent" else f" in {METRICS[comparison.metric].title}"
    return f"{name} beat{s} every net by {_amount(change, comparison)}{of}: use {it}."


def _only_the_mean(comparison: Comparison) -> str:
    """Say that the mean of the targets is not beaten, if it was tried and is not."""
    best = comparison.rows[0]
    mean = next((row for row in comparison.rows if row.is_baseline and row.name == "mean"), None)
    if mean is None or mean.mean is None:
        return ""
    if _is_level(comparison, mean, best):
        return "Nothing here predicts the target better than its mean."
    if comparison.n_splits == 1 or _is_better(comparison.paired(best.name, "mean"), comparison):
        return ""
    return "Nothing here predicts the target clearly better than its mean."


def _nets(comparison: Comparison, helps: Sequence[Row], hurts: Sequence[Row], advice: str) -> str:
    """Say what the augmentations have done against the reference."""
    metric = METRICS[comparison.metric].title
    plain, keep = _reference_words(comparison)
    tried = _augmentations(comparison)
    if comparison.row(comparison.reference).mean is None:
        return _without_reference(comparison, plain, advice)
    if not tried:
        return f"There is no augmentation to compare with {plain}."
    if all(row.mean is None for row in tried):
        return f"No augmentation worked on every split: {keep}."
    if comparison.n_splits == 1:
        return _single_split(comparison, plain, keep)
    if helps:
        verb = "raises" if METRICS[comparison.metric].higher_is_better else "lowers"
        better = _list(helps, f"{verb} {metric}", comparison, interval=True)
        worse = f"; {_list(hurts, 'makes it worse', comparison)}" if hurts else ""
        return f"{better} against {plain}{worse}; {advice}"
    if hurts:
        worse = _list(hurts, f"makes {metric} worse", comparison)
        return f"No augmentation helps on this data: {worse} against {plain}; {keep}."
    return f"No augmentation differs from {plain} on this data: {keep}."


def _without_reference(comparison: Comparison, plain: str, advice: str) -> str:
    failed = comparison.row(comparison.reference).n_failed
    text = (
        f"{plain[0].upper()}{plain[1:]} gave no finite {METRICS[comparison.metric].title} on "
        f"{failed} of {comparison.n_splits} splits, so nothing can be measured against it"
    )
    if _best(comparison, baselines=False) is None:
        return f"{text}; nor did any other net work on every split."
    return f"{text}; {advice}"


def _single_split(comparison: Comparison, plain: str, keep: str) -> str:
    higher = METRICS[comparison.metric].higher_is_better
    best, text = _best(comparison, baselines=False), plain
    if best is not None and best.change:
        text = f"{best.name} is {_amount(Change(best.change), comparison)} "
        text += f"{'above' if higher else 'below'} {plain} and"
    return (
        "With a single split nothing can be said about how sure a difference is. On this one "
        f"{text} has the {'highest' if higher else 'lowest'} {METRICS[comparison.metric].title}; "
        f"until there are more, {keep}."
    )


def _remarks(comparison: Comparison) -> list[str]:
    """Say which methods failed, and that few splits show little."""
    tried = _augmentations(comparison)
    failed = [row.name for row in tried if row.n_failed]
    remarks = []
    if failed:
        metric = METRICS[comparison.metric].title
        remarks.append(f"Left out, without a finite {metric} on every split: {', '.join(failed)}.")
    if any(row.p is not None for row in tried) and comparison.n_splits < FEW_SPLITS:
        remarks.append(f"With {comparison.n_splits} splits only large differences can be seen.")
    return remarks


def _reference_words(comparison: Comparison) -> tuple[str, str]:
    if comparison.reference == "erm":
        return "plain training", "keep it plain"
    return comparison.reference, f"keep {comparison.reference}"


def _augmentations(comparison: Comparison) -> list[Row]:
    rows = comparison.rows
    return [row for row in rows if not row.is_baseline and row.name != comparison.reference]


def _best(comparison: Comparison, *, baselines: bool) -> Row | None:
    """Return the net or the baseline with the best mean; None if all have failed."""
    rows = (row for row in comparison.rows if row.is_baseline == baselines and row.mean is not None)
    return next(rows, None)


def _is_level(comparison: Comparison, row: Row, other: Row) -> bool:
    """Tell whether a row's mean is as good as another's, or better."""
    sign = METRICS[comparison.metric].sign
    return row.mean is not None and other.mean is not None and sign * row.mean <= sign * other.mean


def _is_better(change: Change, comparison: Comparison) -> bool:
    """Tell whether a change is for the better, from one end of its interval to the other."""
    sign = METRICS[comparison.metric].sign
    return all(end is not None and sign * end < 0 for end in (change.low, change.high))


def _list(rows: Sequence[Row], verb: str, comparison: Comparison, *, interval: bool = False) -> str:
    """Write ``a lowers RMSE by 5 %, b by 3 %``."""
    parts: list[str] = []
    for row in rows:
        ends = (row.change_low, row.change_high) if interval else ()
        amount = _amount(Change(row.change, *ends), comparison)
        parts.append(f"{row.name} by {amount}" if parts else f"{row.name} {verb} by {amount}")
    return ", ".join(parts)


def _amount(change: Change, comparison: Comparison) -> str:
    """Write the size of a change, such as ``5.1 % (2.0 to 8.0)``, to two digits or so."""
    is_percent = comparison.unit == "percent"
    unit, most = (" %", 2) if is_percent else ("", 4)
    size = abs(change.estimate or 0.0)
    ends = sorted(abs(end) for end in (change.low, change.high) if end is not None)
    if is_percent and size >= 1000:
        return "more than 1,000 %"
    if size < 0.5 * 10.0**-most:
        return f"less than {10.0**-most:g}{unit}"
    # An end that is not zero should not be rounded to it: one digit of each is shown at least.
    decimals = min(most, max(_decimals(size), *(_decimals(10 * end) for end in ends), 0))
    span = " to ".join(f"{end:,.{decimals}f}" for end in ends)
    return f"{size:,.{decimals}f}{unit}{span and f' ({span})'}"


def _decimals(size: float) -> int:
    """Return how many decimals show two digits of a number."""
    exponent = int(f"{size:.1e}".partition("e")[2])  # of 9.99 it is 1: two digits of it are 10
    return max(0, 1 - exponent) if size > 0 else 0

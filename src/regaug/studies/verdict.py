"""What a study's statistics mean, in plain sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regaug import formatting
from regaug.ensemble.contents import AUTO
from regaug.formatting import count
from regaug.methods import NO_ROWS, REPEATS, is_for_rare, teachers_of
from regaug.metrics import METRICS
from regaug.studies.advice import advise
from regaug.studies.amounts import amount
from regaug.studies.changes import Change
from regaug.studies.names import every_net, full_name, listed, reference_name
from regaug.studies.statistics import Comparison, Row


@dataclass(frozen=True)
class Verdict:
    """The answer of a study.

    Attributes:
        text: The answer in plain sentences; the last one says what to use.
        recommended: Name of the net to train: of the augmentations that help the one with the best
            mean, or the reference if none does. If the reference has failed, the net with the best
            mean that has not.
        use: Name of the row to use: the best mean of the recommended net, the baselines and the
            combinations.
        helps: Augmentations that are significantly better than the reference, the best mean first.
        hurts: Augmentations that are significantly worse, in the same order.
        winner: The baseline that beats every net; None if none does.
    """

    text: str
    recommended: str
    use: str
    helps: tuple[str, ...]
    hurts: tuple[str, ...]
    winner: str | None = None

    def __str__(self) -> str:
        return self.text


def make_verdict(
    comparison: Comparison, *, leaks: Sequence[str] = (), beside: Comparison | None = None
) -> Verdict:
    """Say what a study has found.

    Inputs that give the target away come first: they make all errors worthless. Then comes what
    stands beside the nets. A baseline beats every net if its mean is better, every net can be told
    from it by the rule of tiers, with this baseline and the nets alone, and none shares its tier
    among all rows, which is what a reader sees. The mean of the
    targets must be beaten by the interval of the change. Then comes what cannot be told apart, what
    the augmentations have done, and what to use. Of methods that are meant for rare targets both
    sides are told: an error of all rows hardly sees what they are for, and the other way round. A
    method that learns from teachers is compared with the best of them, if they stand beside.

    Args:
        comparison: The statistics, from :func:`regaug.studies.statistics.analyze`.
        leaks: Inputs that give the target away, a sentence or two each.
        beside: The statistics of the same rows by a metric of the other side, if it is known.

    Example:
        >>> from regaug.studies.statistics import analyze
        >>> errors = {"erm": [1.0, 1.2, 0.9, 1.1, 1.0], "mixup": [0.9, 1.1, 0.8, 1.0, 0.9]}
        >>> print(make_verdict(analyze(errors, test_share=0.25)))
        mixup lowers RMSE by 9.7 % (7.7 to 11.6, p < 0.001) against plain training. Use mixup.
    """
    sign = METRICS[comparison.metric].sign
    found = [(row, sign * (row.change or 0.0)) for row in comparison.rows if row.is_significant]
    helps = [row for row, change in found if change < 0]
    hurts = [row for row, change in found if change > 0]
    winner, about_mean = _find_winner(comparison), _about_mean(comparison)
    recommended = _recommended(comparison, helps)
    use, advice = advise(comparison, recommended)
    if about_mean:
        advice = "Look for inputs that say more about the target, or for more rows."
    sentences = (
        *leaks,
        about_mean or _beside(comparison, winner),
        "" if about_mean else _ties(comparison, helps),
        _nets(comparison, helps, hurts),
        _about_repeats(comparison, helps),
        _about_teachers(comparison),
        "" if beside is None else _about_rare(comparison, beside),
        _about_seeds(comparison),
        _remarks(comparison),
        advice,
    )
    return Verdict(
        text=" ".join(filter(None, sentences)),
        recommended=recommended,
        use=use,
        helps=tuple(row.name for row in helps),
        hurts=tuple(row.name for row in hurts),
        winner=winner,
    )


def _recommended(comparison: Comparison, helps: Sequence[Row]) -> str:
    if helps:
        return helps[0].name
    best = next((row for row in comparison.rows if row.is_net and row.mean is not None), None)
    has_failed = comparison.row(comparison.reference).mean is None
    return best.name if has_failed and best is not None else comparison.reference


def _find_winner(comparison: Comparison) -> str | None:
    """Return the baseline that beats every net, the ensemble of all nets among them."""
    best, nets = _best_baseline(comparison), _nets_of(comparison)
    if best is None or not nets or comparison.n_splits == 1:
        return None
    if any(row.tier == best.tier for row in nets):
        return None
    leaders = comparison.leaders([best.name, *(row.name for row in nets)])
    return best.name if leaders == (best.name,) else None


def _beside(comparison: Comparison, winner: str | None) -> str:
    """Say what the baselines have done better, if anything is sure."""
    best, nets = _best_baseline(comparison), _nets_of(comparison)
    if best is not None and not nets:
        return f"{_title(comparison, best)} is the best of what worked on every {comparison.case}."
    if best is None or winner is None:
        return ""
    change = comparison.paired(winner, nets[0].name)
    of = "" if comparison.unit == "percent" else f" in {comparison.title}"
    size, others = amount(change, comparison.unit), every_net(comparison.reference)
    return f"{_title(comparison, best)} beats {others} by {size}{of}."


def _about_mean(comparison: Comparison) -> str:
    """Say that the mean of the targets is not beaten, if it was tried and is not."""
    best = comparison.rows[0]
    mean = next((row for row in comparison.rows if row.is_baseline and row.name == "mean"), None)
    if mean is None or mean.mean is None or best.mean is None or not _nets_of(comparison):
        return ""
    if best is mean or best.mean == mean.mean:
        return "Nothing here predicts the target better than its mean."
    change, sign = comparison.paired(best.name, "mean"), METRICS[comparison.metric].sign
    is_better = all(end is not None and sign * end < 0 for end in (change.low, change.high))
    if comparison.n_splits == 1 or is_better:
        return ""
    return "Nothing here predicts the target clearly better than its mean."


def _ties(comparison: Comparison, helps: Sequence[Row]) -> str:
    """Say which rows cannot be told from the best one, unless that is said anyway."""
    leaders = [row for row in comparison.rows if row.tier == 1 and not row.is_combined]
    if comparison.n_splits == 1 or len(leaders) < 2:
        return ""
    # An augmentation that helps does differ from the reference, which has a test of its own.
    names = [r.name for r in leaders if not (helps and r.name == comparison.reference)]
    is_said = not helps and all(row.is_net for row in leaders) and comparison.reference in names
    if is_said or len(names) < 2:
        return ""
    if comparison.reference in names[2:]:  # where a long list is cut, it is still named
        names.remove(comparison.reference)
        names.insert(2, comparison.reference)
    return f"{listed(names)} cannot be told apart."


def _nets(comparison: Comparison, helps: Sequence[Row], hurts: Sequence[Row]) -> str:
    """Say what the augmentations have done against the reference."""
    metric, plain = METRICS[comparison.metric], reference_name(comparison.reference)
    tried = comparison.augmentations
    if comparison.row(comparison.reference).mean is None:
        return _without_reference(comparison, plain)
    if not tried:
        return f"There is no augmentation to compare with {plain}."
    if all(row.mean is None for row in tried):
        return f"No augmentation worked on every {comparison.case}."
    if comparison.n_splits == 1:
        return _single_split(comparison, plain)
    if helps:
        verb = "raises" if metric.higher_is_better else "lowers"
        better = _list(helps, f"{verb} {comparison.title}", comparison, sure=True)
        worse = f"; {_list(hurts, 'makes it worse', comparison)}" if hurts else ""
        return f"{better} against {plain}{worse}."
    if hurts:
        worse = _list(hurts, f"makes {comparison.title} worse", comparison)
        return f"No augmentation helps on this data: {worse} against {plain}."
    if comparison.reference == NO_ROWS:
        return f"No new rows make a difference on this data. {_smallest(comparison)}"
    return f"No augmentation differs from {plain} on this data. {_smallest(comparison)}"


def _about_repeats(comparison: Comparison, helps: Sequence[Row]) -> str:
    """Say that new rows help a regressor no more than old ones once more, if so."""
    has_repeats = any(row.name == REPEATS and row.mean is not None for row in comparison.rows)
    if not helps or helps[0].name == REPEATS or not has_repeats or comparison.n_splits == 1:
        return ""
    change, sign = comparison.paired(helps[0].name, REPEATS), METRICS[comparison.metric].sign
    if all(end is not None and sign * end < 0 for end in (change.low, change.high)):
        return ""
    return (
        f"{helps[0].name} cannot be told from training rows once more: it may be the number of "
        "rows that helps, and a setting of the regressor may do as much."
    )


def _about_teachers(comparison: Comparison) -> str:
    """Say how nets that learned from teachers compare with the best of these."""
    if comparison.n_splits == 1 or comparison.reference == NO_ROWS:
        return ""
    known, said = [row.name for row in comparison.rows if row.mean is not None], []
    for row in comparison.augmentations:
        names = [name for name in known if name in teachers_of(row.name)]  # the best first
        if row.name not in known or not names:
            continue
        who = f"The teacher of {row.name}, {names[0]}, stands beside"
        if len(names) > 1:
            who = f"Of the teachers of {row.name} ({listed(names)}) {names[0]} is the best"
        said.append(f"{who}: {_against(comparison, row.name, names[0])}.")
    return " ".join(said)


def _against(comparison: Comparison, name: str, teacher: str) -> str:
    """Say whether nets are better than their teacher."""
    change, sign = comparison.paired(name, teacher), METRICS[comparison.metric].sign
    ends = [sign * end for end in (change.low, change.high) if end is not None]
    if not ends or min(ends) <= 0 <= max(ends):
        return "the nets cannot be told from it"
    word = "better" if max(ends) < 0 else "worse"
    of = "" if comparison.unit == "percent" else f" in {comparison.title}"
    return f"the nets are {word} than it by {amount(change, comparison.unit)}{of}"


def _about_rare(comparison: Comparison, beside: Comparison) -> str:
    """Say what methods that are meant for rare targets do to both sides."""
    parts = []
    for row in comparison.augmentations:
        if not is_for_rare(row.name) or row.change is None:
            continue
        other = beside.row(row.name)
        sizes = [
            f"{own.title} by {formatting.change(found.change, own.unit)}{_span(own, found)}"
            for own, found in ((comparison, row), (beside, other))
            if found.change is not None
        ]
        parts.append(f"{row.name}, meant for rare targets, changes {' and '.join(sizes)}")
    return f"{'; '.join(parts)}." if parts else ""


def _span(comparison: Comparison, row: Row) -> str:
    span = formatting.between(row.change_low, row.change_high, comparison.unit)
    return f" ({span})" if span else ""


def _smallest(comparison: Comparison) -> str:
    """Say what the study could have seen."""
    if comparison.smallest_change is None:
        return f"With {_cases(comparison)} only large differences can be seen."
    size = amount(Change(comparison.smallest_change), comparison.unit)
    return f"A change of less than about {size} could not have been seen with {_cases(comparison)}."


def _without_reference(comparison: Comparison, plain: str) -> str:
    failed = comparison.row(comparison.reference).n_failed
    text = (
        f"{_start(plain)} gave no finite {comparison.title} on {failed} of "
        f"{_cases(comparison)}, so nothing can be measured against it"
    )
    has_net = any(row.mean is not None for row in comparison.augmentations)
    other = "anything else" if comparison.reference == NO_ROWS else "any other net"
    nor = f"nor did {other} work on every {comparison.case}"
    return f"{text}." if has_net else f"{text}; {nor}."


def _single_split(comparison: Comparison, plain: str) -> str:
    higher = METRICS[comparison.metric].higher_is_better
    best, text = comparison.rows[0], ""
    if best.change:
        size = amount(Change(best.change), comparison.unit)
        text = f", {size} {'above' if higher else 'below'} {plain}"
    name = plain if best.name == comparison.reference else best.name
    return (
        "With a single split nothing can be said about how sure a difference is. On this one "
        f"{name} has the {'highest' if higher else 'lowest'} "
        f"{comparison.title}{text}."
    )


def _remarks(comparison: Comparison) -> str:
    """Say which methods failed."""
    failed = [row.name for row in comparison.augmentations if row.n_failed]
    metric = comparison.title
    names = ", ".join(failed)
    every = f"every {comparison.case}"
    return f"Left out, without a finite {metric} on {every}: {names}." if failed else ""


def _about_seeds(comparison: Comparison) -> str:
    """Say what the repetitions of a single split tell, and what they do not."""
    if not comparison.repeated or comparison.n_splits == 1:
        return ""
    return (
        f"All {comparison.n_splits} repetitions have the same split and other seeds: the intervals "
        "say how much seeds vary, not how other test rows would turn out."
    )


def _cases(comparison: Comparison) -> str:
    return count(comparison.n_splits, comparison.case)


def _best_baseline(comparison: Comparison) -> Row | None:
    known = (row for row in comparison.rows if row.is_baseline and row.mean is not None)
    return next(known, None)


def _nets_of(comparison: Comparison) -> list[Row]:
    """Return all rows without a part of a baseline that have a mean, the best first."""
    own = [row for row in comparison.rows if not row.is_baseline and row.name != AUTO]
    return [row for row in own if row.mean is not None]


def _list(rows: Sequence[Row], verb: str, comparison: Comparison, *, sure: bool = False) -> str:
    """Write ``a lowers RMSE by 5 %, b by 3 %``, with intervals and p-values if ``sure``."""
    parts: list[str] = []
    for row in rows:
        change = Change(row.change)
        if sure:
            change = replace(change, low=row.change_low, high=row.change_high, p=row.p_holm)
        size = amount(change, comparison.unit)
        parts.append(f"{row.name} by {size}" if parts else f"{row.name} {verb} by {size}")
    return ", ".join(parts)


def _title(comparison: Comparison, row: Row) -> str:
    return _start(full_name(row, comparison.reference))


def _start(words: str) -> str:
    return words[:1].upper() + words[1:]

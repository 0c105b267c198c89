"""Coded checks: what should make a reader of a study careful, each with its page in the docs."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

import numpy as np

from regaug._files import JSON
from regaug.exceptions import UnknownNameError
from regaug.formatting import count, number
from regaug.methods import Between, Space
from regaug.metrics import METRICS
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.facts import Facts
from regaug.studies.names import every_net, listed, reference_name
from regaug.studies.search import suit
from regaug.studies.statistics import Comparison
from regaug.studies.verdict import Verdict, make_verdict
from regaug.training.recipe import SPACE

PAGE = "docs/checks.md"
TITLES = {
    "R1": "a setting at the edge of its space",
    "R2": "one split decides",
    "R3": "validation and test disagree",
    "R4": "few validation rows",
    "R5": "few splits",
    "R6": "runs that diverged",
    "R7": "the mean is not beaten",
    "R8": "test rows that were trained on",
    "R9": "a likely leak",
}
# How near to an end of its space a setting is at the edge, as a share of the space.
NEAR = 0.02
# Ends beyond which nothing changes any more.
NATURAL = {("p", "upper"), ("weight_decay", "lower"), ("share", "lower")}
FEW_ROWS, FEW_SPLITS = 40, 5
# A rank correlation below this chooses hardly better than chance; of fewer runs it says nothing.
WEAK, FEWEST_RUNS = 0.2, 5
# A few settings of a wide space may diverge; more than this share is worth a look.
MANY = 0.05


@dataclass(frozen=True)
class Check:
    """Something that should make a reader careful.

    Attributes:
        code: What it is known by, such as ``"R1"``.
        text: What was found here, in a sentence.
        anchor: The place in the docs that says what it means, how it is found and what to do.
    """

    code: str
    text: str
    anchor: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text} ({self.anchor})"

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return asdict(self)


def find_checks(
    comparison: Comparison,
    verdict: Verdict,
    *,
    records: Sequence[RunRecord] = (),
    chosen: Mapping[str, Sequence[Run]] | None = None,
    facts: Facts | None = None,
    space: Space = SPACE,
) -> tuple[Check, ...]:
    """Return what should make a reader of a study careful; nothing if all is well.

    Args:
        comparison: The statistics of the study.
        verdict: What was made of them.
        records: All finished runs.
        chosen: For every method the runs that count, one or several for each split.
        facts: What is known of the data.
        space: What recipes were drawn from.

    Example:
        >>> from regaug.studies.statistics import analyze
        >>> found = analyze({"erm": [1.0, 1.2, 0.9], "ada": [1.1, 1.1, 1.0]}, test_share=0.25)
        >>> [check.code for check in find_checks(found, make_verdict(found))]
        ['R5']
    """
    # The advice rests on these: plain training, and what is recommended instead.
    names = list(dict.fromkeys((comparison.reference, verdict.recommended)))
    own = {name: runs for name in names if (runs := (chosen or {}).get(name))}
    texts = {
        "R1": _at_the_edge(own, space),
        "R2": _one_split(comparison, verdict),
        "R3": _disagreement(names, records, comparison.metric),
        "R4": _few_rows(records),
        "R5": _few_splits(comparison),
        "R6": _diverged(records),
        "R7": _mean_not_beaten(comparison),
        "R8": _shared_rows(facts),
        "R9": "" if facts is None else " ".join(facts.leaks),
    }
    return tuple(Check(code, text, anchor(code)) for code, text in texts.items() if text)


def anchor(code: str) -> str:
    """Return the place in the docs that explains a code.

    Example:
        >>> anchor("R5")
        'docs/checks.md#r5-few-splits'
    """
    return f"{PAGE}#{re.sub(r'[^a-z0-9]+', '-', f'{code} {TITLES[code]}'.lower())}"


def _at_the_edge(chosen: Mapping[str, Sequence[Run]], space: Space) -> str:
    found = []
    for name, runs in chosen.items():
        ends = Counter(end for run in runs for end in _edges(run, space))
        found += [
            f"{setting} of {name} at the {side} end of its space ({number(end, 2)}) in {times} of "
            f"{count(len(runs), 'chosen run')}"
            for (setting, side, end), times in ends.items()
            if 2 * times >= len(runs)
        ]
    return f"The best settings lie at an edge: {'; '.join(found)}." if found else ""


def _edges(run: Run, space: Space) -> Iterator[tuple[str, str, float]]:
    """Yield the settings of a run that lie at an end of their space, the end, and its value."""
    if run.settings is None:
        return
    values = {**vars(run.settings), **run.settings.method_settings}
    makes_rows = "share" in run.settings.method_settings
    try:
        own = suit(run.method, kind="estimator" if makes_rows else "table").space
        spaces = own if makes_rows else {**space, **own}
    except UnknownNameError:  # a method of the user's that is not registered here
        return
    for name, choice in spaces.items():
        value = values.get(name)
        if not isinstance(choice, Between) or not isinstance(value, int | float):
            continue
        low, high = choice.low, choice.high
        if choice.log:
            low, high, value = (math.log(v) if v > 0 else -math.inf for v in (low, high, value))
        share = (value - low) / (high - low)
        for side, end, gap in (("lower", choice.low, share), ("upper", choice.high, 1.0 - share)):
            if gap <= NEAR and (name, side) not in NATURAL:
                yield name, side, end


def _one_split(comparison: Comparison, verdict: Verdict) -> str:
    """Say that what is called sure, or is not, would be otherwise without one of the splits."""
    if comparison.n_splits < FEW_SPLITS - 1:  # too few for any to be left out
        return ""
    others = [make_verdict(comparison.without_split(split)) for split in range(comparison.n_splits)]
    plain = reference_name(comparison.reference)
    lead = verdict.recommended
    if verdict.helps:
        splits = [n for n, other in enumerate(others, 1) if lead not in other.helps]
        what = f"{lead} would no longer differ from {plain}"
    else:
        splits = [n for n, other in enumerate(others, 1) if other.helps]
        names = dict.fromkeys(name for other in others for name in other.helps)
        what = f"{listed(list(names)) if names else ''} would help"
    if not splits:
        splits = [n for n, other in enumerate(others, 1) if other.winner != verdict.winner]
        nets = every_net(comparison.reference)
        what = f"{verdict.winner} would not beat {nets} for sure"
        if verdict.winner is None and splits:
            what = f"{others[splits[0] - 1].winner} would beat {nets}"
    if not splits:
        return ""
    case = comparison.case
    word = case if len(splits) == 1 else f"any one of the {case}s"
    return f"Without {word} {listed([str(n) for n in splits])} of {comparison.n_splits}, {what}."


def _disagreement(names: Sequence[str], records: Sequence[RunRecord], metric: str) -> str:
    found = []
    # Those of the second stage have good recipes alone, and so errors that hardly differ.
    records = [own for own in records if own.run.stage == "recipe"] or records
    for name in names:
        ranks, losses = [], []
        for validation, test in _errors_by_split(name, records, metric):
            ranks.append(_rank_correlation(validation, test))
            losses.append(test[int(np.argmin(validation))] > median(test))
        if ranks and (fmean(ranks) < WEAK or 2 * sum(losses) > len(losses)):
            found.append(
                f"of {name} the rank correlation is {number(fmean(ranks), 2)}, and the run with "
                f"the best validation error is worse than the median on the test rows of "
                f"{sum(losses)} of {count(len(losses), 'split')}"
            )
    return f"Validation and test errors hardly agree: {'; '.join(found)}." if found else ""


def _errors_by_split(
    name: str, records: Sequence[RunRecord], metric: str
) -> Iterator[tuple[list[float], list[float]]]:
    """Yield validation and test errors of a method's runs on each split with enough of them."""
    errors: dict[int, list[tuple[float, float]]] = {}
    for record in records:
        own = record.validation_error(metric), METRICS[metric].error(record.score("test", metric))
        if record.run.method == name and all(map(math.isfinite, own)):
            errors.setdefault(record.run.split, []).append(own)
    for pairs in errors.values():
        validation, test = ([pair[i] for pair in pairs] for i in (0, 1))
        if min(len(set(validation)), len(set(test))) >= FEWEST_RUNS:
            yield validation, test


def _rank_correlation(values: Sequence[float], others: Sequence[float]) -> float:
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(values), rankdata(others))[0, 1])


def _few_rows(records: Sequence[RunRecord]) -> str:
    fewest = min((record.sizes[1] for record in records), default=FEW_ROWS)
    if fewest >= FEW_ROWS:
        return ""
    return f"Only {count(fewest, 'validation row')} of a split choose its epochs and settings."


def _few_splits(comparison: Comparison) -> str:
    if comparison.n_splits >= FEW_SPLITS:
        return ""
    cases = count(comparison.n_splits, comparison.case)
    return f"The study has {cases}: only large changes can be seen."


def _diverged(records: Sequence[RunRecord]) -> str:
    runs = Counter(record.run.method for record in records)
    bad = Counter(record.run.method for record in records if record.ending == "diverged")
    found = [
        f"{times} of {count(runs[name], 'run')} of {name}"
        for name, times in bad.items()
        if times >= MANY * runs[name]
    ]
    return f"Runs diverged: {', '.join(found)}." if found else ""


def _mean_not_beaten(comparison: Comparison) -> str:
    is_there = any(row.is_baseline and row.name == "mean" for row in comparison.rows)
    pair = (comparison.rows[0].name, "mean")
    if not is_there or comparison.n_splits == 1 or "mean" not in comparison.leaders(pair):
        return ""
    return "Predicting the mean of the training targets cannot be told from the best row."


def _shared_rows(facts: Facts | None) -> str:
    if facts is None or not facts.shared_rows:
        return ""
    rows = f"{facts.shared_rows:,} of {count(facts.rows['test'], 'test row')}"
    return f"{rows} of the first split also stand among its training or validation rows."

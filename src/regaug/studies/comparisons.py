"""The statistics of a study's rows: by its own metric, and by another one beside it."""

from collections.abc import Mapping, Sequence

from regaug.methods import is_for_rare
from regaug.metrics import RARE_METRICS, Scores, as_signed, is_logged
from regaug.studies.config import StudyConfig
from regaug.studies.names import COMBINED_NAMES
from regaug.studies.statistics import Comparison, analyze


def compare_rows(
    config: StudyConfig, scores: Mapping[str, Sequence[Scores | None]], metric: str
) -> Comparison:
    """Return the statistics of what the rows are worth by a metric."""
    errors = {
        name: [None if one is None else one.value(metric) for one in own]
        for name, own in scores.items()
    }
    # Errors that somebody else has logged may turn out to be below zero.
    values = (value for own in errors.values() for value in own if value is not None)
    is_negative = is_logged(metric) and any(value < 0 for value in values)
    return analyze(
        errors,
        metric=as_signed(metric) if is_negative else metric,
        reference=config.reference,
        baselines=[name for name in config.baselines if name in errors],
        combined=[name for name in COMBINED_NAMES if name in errors],
        test_share=config.test_share,
        independent=config.independent,
        targets=config.targets,
        repeated=config.is_repeated,
    )


def compare_beside(
    config: StudyConfig, scores: Mapping[str, Sequence[Scores | None]]
) -> Comparison | None:
    """Return those of the methods by a second metric, where one of them is for rare targets.

    That is the balanced error beside a plain one, and a plain one beside an error of rare rows.
    """
    if not any(map(is_for_rare, config.methods)) or is_logged(config.metric):
        return None
    other = "rmse" if config.metric in RARE_METRICS else "balanced-rmse"
    return compare_rows(config, {name: scores[name] for name in config.methods}, other)

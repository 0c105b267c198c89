"""Studies of trainings that are somebody else's, such as those of a Lightning module."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from regaug.exceptions import ArgumentError
from regaug.metrics import METRICS, MetricName, Mode, logged_metric
from regaug.problems import Cost, Problem
from regaug.studies.config import Search, StudyConfig
from regaug.studies.search import draw_settings
from regaug.training.logged import LoggedTraining
from regaug.training.settings import Settings


def look_at(problem: Problem, training: LoggedTraining) -> Problem:
    """Return the problem of somebody else's training with what a look at it has shown."""
    facts = training.facts
    mode: Mode = "max" if METRICS[problem.metric].higher_is_better else "min"
    return replace(
        problem,
        metric=cast(MetricName, logged_metric(facts.judged_by, mode)),
        cost=Cost(facts.step_seconds),
        notes=[*problem.notes, *facts.notes],
    )


def leave_out_logged(
    training: LoggedTraining, names: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the methods that can act on the module, and sentences about the others."""
    kept, sentences = training.leave_out(names)
    if len(names) > 1 and len(kept) == 1:
        raise ArgumentError(
            f"`methods` must have one that can act on the module, got none. {' '.join(sentences)}"
        )
    return kept, sentences


def draw_logged(training: LoggedTraining, config: StudyConfig) -> dict[str, list[Settings]]:
    """Draw the settings of every method for a training whose recipe is the user's own."""
    usual = Settings(epochs=training.epochs, batch_size=training.facts.batch_size)
    drawn = {
        name: draw_settings(name, config.trials, seed=config.seed, rows=config.train_rows)
        for name in config.methods
    }
    return {
        name: [replace(usual, method_settings=training.adapt(own)) for own in tried]
        for name, tried in drawn.items()
    }


def check_logged(training: LoggedTraining, count: int, trials: int | None, search: Search) -> int:
    """Return how many settings of a method are tried with a training that is the user's own."""
    if search != "random":
        raise ArgumentError(
            f"`search` must be 'random' for a Lightning module, got {search!r}: its settings are "
            "drawn with regard to where the module lets a method act."
        )
    if training.facts.has_test:
        return count
    if trials not in (None, 1):
        raise ArgumentError(
            f"`trials` must be 1 where no test rows judge what was chosen, got {trials}: the best "
            "of several settings on the validation rows would look better than it is. Give the "
            "data module a test_dataloader, or leave `trials` out."
        )
    return 1

"""Train the members of an ensemble as one stack."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from regaug import _random
from regaug.data.base import Split
from regaug.data.scaling import Scaler
from regaug.ensemble.members import Members
from regaug.exceptions import DivergedError
from regaug.training import RunResult, Settings, fit_many


@dataclass(frozen=True, eq=False)
class Trained:
    """Members and how they came about.

    Attributes:
        members: The nets.
        numbers: Which of the splits each of them was trained on: one that diverged before it had
            learned anything is left out.
        results: The trainings of the nets.
        settings: What they share, the method's own settings completed by its defaults.
    """

    members: Members
    numbers: tuple[int, ...]
    results: tuple[RunResult, ...]
    settings: Settings


def train_members(
    splits: Sequence[Split],
    method: str,
    settings: Settings,
    *,
    hidden: Sequence[int],
    scaler: Scaler,
    log: bool = False,
    progress: bool = False,
) -> Trained:
    """Train a net on every split, each with a seed of its own.

    Args:
        splits: Tables, standardized.
        method: One of ``regaug.methods.names()``.
        settings: Settings of every member; the seeds are derived from theirs.
        hidden: Widths of the hidden layers.
        scaler: Scale of the targets, or of their logarithms.
        log: Whether the nets learn logarithms.
        progress: Show a progress bar.
    """
    own = [
        replace(settings, seed=_random.derive(_random.Stream.MEMBERS, settings.seed, member))
        for member in range(len(splits))
    ]
    results = fit_many(splits, method, own, hidden=hidden, record=(), progress=progress)
    usable = tuple(number for number, result in enumerate(results) if _is_usable(result))
    if not usable:
        raise DivergedError(
            "The loss of every member became NaN or infinite. Use a lower learning rate, or "
            "gradient clipping."
        )
    kept = tuple(results[number] for number in usable)
    weights = {
        name: torch.stack([result.weights[name] for result in kept]) for name in kept[0].weights
    }
    members = Members(tuple(int(width) for width in hidden), weights, scaler, log)
    return Trained(members, usable, kept, replace(kept[0].settings, seed=settings.seed))


def _is_usable(result: RunResult) -> bool:
    # Without validation rows nothing else sees that the last step has led to infinity.
    return result.best_epoch > 0 and all(
        bool(weight.isfinite().all()) for weight in result.weights.values()
    )

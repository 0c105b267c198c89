"""What FOMA does to the batches of a training: how many it changes, and where it cuts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regaug import formatting, methods
from regaug.augment.foma import count_cuts, list_cuts
from regaug.data.base import Split
from regaug.methods import BOTH, INPUT
from regaug.runs.record import RunRecord
from regaug.training.limits import TrainingBatches
from regaug.training.settings import Settings

# Whether the leading values are scaled, and how often which cut was made: (k, values, batches).
_Counted = tuple[bool, Sequence[tuple[int, int, int]]]


@dataclass(frozen=True)
class Cut:
    """The cuts of FOMA in all batches of some trainings.

    Attributes:
        batches: How many batches there were.
        changed: In how many of them a singular value was scaled.
        k: Median of the cut.
        values: Median number of singular values, the largest that k can be.
    """

    batches: int
    changed: int
    k: int
    values: int

    @property
    def share(self) -> float:
        """The share of batches that were changed.

        Example:
            >>> Cut(batches=200, changed=50, k=1, values=8).share
            0.25
        """
        return self.changed / self.batches

    @property
    def words(self) -> str:
        """The share, and where the cut is.

        Example:
            >>> Cut(batches=200, changed=50, k=1, values=8).words
            '25 %, k 1 of 8'
        """
        return f"{formatting.percent(self.share)}, k {self.k} of {self.values}"


def read_cut(records: Sequence[RunRecord]) -> Cut | None:
    """Return what was counted in some trainings of one row; None if they were not FOMA's.

    With ``scale="leading"`` the first k values are scaled, so a cut of 0 changes nothing; else the
    others are, and a cut that leaves none changes nothing. A cut that could not be estimated
    (-1) changes nothing either.
    """
    return _add_up(
        (_is_leading(record.run.settings), record.cuts)
        for record in records
        if record.run.settings is not None
    )


def count_in_an_epoch(split: Split, method: str, settings: Settings) -> Cut | None:
    """Count the cuts in the batches of a training's first epoch, without the training.

    That is for FOMA on the inputs: what a layer puts out must be learned first, so there it is
    None. Of FOMA at both places the inputs are counted.
    """
    ready = methods.get(method).prepare(settings.method_settings, seed=settings.seed)
    if ready.settings["place"] not in (INPUT, BOTH):
        return None
    ready.fit(split.train.x, split.train.y)
    count_cuts(ready.augmentation)
    sampler = ready.sampler(split.train.y, settings.batch_size, drop_last=True)
    for x, y, _, _ in TrainingBatches(split).of_epoch(sampler):
        ready.augmentation(x, y)
    return _add_up([(_is_leading(settings), list_cuts(ready.augmentation))])


def _is_leading(settings: Settings) -> bool:
    return settings.method_settings.get("scale") == "leading"


def _add_up(counted: Iterable[_Counted]) -> Cut | None:
    counts: dict[tuple[int, int], int] = {}
    changed = 0
    for is_leading, cuts in counted:
        for k, values, count in cuts:
            counts[k, values] = counts.get((k, values), 0) + count
            changed += count if (k > 0 if is_leading else 0 <= k < values) else 0
    total = sum(counts.values())
    if not total:
        return None
    k, values = (_median(counts, axis) for axis in (0, 1))
    return Cut(total, changed, k, values)


def _median(counts: dict[tuple[int, int], int], axis: int) -> int:
    """Return the lower median of one of two numbers that were counted together."""
    left = (sum(counts.values()) + 1) // 2
    for pair in sorted(counts, key=lambda pair: pair[axis]):
        left -= counts[pair]
        if left <= 0:
            return pair[axis]
    raise AssertionError("nothing was counted")

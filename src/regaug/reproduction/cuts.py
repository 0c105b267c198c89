"""What FOMA did to the batches of a training: how many it changed, and where it cut."""

from collections.abc import Sequence
from dataclasses import dataclass

from regaug import formatting
from regaug.runs.record import RunRecord


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
    counts: dict[tuple[int, int], int] = {}
    changed = 0
    for record in records:
        settings = record.run.settings
        is_leading = settings is not None and settings.method_settings.get("scale") == "leading"
        for k, values, count in record.cuts:
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

"""Whether batches are pairs: samples, then a partner for each whose target is close."""

import torch
from torch import Tensor

# Comparisons that decide. By chance a partner is closer than another row in half of them, with a
# standard deviation of 0.008, and the correlation of partners is 0, with one of 0.016. Partners
# that a kernel has drawn correlate by 0.5 or more up to a bandwidth of the targets' standard
# deviation, by 0.2 at twice that. Rows in ascending order correlate too, but are never closer.
ENOUGH = 4096
CHANCE, NEVER, UNRELATED = 0.55, 0.45, 0.06
# Whoever trains a little should hear of it too: what is clearly chance after so many, or twice or
# four times as many, is told at once. Limits that pairs are as far from, in deviations, as above.
FIRST, CLEARLY_CHANCE, CLEARLY_UNRELATED = 512, 0.52, 0.04


class PairCheck:
    """Looks at the first batches and tells whether their halves belong together.

    A sample's target is compared with that of its partner and with that of the partner of the
    sample before: which is closer? What is equally far tells nothing and does not count. Targets
    with few far ones are close to nearly all others, so the correlation of partners within their
    batch has a say too.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._waiting = 0  # comparisons that may have been made
        self._next = FIRST
        self._sums: Tensor | None = None

    def look(self, y: Tensor) -> tuple[float, int] | None:
        """Look at the targets of a batch; return the share of close partners if that is too low.

        With it comes the number of comparisons. The answer comes once; None before, and if all is
        well.
        """
        half = len(y) // 2
        if self.is_done or half < 2:
            return None
        sums = _sum_up(y.detach().reshape(len(y), -1), half)
        self._sums = sums if self._sums is None else self._sums.to(sums) + sums
        self._waiting += half
        if self._waiting < self._next:  # asking a GPU for its numbers takes time
            return None
        lead, compared, common, energy = self._sums.tolist()
        self._waiting = int(compared)
        if compared < self._next:
            return None
        self._next *= 2
        is_last = compared >= ENOUGH
        chance = CHANCE if is_last else CLEARLY_CHANCE
        unrelated = UNRELATED if is_last else CLEARLY_UNRELATED
        share = 0.5 + 0.5 * lead / compared
        is_chance = share < NEVER or (share < chance and common < unrelated * energy)
        self.is_done = is_last or is_chance
        return (float(share), int(compared)) if is_chance else None


def _sum_up(rows: Tensor, half: int) -> Tensor:
    """Return closer partners less farther ones, both together, and the parts of a correlation."""
    rows = rows if rows.dtype == torch.float64 else rows.float()
    rows = rows - rows.mean(dim=0)
    samples, partners = rows[:half], rows[half:]
    own, other = (
        (samples - those).square().sum(dim=1) for those in (partners, partners.roll(1, 0))
    )
    is_closer = (other - own).sign()
    common, energy = (samples * partners).sum(), 0.5 * rows.square().sum()
    return torch.stack([is_closer.sum(), is_closer.abs().sum(), common, energy])

"""Numbers that differ for other rows, so that no study goes on with those of another one."""

import zlib
from collections.abc import Sequence
from itertools import chain

from regaug.augment.limits import code_labels, join_masks
from regaug.data.base import Mask, Part, Split
from regaug.data.several import digest_inputs, in_memory
from regaug.samplers.base import PairsWithin

_SOME_ROWS = 1024  # that are looked at in one go


def digest_splits(
    splits: Sequence[Split],
    others: Sequence[Part],
    pairs_within: PairsWithin | None,
    mask: Mask | None,
) -> int:
    """Return a checksum of splits and other parts, and of groups and masks where they matter.

    Inputs that are not in memory are known by their shape and the rows that they belong to: reading
    them all takes too long.
    """
    digest = 0
    for part in chain(*(split.parts.values() for split in splits), others):
        digest = digest_inputs(part.x, digest_inputs(part.y, digest))
        if in_memory(part.x) is None:
            digest = zlib.crc32(part.rows.tobytes(), digest)
        if pairs_within is not None and part.groups is not None:
            digest = digest_inputs(code_labels(part.groups), digest)
        if mask is not None:
            for start in range(0, len(part), _SOME_ROWS):
                x = part.x[start : start + _SOME_ROWS]
                digest = digest_inputs(join_masks(x, mask(x)), digest)
        if part.relevances is not None:
            digest = zlib.crc32(part.relevances.tobytes(), digest)
    return digest

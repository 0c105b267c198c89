"""What the rows of a study are called, for those who do not know their short names."""

from collections.abc import Sequence

from regaug.ensemble.contents import AUTO, NETS
from regaug.methods import NO_ROWS
from regaug.studies.config import REFERENCE
from regaug.studies.statistics import Row

# The rows that are made of others: all nets of a study, and these with the baselines.
COMBINED_NAMES = {NETS: "the ensemble of all nets", AUTO: "the blend of nets and baselines"}
BASELINE_NAMES = {
    "mean": "the mean",
    "last-value": "the last value",
    "ridge": "ridge regression",
    "boosting": "gradient boosting",
    "trees": "extremely randomized trees",
    "gp": "a Gaussian process",
}


def full_name(row: Row, reference: str) -> str:
    """Return what a row is, for those who do not know its short name."""
    if row.name == reference:
        return reference_name(reference)
    if row.is_combined:
        return COMBINED_NAMES.get(row.name, row.name)
    return BASELINE_NAMES.get(row.name, row.name) if row.is_baseline else row.name


def reference_name(reference: str) -> str:
    """Return what the others are compared with."""
    return {REFERENCE: "plain training", NO_ROWS: "no new rows"}.get(reference, reference)


def every_net(reference: str) -> str:
    """Return what a baseline beats, if it beats all that is compared with it."""
    return "the regressor with any rows" if reference == NO_ROWS else "every net"


def listed(names: Sequence[str], *, most: int = 4) -> str:
    """Return names as a list in words; of very many only the first.

    Example:
        >>> listed(["ridge", "erm", "foma"]), listed(["a", "b", "c", "d", "e"])
        ('ridge, erm and foma', 'a, b, c and 2 others')
    """
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

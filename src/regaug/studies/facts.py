"""What is known of a study's data: kept beside its runs, so that a report needs nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

import torch
from torch import Tensor

from regaug._checks import check_choice, check_range
from regaug._files import read_optional, write_json
from regaug._version import __version__
from regaug.data.base import Split
from regaug.data.duplicates import as_bytes
from regaug.exceptions import ArgumentError
from regaug.studies.geometry import Geometry

ABOUT = "about.json"
FORMAT = 1
# More rows change neither picture, and a study must not wait for them.
MOST_ROWS = 5_000
# What learns: the net for tables, or one of the problem's own.
Learner = Literal["table", "network"]


@dataclass(frozen=True, kw_only=True)
class Latent(Geometry):
    """How what a layer of a trained net puts out lies in space.

    Attributes:
        place: The name of the layer.
        run: The key of the run whose net it was.
    """

    place: str
    run: str


@dataclass(frozen=True, kw_only=True)
class Facts(Geometry):
    """What is known of the data of a study, as plain values; how its training rows lie in space.

    Attributes:
        summary: What was done to the columns, in words.
        rows: Numbers of rows by part: ``"train"``, ``"validation"``, ``"test"``.
        shared_rows: Test rows that stand among the training or validation rows as well, inputs and
            targets alike.
        given: How the user named the data, for commands to copy: ``source``, and for a file
            ``target``, ``group``, ``time``, ``drop``, ``encoding``; empty if that is not known.
        leaks: Inputs that give the target away, a sentence each.
        kind: ``"table"`` for the net for tables, ``"network"`` for one of the problem's own.
        places: Layers of the network that methods may act at, the first one by default.
        latent: How the rows lie at the first of these, in a trained net; None if that is unknown.
    """

    summary: str
    rows: Mapping[str, int]
    shared_rows: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)
    leaks: tuple[str, ...] = ()
    kind: Learner = "table"
    places: tuple[str, ...] = ()
    latent: Latent | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the facts that :meth:`to_dict` wrote down."""
        try:
            latent = values.get("latent")
            return cls.read(
                values,
                summary=str(values["summary"]),
                rows={part: int(values["rows"][part]) for part in ("train", "validation", "test")},
                shared_rows=int(values.get("shared_rows", 0)),  # earlier files do not say it
                given=_read_given(values["given"]),
                leaks=tuple(map(str, values.get("leaks", ()))),  # nor this
                kind=check_choice("kind", values.get("kind", "table"), get_args(Learner)),
                places=tuple(map(str, values.get("places", ()))),
                latent=None
                if latent is None
                else Latent.read(latent, place=str(latent["place"]), run=str(latent["run"])),
            )
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                "`values` must be what Facts.to_dict() returns, got something else: "
                f"{type(error).__name__}: {error}."
            ) from error


def describe(
    split: Split,
    summary: str,
    *,
    given: Mapping[str, Any] | None = None,
    leaks: Sequence[str] = (),
    rho: float = 0.9,
) -> Facts:
    """Find out what a report says of a table.

    Only training rows are looked at, but for counting the test rows that are among the others.
    ``rho`` is the share of the sum of singular values that is marked, in [0, 1].

    Example:
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> facts = describe(make_manifold("sine", n=200).split(), "1 number column")
        >>> facts.rows, facts.n_values, facts.k
        ({'train': 120, 'validation': 40, 'test': 40}, 2, 1)
    """
    rho = check_range("rho", rho, 0.0, 1.0)
    train, rows = split.train, some_rows(len(split.train), MOST_ROWS)
    found = Geometry.of(torch.as_tensor(train.x[rows]).flatten(1), train.y[rows], rho)
    return Facts(
        **vars(found),
        summary=summary,
        rows=count_rows(split),
        shared_rows=count_shared(split),
        given=_read_given(given or {}),
        leaks=tuple(leaks),
    )


def write_facts(folder: str | Path, facts: Facts) -> Path:
    """Write the facts into the folder of a store; the file is whole or as it was."""
    path = Path(folder, ABOUT)
    # Several processes may start one study at once; the last one's file stays, and all are equal.
    write_json(path, {"format": FORMAT, "regaug": __version__, **facts.to_dict()})
    return path


def read_facts(folder: str | Path) -> Facts | None:
    """Read the facts from the folder of a store; None if it has none."""
    without = (
        "the report leaves out what it says of the data; the command that started the study writes "
        "it again"
    )
    return read_optional(Path(folder, ABOUT), FORMAT, Facts.from_dict, without=without)


def some_rows(n: int, most: int) -> Tensor:
    """Return the numbers of all ``n`` rows, or of ``most`` of them that lie evenly."""
    if n <= most:
        return torch.arange(n)
    return torch.linspace(0, n - 1, most, dtype=torch.float64).long()


def count_rows(split: Split) -> dict[str, int]:
    """Return how many rows the three parts of a split have."""
    return {name: len(split.parts[name]) for name in ("train", "validation", "test")}


def count_shared(split: Split) -> int:
    """Count the test rows that are equal to a training or validation row in every number."""
    seen = {row for part in (split.train, split.validation) for row in as_bytes(part)}
    return sum(row in seen for row in as_bytes(split.test))


def _read_given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known entries that are not empty: texts, and lists of texts."""
    given: dict[str, Any] = {
        name: str(values[name])
        for name in ("source", "group", "time", "encoding")
        if values.get(name)
    }
    for name in ("target", "drop"):
        if value := values.get(name):
            given[name] = [value] if isinstance(value, str) else [str(item) for item in value]
    return given

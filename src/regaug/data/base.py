"""What every data set gives: its facts, and a split into three parts that are ready to index."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from regaug._checks import check_choice, check_integer

Task = Literal["table", "series", "image", "pair", "video"]
Rules = Literal["tuned", "paper"]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Info:
    """The facts about a data set.

    Attributes:
        name: The name that ``load`` takes.
        task: What a sample is: a row of a table, a window of a series, an image, a pair, a video.
        metric: ``"rmse"`` or ``"pearson"``: what the paper reports.
        split: How it is split, in a sentence.
        groups: What a group is, where whole groups are held out; None otherwise.
        license: License of the data, or that none is stated.
        citation: Whom to cite.
        origin: Where it comes from.
    """

    name: str
    task: Task
    metric: str
    split: str
    groups: str | None = None
    license: str = "not stated"
    citation: str = ""
    origin: str = ""


class Inputs(Protocol):
    """Inputs that are read when they are asked for, sample by sample."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape as if they were all in memory, ``(n, *features)``."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> Tensor:
        """Return one sample for an int, a stack of samples for a slice or several indices."""


@dataclass(frozen=True, eq=False)
class Part(Dataset[tuple[Tensor, Tensor]]):
    """Some samples of a data set; a map-style ``torch.utils.data.Dataset``.

    Attributes:
        x: Inputs ``(n, *features)``: a float32 tensor, or read when asked for.
        y: Targets ``(n, m)``, float32.
        rows: Their places in the whole data set.
        groups: Group of every sample, where there are groups.
    """

    x: Tensor | Inputs
    y: Tensor
    rows: Rows
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


@dataclass(frozen=True, eq=False)
class Split:
    """Three parts that share no sample: to train, to choose, to report.

    Attributes:
        train: Everything that is fitted is fitted on these rows.
        validation: Settings and the best epoch are chosen on these.
        test: Errors are reported on these.
        more: Further parts that some data sets have, by name.
    """

    train: Part
    validation: Part
    test: Part
    more: Mapping[str, Part] = field(default_factory=dict)


class Data:
    """A data set: facts, length, and splits. ``load`` and ``read_table`` return one."""

    info: Info

    def __len__(self) -> int:
        raise NotImplementedError

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split the samples in three.

        Args:
            seed: Which of the possible splits; without effect where the rule leaves no choice.
            protocol: ``"tuned"``: values as they are; what must be fitted (imputation, encoding,
                the divisors of a series) is fitted on training rows. ``"paper"``: the preprocessing
                of the paper's scripts, which looks at all rows (min-max scaling, column means).
        """
        raise NotImplementedError


def as_float(array: Any) -> Tensor:
    """Return an array as a float32 tensor that owns its memory."""
    return torch.from_numpy(np.array(array, dtype=np.float32))


def check_split(seed: int, protocol: Rules) -> int:
    """Return the seed of a split if it and the protocol can be used."""
    check_choice("protocol", protocol, ("tuned", "paper"))
    return check_integer("seed", seed, 0)

"""What every data set gives: its facts, and a split into three parts that are ready to index."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.utils.data import Dataset

from regaug import _random
from regaug._checks import check_choice, check_integer
from regaug.data.lazy import Inputs
from regaug.data.samples import MOST_BYTES, Get, Samples
from regaug.data.several import as_inputs, take_inputs
from regaug.exceptions import ArgumentError
from regaug.metrics import MetricName
from regaug.samplers.base import PairsWithin, check_pairs_within

Task = Literal["table", "series", "image", "pair", "video"]
Rules = Literal["tuned", "paper"]
Rows = NDArray[np.int64]
Mask = Callable[[Any], Any]

THREE = ("train", "validation", "test")
_TENSORS = ("x", "y", "unscaled")  # of a part, if they are in memory


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
        samples: How many samples there are, in words.
    """

    name: str
    task: Task
    metric: MetricName
    split: str
    groups: str | None = None
    license: str = "not stated"
    citation: str = ""
    origin: str = ""
    samples: str = ""


@dataclass(frozen=True, eq=False)
class Part(Dataset[tuple[Tensor, Tensor]]):
    """Some samples of a data set; a map-style ``torch.utils.data.Dataset``.

    Attributes:
        x: Inputs ``(n, *features)``: a float32 tensor, or read when asked for. Whole numbers are
            codes, such as token ids. Several tensors come in a tuple, a list or a dict, and are
            kept as a :class:`regaug.data.several.Several`.
        y: Targets ``(n, m)``, float32; given as ``(n,)`` they become one column, given as windows
            ``(n, steps, columns)`` they become a column for each of their values.
        rows: Their places in the whole data set.
        groups: Group of every sample, where there are groups.
        unscaled: The inputs as they were before they got a scale, where a mask looks at them.
        relevances: How much the target of every sample matters, from 0 to 1, where that is said.
    """

    x: Tensor | Inputs
    y: Tensor
    rows: Rows
    groups: NDArray[np.generic] | None = None
    unscaled: Tensor | Inputs | None = field(default=None, kw_only=True)
    relevances: NDArray[np.float64] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", as_inputs(self.x))
        if self.y.ndim == 1:
            object.__setattr__(self, "y", self.y[:, None])
        elif self.y.ndim > 2:
            object.__setattr__(self, "y", self.y.flatten(1))

    @classmethod
    def of(
        cls,
        dataset: Any,
        *,
        inputs: Get | None = None,
        targets: Get | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Read a data set of your own: every sample once, and all of them are checked.

        Inputs that take at most 256 MB are kept in memory, so a data set that gives other inputs
        whenever it is asked gives those of its first reading; larger ones are read again whenever
        they are needed.

        Args:
            dataset: A map-style data set of ``(x, y)``, or the pair of all ``x`` and all ``y``.
                ``x`` is a tensor of any shape, or several in a tuple, a list or a dict; ``y`` holds
                floating-point numbers, those of a window in one row.
            inputs: From a sample to ``x``, if samples are not ``(x, y)``.
            targets: From a sample to ``y`` likewise.
            groups: Group of every sample, ``(n,)``, if there are groups.

        Example:
            >>> samples = [{"x": torch.ones(3) * i, "price": i / 2} for i in range(4)]
            >>> get = {"inputs": lambda own: own["x"], "targets": lambda own: own["price"]}
            >>> part = Part.of(samples, **get)
            >>> part.x.shape, part.y.tolist()
            (torch.Size([4, 3]), [[0.0], [0.5], [1.0], [1.5]])
        """
        samples = Samples(dataset, inputs=inputs, targets=targets)
        x, y = samples.read(lazily=samples.size > MOST_BYTES)
        return cls(x, y, np.arange(len(y)), check_groups(groups, len(y)))

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]

    def __getstate__(self) -> dict[str, object]:
        # Tensors would travel between processes through shared files; arrays travel as they are.
        own = {name: getattr(self, name) for name in _TENSORS}
        tensors = {name: v.numpy() for name, v in own.items() if isinstance(v, Tensor)}
        return {**vars(self), **tensors}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            is_tensor = name in _TENSORS and isinstance(value, np.ndarray)
            object.__setattr__(self, name, torch.from_numpy(value) if is_tensor else value)

    def take(self, rows: Rows | NDArray[np.bool_] | Sequence[int] | slice) -> Self:
        """Return some of the samples, with their groups and their places in the whole data set.

        Args:
            rows: Numbers of samples in this part, in the order wanted; or a flag for every sample,
                or a slice. Inputs that are read when they are asked for stay so.

        Example:
            >>> part = Part(torch.arange(8.0).reshape(4, 2), torch.ones(4, 1), np.arange(10, 14))
            >>> some = part.take([3, 0])
            >>> some.x.tolist(), some.rows.tolist()
            ([[6.0, 7.0], [0.0, 1.0]], [13, 10])
        """
        chosen = np.arange(len(self))[rows]
        return replace(
            self,
            x=take_inputs(self.x, chosen),
            y=self.y[chosen],
            rows=self.rows[chosen],
            groups=None if self.groups is None else self.groups[chosen],
            unscaled=None if self.unscaled is None else take_inputs(self.unscaled, chosen),
            relevances=None if self.relevances is None else self.relevances[chosen],
        )


# A part, or a data set or a pair of tensors that becomes one.
AnyPart: TypeAlias = "Part | Dataset[Any] | Sequence[Any]"


@dataclass(frozen=True, eq=False)
class Split:
    """Three parts that share no sample: to train, to choose, to report.

    The parts of a split that is given to a :class:`regaug.Problem` may be data sets of your own,
    or pairs ``(x, y)`` of tensors: see :meth:`Part.of`, which the problem calls.

    Attributes:
        train: Everything that is fitted is fitted on these rows.
        validation: Settings and the best epoch are chosen on these.
        test: Errors are reported on these.
        more: Further parts that some data sets have, by name.
        pooled: Whether several targets are one quantity in one unit, whose errors count together,
            as in the paper's tables. Otherwise every target counts alike, whatever its unit.
        pairs_within: ``"group"`` if samples of different groups must not be mixed in training.
        mask: From a batch of inputs, in their own units, to flags that are True where a value is
            there: they can be broadcast to it, or have its leading axes only. What is not there
            is not mixed, and has no scale. None if all values are there.
        blocks: A number for every column of the inputs, equal ones for columns that belong
            together, such as those of a category. None if every column stands for itself.
    """

    train: Part
    validation: Part
    test: Part
    more: Mapping[str, Part] = field(default_factory=dict)
    pooled: bool = field(default=False, kw_only=True)
    pairs_within: PairsWithin | None = field(default=None, kw_only=True)
    mask: Mask | None = field(default=None, kw_only=True)
    blocks: tuple[int, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        groups = getattr(self.train, "groups", None)
        check_pairs_within(self.pairs_within, has_groups=groups is not None)
        x = getattr(self.train, "x", None)
        if self.blocks is not None and isinstance(x, Tensor):
            columns = x.shape[1:].numel()
            if len(self.blocks) != columns:
                raise ArgumentError(
                    f"`blocks` must have a number for each of the {columns} columns of the inputs, "
                    f"got {len(self.blocks)}."
                )

    if TYPE_CHECKING:  # what a problem makes parts of is welcome too

        def __init__(
            self,
            train: AnyPart,
            validation: AnyPart,
            test: AnyPart,
            more: Mapping[str, AnyPart] = ...,
            *,
            pooled: bool = False,
            pairs_within: PairsWithin | None = None,
            mask: Mask | None = None,
            blocks: tuple[int, ...] | None = None,
        ) -> None: ...

    @property
    def has_categories(self) -> bool:
        """Whether columns of the inputs belong together."""
        return self.blocks is not None and len(set(self.blocks)) < len(self.blocks)

    @property
    def parts(self) -> dict[str, Part]:
        """All parts by name: ``"train"``, ``"validation"``, ``"test"``, then the further ones."""
        three = {"train": self.train, "validation": self.validation, "test": self.test}
        return {**three, **self.more}

    def subsample(self, n: int, *, seed: int = 0) -> Self:
        """Return a split of the same form with fewer rows, drawn at random.

        Args:
            n: Rows of training, validation and test together, at most; at least 3. Each part keeps
                its share of them, and one row at least; further parts shrink as much.
            seed: Which of the rows.

        Returns:
            This split if it has no more than ``n`` rows. Rows keep their order and their groups.

        Example:
            >>> from regaug.data import load
            >>> split = load("diabetes").split(seed=0).subsample(100, seed=0)
            >>> [len(part) for part in split.parts.values()]
            [59, 20, 19]
        """
        parts, n = self.parts, check_integer("n", n, 3)
        total = sum(len(parts[name]) for name in THREE)
        if total <= n:
            return self
        shares = {name: max(1, len(part) * n // total) for name, part in parts.items()}
        sizes = {name: min(len(part), shares[name]) for name, part in parts.items()}
        # One row at least of two tiny parts may be one too many.
        largest = max(THREE, key=lambda name: sizes[name])
        sizes[largest] -= max(0, sum(sizes[name] for name in THREE) - n)
        rng = _random.numpy_generator(_random.Stream.SUBSAMPLE, check_integer("seed", seed, 0))
        few = {
            name: part.take(np.sort(rng.permutation(len(part))[: sizes[name]]))
            for name, part in parts.items()
        }
        train, validation, test = (few.pop(name) for name in THREE)
        return replace(self, train=train, validation=validation, test=test, more=few)


class Data:
    """A data set: facts, length, and splits. ``load`` and ``read_table`` return one."""

    info: Info
    y: NDArray[np.float64]  # targets (n, m), of those data sets that hold them in memory
    groups: NDArray[np.generic] | None = None
    relevances: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split the samples in three.

        Args:
            seed: Which of the possible splits; without effect where the rule leaves no choice.
            protocol: ``"tuned"``: values as they are; what must be fitted (imputation, encoding,
                the divisors of a series) is fitted on training rows. ``"paper"``: the preprocessing
                of the paper's scripts, which looks at all rows (min-max scaling, column means).
        """
        raise NotImplementedError

    def _samples(self, x: Tensor | Inputs, rows: Rows) -> Part:
        """Return the part that these rows are, whose inputs are ``x``."""
        groups = None if self.groups is None else self.groups[rows]
        own = None if self.relevances is None else self.relevances[rows]
        return Part(x, as_float(self.y[rows]), rows, groups, relevances=own)


def as_float(array: ArrayLike) -> Tensor:
    """Return an array as a float32 tensor that owns its memory."""
    return torch.from_numpy(np.array(array, dtype=np.float32))


def check_groups(groups: ArrayLike | None, n: int) -> NDArray[np.generic] | None:
    """Return the group of every one of ``n`` samples; None if there are no groups."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ArgumentError(
            f"`groups` must be ({n},), a label for every sample, got shape {labels.shape}."
        )
    return labels


def check_split(seed: int, protocol: Rules) -> int:
    """Return the seed of a split if it and the protocol can be used."""
    check_choice("protocol", protocol, ("tuned", "paper"))
    return check_integer("seed", seed, 0)

"""What is to be learned and how it is judged: splits, a network and a metric."""

import ast
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from inspect import Parameter, getsource, signature
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal, Self, cast, overload

from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_choice, check_integer
from regaug._scripts import ImportedScripts, blaming, find_in_script, part_source
from regaug.data import info, load
from regaug.data.base import Data, Split
from regaug.data.scaling import StandardizedSplit, standardize
from regaug.data.splits import SplitRule
from regaug.data.tabular.table import Table
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.metrics import METRICS, MetricName
from regaug.models import MLP, DeepDTA, LSTNet, R2Plus1D18, ResNet18
from regaug.models.mlp import NetForm
from regaug.training.recipe import HIDDEN

MakeNet = Callable[..., nn.Module]
Kind = Literal["table", "network"]

# What a problem is called that nobody has given a name, and a study in a file.
UNNAMED, IN_FILE = "splits", "problem"

# A study of more rows than that looks at so many of them.
MOST_ROWS = 12_000
# Seconds that a step of a table net takes in a stack, and that a row takes for each of its weights.
_STEP, _WEIGHT = 3e-5, 4e-10


class LoadedSplits(Sequence[Split]):
    """Splits that are made when they are asked for, wherever that is.

    A worker process gets the recipe, not the rows: images and long series are read where they are
    used. The last two stay in memory.

    Args:
        make: From the number of a split to the split; it must be possible to send it to another
            process.
        count: How many there are.
    """

    def __init__(self, make: Callable[[int], Split], count: int) -> None:
        self._make, self._count = make, check_integer("count", count, 1)
        self._get = lru_cache(maxsize=2)(make)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Split: ...
    @overload
    def __getitem__(self, index: slice) -> list[Split]: ...
    def __getitem__(self, index: int | slice) -> Split | list[Split]:
        if isinstance(index, slice):
            return [self[i] for i in range(self._count)[index]]
        return self._get(range(self._count)[index])

    def __reduce__(self) -> tuple[type[Self], tuple[Callable[[int], Split], int]]:
        return type(self), (self._make, self._count)


@dataclass(frozen=True)
class Cost:
    """About what an epoch takes on one core, in seconds.

    Attributes:
        step: For each step of the optimizer.
        sample: For each training sample.
    """

    step: float = 3.3e-4
    sample: float = 0.0

    @classmethod
    def of_table(cls, columns: int, targets: int, hidden: Sequence[int] = HIDDEN) -> Self:
        """Return what the net of a table takes, trained beside others."""
        periodic = tuple(range(columns))
        return cls(_STEP, _WEIGHT * NetForm(columns, targets, tuple(hidden), 0.1, periodic).size)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learned and how it is judged: splits + network + metric.

    Attributes:
        splits: Training, validation and test rows, several times, in the target's own units.
        model: Makes a fresh network for a split, ``make_net(split)``; it is told the ``seed`` too
            if it has such an argument. None is the net for tables, many of which train at once.
        metric: The error that chooses and is compared.
        places: Names of layers at which methods that act at a layer do so; those that the network
            itself names if None.
        name: What it is called, in files too.
        targets: Names of the targets; numbered ones if there are none.
        is_scaled: Whether the splits are to be trained on as they are; otherwise inputs and targets
            are standardized first.
        independent: Whether the splits have no rows in common, as draws of a simulation do.
        hidden: Widths of the hidden layers of the table net.
        notes: What a reader should know, in sentences.
        cost: About what an epoch takes.
        source: How a command names it: ``/path/study.py:problem``, or a data set; empty if it
            cannot.

    Example:
        >>> import regaug
        >>> data = regaug.data.load("synthetic-sine", n=100)
        >>> problem = Problem.from_table(data, splits=3)
        >>> len(problem.splits), problem.metric, problem.is_stacked
        (3, 'rmse', True)
    """

    splits: Sequence[Split]
    model: MakeNet | None = None
    metric: MetricName = "rmse"
    places: Sequence[str] | None = None
    name: str = UNNAMED
    targets: Sequence[str] = field(default=(), kw_only=True)
    is_scaled: bool = field(default=False, kw_only=True)
    independent: bool = field(default=False, kw_only=True)
    hidden: Sequence[int] = field(default=HIDDEN, kw_only=True)
    notes: Sequence[str] = field(default=(), kw_only=True)
    cost: Cost = field(default=Cost(), kw_only=True)
    source: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        check_choice("metric", self.metric, tuple(METRICS))
        if isinstance(self.splits, LoadedSplits):  # looking at them would read them all
            return
        if not isinstance(self.splits, Sequence) or not self.splits:
            raise ArgumentTypeError(
                f"`splits` must be a list of splits, got {type(self.splits).__name__}. Make them "
                "with data.split(seed)."
            )
        for split in self.splits:
            if not isinstance(split, Split):
                raise ArgumentTypeError(
                    f"`splits` must be a list of splits, got {type(split).__name__} in it. Make "
                    "them with data.split(seed)."
                )
            if self.model is None and not isinstance(split.train.x, Tensor):
                raise ArgumentError(
                    "`splits` must have their inputs in memory for the table net, as tables do. "
                    "Give a network of your own: Problem(splits, model=make_net)."
                )
            if isinstance(split, StandardizedSplit) and not self.is_scaled:
                raise ArgumentError(
                    "`splits` must be in the target's own units, got standardized ones. A study "
                    "scales them itself: give data.split(seed). Those of a series are scaled; say "
                    "is_scaled=True to train on them as they are."
                )

    @classmethod
    def from_table(
        cls,
        data: Data,
        *,
        splits: int = 10,
        split: SplitRule | None = None,
        metric: MetricName = "rmse",
        seed: int = 0,
        most_rows: int = MOST_ROWS,
    ) -> Self:
        """Make the problem of a table: the table net on repeated splits of its rows.

        Args:
            data: ``regaug.data.read_table(...)``, or a named data set of that kind.
            splits: How many splits.
            split: How a table of your own is split: ``"random"``, ``"group"`` or ``"time"``; by its
                groups or times by default, if it has such a column.
            metric: The error that chooses and is compared.
            seed: Which of the possible splits.
            most_rows: Look at so many rows if there are more.
        """
        if not isinstance(data, Data):
            raise ArgumentTypeError(
                "`data` must be a table (regaug.data.read_table, regaug.data.load), got "
                f"{type(data).__name__}."
            )
        if data.info.task != "table":
            raise ArgumentError(
                f"`data` must be a table, got {data.info.name}, "
                f"{'an' if data.info.task == 'image' else 'a'} {data.info.task} data set. "
                f"Take Problem.named({data.info.name!r}), which has a network for it."
            )
        if split is not None and not isinstance(data, Table):
            raise ArgumentError(
                f"`split` must be None for data that knows how it is split, got {split!r}."
            )
        check_integer("splits", splits, 1)
        check_integer("seed", seed, 0)
        divide = data.split if split is None else partial(cast(Table, data).split, split=split)
        numbers = [_random.derive(_random.Stream.SPLITS, seed, i) for i in range(splits)]
        parts: list[Split] = [divide(number % 2**31) for number in numbers]
        notes = []
        if splits > 1 and len({part.test.rows.tobytes() for part in parts}) == 1:
            parts = parts[:1]
            notes.append("This data has one split only, so nothing can be said of certainty.")
        total = sum(len(part) for part in parts[0].parts.values())
        if total > check_integer("most_rows", most_rows, 1):
            notes.append(f"The study looks at {most_rows:,} of the {total:,} rows.")
            parts = [part.subsample(most_rows, seed=seed) for part in parts]
        # The three parts and nothing else: what a worker needs.
        whole = [Split(part.train, part.validation, part.test) for part in parts]
        columns, targets = whole[0].train.x[0].numel(), whole[0].train.y.shape[1]
        cost, names = Cost.of_table(columns, targets), getattr(data, "targets", ())
        return cls(whole, None, metric, name=data.info.name, targets=names, notes=notes, cost=cost)

    @classmethod
    def named(cls, name: str, *, splits: int = 10, metric: MetricName | None = None) -> Self:
        """Make the problem of a named data set: with the network that the paper has for it.

        Args:
            name: One of ``regaug.data.NAMES``.
            splits: How many splits. Where the rule leaves one only, they are repetitions that
                differ in their seeds.
            metric: The error that chooses and is compared; the paper's by default.

        Example:
            >>> Problem.named("synthetic-sine", splits=2).name
            'synthetic-sine'
        """
        facts = info(name)
        metric = facts.metric if metric is None else metric
        if facts.task == "table":
            return cls.from_table(load(name), splits=splits, metric=metric)
        made = LoadedSplits(partial(_split_named, name), splits)
        return cls(made, NETWORKS[facts.task], metric, name=name, source=name)

    @classmethod
    def from_file(cls, source: str | Path) -> "Problem":
        """Get the problem that a Python file of your own defines, as ``regaug compare`` does.

        Args:
            source: The file, and after a colon the name of a problem in it, or of a function that
                returns one and takes no arguments: ``"study.py:make_problem"``. The name is
                ``problem`` if it is left out. What lies beside the file can be imported by it.

        Raises:
            UnknownNameError: There is no such file, or nothing in it that is called so.
            ScriptError: The file itself fails; the error shows the line.
        """
        path, name = part_source(str(source))
        name = name or IN_FILE
        found = find_in_script(path, name)
        file = Path(path).expanduser()
        what = f"`{name}` of {file.name} must"
        if callable(found) and not isinstance(found, type):
            needed = [own.name for own in signature(found).parameters.values() if _is_needed(own)]
            if needed:
                raise ArgumentTypeError(
                    f"{what} be called without arguments, got a function that needs "
                    f"{', '.join(needed)}. Give them defaults, or write a function that calls it."
                )
            with blaming():
                found = found()
            what += " return"
        else:
            what += " be"
        if not isinstance(found, Problem):
            came = found.__name__ if isinstance(found, type) else type(found).__name__
            raise ArgumentTypeError(f"{what} a regaug.Problem, got {came}.")
        own = file.stem if name == IN_FILE else f"{file.stem}-{name}"
        called = own if found.name == UNNAMED else found.name
        return replace(found, name=called, source=f"{file.resolve()}:{name}")

    @property
    def kind(self) -> Kind:
        """What learns: the net for a ``"table"``, or a ``"network"`` of one's own."""
        return "table" if self.model is None else "network"

    @property
    def is_stacked(self) -> bool:
        """Whether runs of it train side by side: those of the table net do."""
        return self.model is None

    def split(self, number: int, *, log: bool = False) -> Split:
        """Return a split as it is trained on: standardized, unless it is scaled already."""
        split = self.splits[number]
        return split if self.is_scaled else standardize(split, log=log)

    def make_net(self, split: Split, seed: int) -> nn.Module:
        """Make a fresh network for a split; what torch draws for it depends on the seed."""
        if self.model is None:
            inputs, outputs = split.train.x[0].numel(), split.train.y.shape[1]
            return MLP(inputs, outputs, hidden=self.hidden, seed=seed)
        knows_seed = "seed" in signature(self.model).parameters
        with _random.seeded(seed):
            net = self.model(split, seed=seed) if knows_seed else self.model(split)
        if not isinstance(net, nn.Module):
            raise ArgumentTypeError(
                f"`model` must return a torch.nn.Module, got {type(net).__name__}."
            )
        if self.places is not None:
            net.places = tuple(self.places)  # type: ignore[assignment]
        return net

    def checksum(self) -> str:
        """Return eight digits that differ for other rows.

        Inputs that are not in memory are known by their shape and the rows that they belong to:
        reading them all takes too long.
        """
        digest = 0
        for split in self.splits:
            for part in split.parts.values():
                digest = zlib.crc32(part.y.contiguous().numpy().tobytes(), digest)
                if isinstance(part.x, Tensor):
                    inputs = part.x.contiguous().numpy().tobytes()
                else:
                    inputs = f"{tuple(part.x.shape)}".encode() + part.rows.tobytes()
                digest = zlib.crc32(inputs, digest)
        return f"{digest:08x}"

    def network_key(self) -> str:
        """Return eight digits that differ for another network; empty for the net for tables.

        They come from the layers of a net and from the code, comments aside, of its class and of
        what makes it. Code elsewhere that these call may change unnoticed.
        """
        if self.kind != "network":
            return ""
        net = self.make_net(self.split(0), 0)
        # What has no better words for itself says where in memory it is.
        layers = re.sub(r"\b0x[0-9a-fA-F]+", "", repr(net))
        words = [layers, _code_of(type(net)), _code_of(self.model)]
        return f"{zlib.crc32(chr(10).join(words).encode()):08x}"

    def __reduce__(self) -> tuple[Callable[..., "Problem"], tuple[object, ...]]:
        # The files come first, as what follows may be defined in them.
        return _restored, (ImportedScripts(), type(self), vars(self))


def _restored(scripts: ImportedScripts, kind: type[Problem], state: dict[str, Any]) -> Problem:
    problem = object.__new__(kind)
    vars(problem).update(state)
    return problem


def _code_of(thing: Any) -> str:
    """Return the code of a class or a function of the user's own; empty if it is not at hand."""
    if str(getattr(thing, "__module__", "")).partition(".")[0] == "regaug":
        return ""
    try:
        return ast.dump(ast.parse(dedent(getsource(thing))))
    except (OSError, SyntaxError, TypeError):  # typed in, a part of a line, or not Python
        return ""


def _is_needed(parameter: Parameter) -> bool:
    """Tell whether a function cannot be called without this argument."""
    is_several = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return parameter.default is Parameter.empty and not is_several


def make_lstnet(split: Split, seed: int) -> nn.Module:
    """Make the net for a series, wide for one of many columns."""
    window, columns = split.train.x.shape[1:]
    hidden = 50 if columns < 100 else 100
    return LSTNet(columns, window=window, hidden_cnn=hidden, hidden_rnn=hidden, seed=seed)


def make_image_net(split: Split, seed: int) -> nn.Module:
    """Make the net for images."""
    return ResNet18(split.train.y.shape[1], channels=split.train.x.shape[1], seed=seed)


def make_pair_net(split: Split, seed: int) -> nn.Module:
    """Make the net for pairs of a drug and a protein, as in C-Mixup's scripts."""
    return DeepDTA(activation=None, seed=seed)


def make_video_net(split: Split, seed: int) -> nn.Module:
    """Make the net for videos."""
    return R2Plus1D18(split.train.y.shape[1], seed=seed)


# The paper's network for everything that is no table.
NETWORKS: dict[str, MakeNet] = {
    "series": make_lstnet,
    "image": make_image_net,
    "pair": make_pair_net,
    "video": make_video_net,
}


@cache
def _load_once(name: str) -> Data:
    return load(name)


def _split_named(name: str, number: int) -> Split:
    return _load_once(name).split(number)

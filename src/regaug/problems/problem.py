"""What is to be learned and how it is judged: splits, a network and a metric."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from torch import nn

from regaug._checks import check_choice, check_integer
from regaug._scripts import ImportedScripts, part_source
from regaug.augment.collate import Get as GetBatch
from regaug.augment.collate import Set as SetBatch
from regaug.data import info, load
from regaug.data.base import Data, Mask, Part, Split
from regaug.data.partition import read_splits
from regaug.data.samples import Get
from regaug.data.scaling import standardize
from regaug.data.splits import SplitRule
from regaug.exceptions import ArgumentError
from regaug.metrics import MetricName, Mode, check_metric
from regaug.models import MLP
from regaug.problems.checks import (
    check_functions,
    check_limits,
    check_list,
    check_model,
    check_places,
    check_regressor_options,
    check_rows,
    check_splits,
)
from regaug.problems.cost import Cost
from regaug.problems.digests import digest_splits
from regaug.problems.kinds import Kind, find_kind
from regaug.problems.networks import NETWORKS, MakeNet, digest_network, make_own_net
from regaug.problems.sequences import (
    LoadedSplits,
    RepeatedSplits,
    choose_splits,
    has_one_split,
    subsample_splits,
)
from regaug.problems.sources import (
    count_rows,
    divide_table,
    find_in_file,
    make_lightning,
    split_named,
    without_encoders,
)
from regaug.samplers.base import PairsWithin
from regaug.training.estimators import call_factory, is_regressor, name_model
from regaug.training.logged import LoggedTraining
from regaug.training.recipe import HIDDEN

# What a problem is called that nobody has given a name, and a study in a file.
UNNAMED, IN_FILE = "splits", "problem"


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learned and how it is judged: splits + network + metric.

    Attributes:
        splits: Training, validation and test rows, several times, in the target's own units. Parts
            of them may be map-style data sets of ``(x, y)``, or pairs of tensors: they are read
            once, now (:meth:`regaug.data.Part.of`).
        model: Makes a fresh network for a split, ``make_net(split)``; it is told the ``seed`` too
            if it has such an argument. None is the net for tables, many of which train at once.
            Or a regressor as those of scikit-learn, a function that makes one (``make(split)`` or
            ``make()``), or ``"ridge"``, ``"boosting"``, ``"trees"``, ``"gp"``: then methods make
            new training rows for it.
        metric: The error that chooses and is compared.
        places: Names of layers at which methods that act at a layer do so; those that the network
            itself names (``net.places``) if None. If there are none, methods act on inputs alone.
        name: What it is called, in files too.
        target_names: Names of the targets; numbered ones if there are none.
        inputs: From a sample of a data set to its inputs, if samples are not ``(x, y)``: a tensor,
            or tensors in a tuple, a list (the network is called ``net(*x)``) or a dict
            (``net(**x)``).
        targets: From a sample of a data set to its targets likewise.
        pairs_within: ``"group"`` if samples of different groups must not be mixed.
        mask: From a batch of inputs to flags, True where a value is there: see
            :class:`regaug.data.Split`.
        is_scaled: Whether the splits are to be trained on as they are; otherwise inputs and targets
            are standardized first.
        independent: Whether the splits have no rows in common, as draws of a simulation do.
        hidden: Widths of the hidden layers of the table net.
        notes: What a reader should know, in sentences.
        cost: About what an epoch takes.
        rows: For a regressor: training rows that were made elsewhere, a part for every split in
            the units of the split, or one for all of them.
        keep_integers: For a regressor: whether columns of whole numbers stay such in new rows.
        lightning: What trains in place of a network of ours: see :meth:`from_lightning`.
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
    model: MakeNet | Any = None
    metric: MetricName = "rmse"
    places: Sequence[str] | None = None
    name: str = UNNAMED
    target_names: Sequence[str] = field(default=(), kw_only=True)
    inputs: Get | None = field(default=None, kw_only=True)
    targets: Get | None = field(default=None, kw_only=True)
    pairs_within: PairsWithin | None = field(default=None, kw_only=True)
    mask: Mask | None = field(default=None, kw_only=True)
    is_scaled: bool = field(default=False, kw_only=True)
    independent: bool = field(default=False, kw_only=True)
    hidden: Sequence[int] = field(default=HIDDEN, kw_only=True)
    notes: Sequence[str] = field(default=(), kw_only=True)
    cost: Cost = field(default=Cost(), kw_only=True)
    rows: Sequence[Part] = field(default=(), kw_only=True)
    keep_integers: bool = field(default=False, kw_only=True)
    lightning: LoggedTraining | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        check_metric(self.metric)
        check_choice("pairs_within", self.pairs_within, (None, "group"))
        check_functions({"inputs": self.inputs, "targets": self.targets, "mask": self.mask})
        check_places(self.places)
        check_model(self.model)
        if isinstance(self.splits, LoadedSplits | RepeatedSplits):
            return  # looking at them would read them all, or one of them again and again
        check_list(self.splits)
        read = read_splits(self.splits, inputs=self.inputs, targets=self.targets)
        object.__setattr__(self, "splits", read)
        check_splits(read, is_for_table=self.model is None, is_scaled=self.is_scaled)
        check_limits(read, self.pairs_within, self.mask)
        options = {"rows": self.rows, "keep_integers": self.keep_integers}
        if any(options.values()) and self.kind != "estimator":
            check_regressor_options(options)
        check_rows(self.rows, self.splits)

    @classmethod
    def from_table(
        cls,
        data: Data,
        *,
        splits: int = 10,
        split: SplitRule | None = None,
        metric: MetricName = "rmse",
        seed: int = 0,
        most_rows: int | None = None,
        model: MakeNet | Any = None,
    ) -> Self:
        """Make the problem of a table: the table net on repeated splits of its rows.

        Args:
            data: ``regaug.data.read_table(...)``, or a named data set of that kind.
            splits: How many splits.
            split: How a table of your own is split: ``"random"``, ``"group"`` or ``"time"``; by its
                groups or times by default, if it has such a column.
            metric: The error that chooses and is compared.
            seed: Which of the possible splits.
            most_rows: Look at so many rows if there are more; by default at 12,000, and at fewer of
                a table with more than 33 columns: 8,000 if it has 50.
            model: A network of your own, or a regressor, in place of the table net.
        """
        parts, notes = divide_table(data, splits, split, seed=seed, most_rows=most_rows)
        columns, targets = parts[0].train.x[0].numel(), parts[0].train.y.shape[1]
        cost, names = Cost.of_table(columns, targets), getattr(data, "targets", ())
        if model is None:
            parts = [without_encoders(part) for part in parts]
        facts: dict[str, Any] = {"target_names": names, "notes": notes, "cost": cost}
        return cls(parts, model, metric, name=data.info.name, **facts)

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
        made = LoadedSplits(partial(split_named, name), splits)
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
        name, file = name or IN_FILE, Path(path).expanduser()
        found: Problem = find_in_file(path, name, Problem)
        own = file.stem if name == IN_FILE else f"{file.stem}-{name}"
        called = own if found.name == UNNAMED else found.name
        return replace(found, name=called, source=f"{file.resolve()}:{name}")

    @classmethod
    def from_lightning(
        cls,
        make_module: Callable[..., Any],
        make_datamodule: Callable[..., Any],
        *,
        monitor: str = "val_loss",
        mode: Mode = "min",
        test_metric: str | None = None,
        epochs: int = 20,
        splits: int = 5,
        places: Sequence[str] | None = None,
        get: GetBatch | None = None,
        set: SetBatch | None = None,
        trainer_options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Make the problem of a ``LightningModule`` and a ``LightningDataModule``.

        Their training step, optimizer and loaders are used by a ``lightning.Trainer``; a study adds
        :class:`regaug.integrations.lightning.AugmentCallback` and seeds, and reads what they log.
        Nothing is standardized: the batches are augmented as they are. The weights of the epoch
        with the best ``monitor`` are tested.

        Args:
            make_module: Makes a fresh module, ``make_module()``, under a seed; it is told the
                ``seed`` too if it has such an argument. A class will do.
            make_datamodule: Makes the data module, ``make_datamodule()``. If it has an argument
                ``split`` or ``seed``, that is the number of a split, and every one has other rows;
                otherwise the rows are always the same, and repetitions differ in their seeds.
            monitor: What validation logs and an epoch is chosen by.
            mode: ``"min"`` if lower values of it are better, ``"max"`` if higher ones are.
            test_metric: What the test logs and methods are compared by; by default ``monitor`` with
                ``test`` in place of ``val``. A module without a test step is validated on the test
                rows, and without a test loader the validation rows judge: the study says so.
            epochs: Epochs of every training, at most.
            splits: How many splits, or repetitions.
            places: Names of layers at which methods that act at a layer do so; those of
                ``module.places`` if None, and the inputs alone if there are none.
            get: ``get(batch)`` returns x and y of a batch that is not ``(x, y)``.
            set: ``set(batch, x, y)`` returns a new batch with these; goes with ``get``.
            trainer_options: Further arguments of the trainer, such as ``{"precision": "bf16"}``.
            name: What it is called; as ``make_module`` if None.
        """
        options = {
            "monitor": monitor,
            "mode": mode,
            "test_metric": test_metric,
            "epochs": epochs,
            "places": places,
            "get": get,
            "set": set,
            "trainer_options": trainer_options,
        }
        training = make_lightning(make_module, make_datamodule, options)
        made = LoadedSplits(partial(count_rows, training), splits)
        name = getattr(make_module, "__name__", "lightning") if name is None else name
        return cls(
            made,
            metric=training.metric,
            places=places,
            name=name,
            is_scaled=True,
            notes=training.notes,
            lightning=training,
        )

    def with_epochs(self, epochs: int) -> Self:
        """Return the problem of a Lightning module with another length of its trainings."""
        if self.lightning is None:
            raise ArgumentError(
                "`epochs` must be left to the settings of a run, but for Lightning."
            )
        training = copy(self.lightning)
        training.epochs = check_integer("epochs", epochs, 1)
        splits = LoadedSplits(partial(count_rows, training), len(self.splits))
        return replace(self, splits=splits, lightning=training)

    @cached_property
    def kind(self) -> Kind:
        """What is trained: the table net, a network of one's own, a regressor, Lightning's module.

        Whether a function makes a network or a regressor is found out by calling it.
        """
        return "lightning" if self.lightning is not None else find_kind(self.model, self.splits)

    @property
    def is_stacked(self) -> bool:
        """Whether runs of it train side by side: those of the table net do.

        Where some rows or values must not be mixed they do not.
        """
        return self.kind == "table" and self.pairs_within is None and self.mask is None

    @property
    def is_repeated(self) -> bool:
        """Whether its splits are one split, repeated with other seeds."""
        return isinstance(self.splits, RepeatedSplits)

    @cached_property
    def has_one_split(self) -> bool:
        """Whether all its splits have the same rows; of those that must be read two are."""
        return has_one_split(self.splits)

    def with_splits(self, count: int) -> Self:
        """Return the problem with so many splits: its first ones, or repetitions of its only one.

        Args:
            count: How many; at most as many as there are, unless there is only one.
        """
        return replace(self, splits=choose_splits(self.splits, count, is_one=self.has_one_split))

    def subsample(self, n: int, *, seed: int = 0) -> Self:
        """Return the problem with fewer rows in every split: see :meth:`regaug.data.Split`."""
        return replace(self, splits=subsample_splits(self.splits, n, seed))

    def split(self, number: int, *, log: bool = False) -> Split:
        """Return a split as it is trained on: standardized, unless it is scaled already."""
        split = self.splits[number]
        if self.pairs_within is not None:
            split = replace(split, pairs_within=self.pairs_within)
        if self.mask is not None:
            split = replace(split, mask=self.mask)
        return split if self.is_scaled else standardize(split, log=log)

    def make_net(self, split: Split, seed: int) -> nn.Module:
        """Make a fresh network for a split; what torch draws for it depends on the seed."""
        if self.lightning is not None:
            return self.lightning.make_net(0, seed)
        if self.model is None:
            inputs, outputs = split.train.x[0].numel(), split.train.y.shape[1]
            return MLP(inputs, outputs, hidden=self.hidden, seed=seed)
        return make_own_net(self.model, split, seed, self.places)

    def make_regressor(self, split: Split, seed: int) -> Any:
        """Return the regressor for a split, not fitted: an estimator, or the name of ours."""
        if isinstance(self.model, str) or is_regressor(self.model):
            return self.model
        return call_factory(self.model, split, seed)

    @property
    def model_name(self) -> str:
        """What a regressor is called, with what differs for other parameters; else empty."""
        if self.kind != "estimator":
            return ""
        return name_model(self.make_regressor(self.splits[0], 0))

    def rows_for(self, number: int) -> Part | None:
        """Return the rows from elsewhere for a split; None if there are none."""
        return self.rows[min(number, len(self.rows) - 1)] if self.rows else None

    def checksum(self) -> str:
        """Return eight digits that differ for other rows."""
        if self.lightning is not None:  # what its rows hold is not ours to know
            return f"{zlib.crc32(self.lightning.identity().encode()):08x}"
        splits = self.splits[:1] if self.is_repeated else self.splits
        return f"{digest_splits(splits, self.rows, self.pairs_within, self.mask):08x}"

    def network_key(self) -> str:
        """Return eight digits that differ for another network; empty for the net for tables.

        They come from the layers of a net and from the code, comments aside, of its class and of
        what makes it. Code elsewhere that these call may change unnoticed.
        """
        if self.kind != "network":
            return ""
        return digest_network(self.make_net(self.split(0), 0), self.model)

    def __reduce__(self) -> tuple[Callable[..., "Problem"], tuple[object, ...]]:
        # All samples have been read, and functions of the moment cannot be sent.
        state = {**vars(self), "inputs": None, "targets": None}
        # The files come first, as what follows may be defined in them.
        return _restored, (ImportedScripts(), type(self), state)


def _restored(_: ImportedScripts, kind: type[Problem], state: dict[str, Any]) -> Problem:
    problem = object.__new__(kind)
    vars(problem).update(state)
    return problem

"""TeacherRows: new inputs near the data, with targets that a teacher predicts."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_choice, check_finite, check_integer, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.base import AnyAugmentation, Augmentation
from regaug.augment.cems import CEMS
from regaug.augment.foma import FOMA
from regaug.augment.joint import Known, as_rows, row_keys
from regaug.augment.layer import AtLayer, check_is_input
from regaug.augment.limits import Labels, code_labels
from regaug.augment.mixup import Mixup
from regaug.augment.noise import GaussianNoise
from regaug.augment.numbers import Indices, Values
from regaug.augment.structures import Batch
from regaug.augment.teachers import TEACHERS, FoldTeachers, Regressor, TeacherName
from regaug.exceptions import ArgumentError, ArgumentTypeError, NotFittedError
from regaug.functional.precision import cast, working_dtype

RowsName = Literal["noise", "mixup", "foma", "cems"]
Rows: TypeAlias = RowsName | AnyAugmentation
ROWS: tuple[RowsName, ...] = ("noise", "mixup", "foma", "cems")
# Rows that a generator of new rows is given at a time, as in a training.
_BATCH = 32
# Numbers in the new rows that are kept, at most (64 MB): fewer for every training row, but one.
_MOST_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class TeacherParams:
    """What TeacherRows draws for a batch.

    Attributes:
        choice: Which of its new rows every row becomes, ``(n,)``; None leaves the batch as it is.
    """

    choice: Tensor | None


class TeacherRows(Augmentation[TeacherParams]):
    r"""Take new inputs near the data, with targets that a teacher predicts for them.

    :meth:`fit` deals the training rows into folds, equal inputs into the same one. From the rows of
    a fold alone another augmentation makes new inputs :math:`x'`, ``count`` of every row; what it
    makes of the targets is dropped. The teacher :math:`g_{-f}` has learned from all other folds, so
    it has seen nothing that its new rows are made from, and labels them:
    :math:`y' = g_{-f}(x')`. In a batch every row becomes one of its own new rows, drawn with equal
    probabilities; an input that is no training row moves as the nearest one does and gets its
    label.

    A teacher is worth its rows where it predicts better than the net does: always look at its own
    error too. Not for layers: a teacher knows inputs. ``p``, ``append``, ``anneal``,
    ``total_steps`` and ``generator`` are options of every :class:`Augmentation`. The initial seed
    of the generator is that of the new rows too; teachers and folds do not depend on it.

    Args:
        teacher: ``"boosting"``, ``"trees"`` (extremely randomized ones) or ``"gp"`` (a Gaussian
            process), with settings for some hundred rows; or any regressor with ``fit`` and
            ``predict`` as in scikit-learn, of which copies learn, one for each fold and target.
            They see standardized columns, inputs flat.
        rows: What makes the inputs: ``"noise"``, ``"mixup"``, ``"foma"`` or ``"cems"``; or an
            augmentation with settings of its own.
        sigma: Standard deviation of the noise, or of the steps of ``"cems"``, at least 0, in units
            of the data: scale inputs and targets to order one first.
        folds: Number of folds, at least 2; fewer if there are fewer different rows.
        count: New rows of every training row, at least 1; fewer if they would be more than 64 MB.

    Attributes:
        inputs: Of the training rows, ``(n, d)``; empty before :meth:`fit`.
        offsets: From each to its new inputs, ``(n, count, d)``.
        labels: Their targets, ``(n, count, m)``. There are none if all inputs are equal: then a
            batch stays as it is.

    Example:
        >>> x = torch.linspace(-2.0, 2.0, 100)[:, None]
        >>> augment = TeacherRows("gp", sigma=0.1).fit(x, x.sin())
        >>> new_x, new_y = augment(x[:32], x[:32].sin())
        >>> bool((new_y - new_x.sin()).abs().max() < 0.05)
        True
    """

    neutral = TeacherParams(choice=None)
    shown: tuple[str, ...] = ("teacher", "rows", "sigma", "folds", "count")
    company = "none"
    learns = True
    teaches = True

    def __init__(
        self,
        teacher: TeacherName | Regressor = "boosting",
        *,
        rows: Rows = "noise",
        sigma: float = 0.2,
        folds: int = 5,
        count: int = 8,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
        self.teacher = _check_teacher(teacher)
        self.sigma = check_range("sigma", sigma, 0.0)
        self.rows = _check_rows(rows)
        if not isinstance(rows, str):  # a module, which is printed as such
            self.shown = ("teacher", "folds", "count")
        self.folds = check_integer("folds", folds, 2)
        self.count = check_integer("count", count, 1)
        self.inputs: Tensor
        self.offsets: Tensor
        self.labels: Tensor
        self.register_buffer("inputs", torch.empty(0, 0, dtype=torch.float64))
        self.register_buffer("offsets", torch.empty(0, 0, 0))
        self.register_buffer("labels", torch.empty(0, 0, 0))
        self._places: Known[dict[bytes, int]] | None = None  # of the training rows
        self._blocks: Sequence[int] | None = None
        self._groups: Tensor | None = None  # while it learns

    def fit(
        self,
        x: Batch,
        y: Batch,
        *,
        groups: Labels | None = None,
        blocks: Sequence[int] | None = None,
    ) -> Self:
        """Fit a teacher for every fold of the training rows, and make the new rows.

        With ``groups``, a label for each, new inputs are made from rows of one group; the teachers
        learn from all of them.
        """
        self._groups = None if groups is None else code_labels(groups)
        try:
            return super().fit(x, y, groups=groups, blocks=blocks)
        finally:
            self._groups = None

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Fit the teachers, make new rows of every training row and let the teachers label them."""
        check_finite(x=x, y=y)
        rows_x, rows_y = (as_rows(part).detach().cpu().double() for part in (x, y))
        n, d, m = *rows_x.shape, rows_y.shape[1]
        count = max(1, min(self.count, _MOST_NUMBERS // (n * (d + m))))
        known = FoldTeachers.of(self.teacher, rows_x.numpy(), rows_y.numpy(), self.folds)
        if known.teachers:
            new = self._make_rows(rows_x, rows_y, known.folds, count)
            labels = torch.from_numpy(known.label(new.numpy()))
        else:  # nothing differs, so there is nothing to learn
            new, labels = rows_x.new_empty(n, 0, d), rows_y.new_empty(n, 0, m)
        device, dtype = self.inputs.device, working_dtype(x, y)
        self.inputs = rows_x.to(device)
        self.offsets = (new - rows_x[:, None]).to(device, dtype)
        self.labels = labels.to(device, dtype)

    def learn_blocks(self, blocks: Sequence[int]) -> None:
        """Note which columns belong together, for what makes the new inputs."""
        self._blocks = blocks

    def restate(self, learned: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Let the labels be what a training learns instead of them."""
        labels = self.labels
        new = (self.inputs[:, None] + self.offsets).flatten(0, 1)
        if len(new):
            self.labels = (
                learned(new, labels.double().flatten(0, 1)).reshape(labels.shape).to(labels)
            )

    def draw(self, x: Tensor, y: Tensor) -> TeacherParams:
        """Draw one of its new rows for every row."""
        count = self._count()
        if count == 0:
            return self.neutral
        choice = (_random.uniforms(len(x), self.generator) * count).long()
        return TeacherParams(choice.to(x.device))

    def transform(self, x: Tensor, y: Tensor, params: TeacherParams) -> tuple[Tensor, Tensor]:
        """Let every row become that of its new rows that ``params.choice`` says."""
        if params.choice is None:
            return x, y
        rows_x, rows_y = as_rows(x), as_rows(y)
        new_x, new_y = self._take(rows_x, rows_y, self._find(rows_x, rows_y), params.choice)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: what they know is looked up at once."""
        return _TeacherAcross(parts, ahead=ahead)

    def at(
        self, model: nn.Module, place: str | Sequence[str], *, output: int | str | None = None
    ) -> AtLayer[TeacherParams]:
        """Act on the inputs of ``model``, the only place; see :meth:`Augmentation.at`."""
        why = "TeacherRows labels new inputs, and cannot say what belongs to new outputs of"
        check_is_input(place, why, "Use place='input'.")
        return super().at(model, place, output=output)

    def _count(self) -> int:
        """Return how many new rows there are of every training row."""
        if not len(self.inputs):
            raise NotFittedError(
                "`TeacherRows` must see the training rows first: call `.fit(x, y)`."
            )
        return self.labels.shape[1]

    def _make_rows(self, x: Tensor, y: Tensor, folds: Indices, count: int) -> Tensor:
        """Return ``count`` new inputs of every row, ``(n, count, d)``, made fold by fold."""
        new = x.new_empty(len(x), count, x.shape[1])
        seed = self.generator.initial_seed()
        for fold in range(int(folds.max()) + 1):
            own = torch.from_numpy(np.flatnonzero(folds == fold))
            draws = _random.make_generator(_random.derive(_random.Stream.GENERATION, seed, fold))
            maker = self._make_maker(draws)
            if maker.learns:
                groups = None if self._groups is None else self._groups[own]
                maker.fit(x[own], y[own], groups=groups)
            # Where nobody meets anybody else, a fold is a batch.
            size = len(own) if maker.company == "none" else _BATCH
            for number in range(count):
                for some in torch.split(_random.permutation(len(own), draws), size):
                    rows = own[some]
                    limits = {} if self._groups is None else {"groups": self._groups[rows]}
                    new[rows, number] = maker(x[rows], y[rows], **limits)[0]
        return new

    def _make_maker(self, generator: torch.Generator) -> AnyAugmentation:
        """Return what makes the inputs, ready to be fitted; it always acts."""
        rows = self.rows
        maker: AnyAugmentation
        if rows == "noise":
            maker = GaussianNoise(self.sigma, targets="keep", generator=generator)
        elif rows == "mixup":
            maker = Mixup(generator=generator)
        elif rows == "foma":
            maker = FOMA(generator=generator)
        elif rows == "cems":
            maker = CEMS(self.sigma, d="two_nn_data", neighbors=16, generator=generator)
        else:
            maker = copy.deepcopy(rows).train()
            maker.p, maker.append, maker.anneal, maker.generator = 1.0, False, None, generator
        if self._blocks is not None:
            maker.learn_blocks(self._blocks)
        return maker

    def _find(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the numbers of the training rows that inputs are, or are nearest to, ``(n,)``."""
        inputs, m = self.inputs, self.labels.shape[2]
        if (x.shape[1], y.shape[1]) != (inputs.shape[1], m):
            raise ArgumentError(
                f"`x` and `y` must have {inputs.shape[1]} and {m} columns, as in `fit`, got "
                f"{x.shape[1]} and {y.shape[1]}."
            )
        rows = x.detach().double()
        places = None if self._places is None else self._places.of(inputs)
        if places is None:
            places = {key: place for place, key in enumerate(row_keys(inputs.double()))}
            self._places = Known(places, inputs)
        found = torch.tensor([places.get(key, -1) for key in row_keys(rows)], device=x.device)
        if bool((found < 0).any()):
            check_finite(x=x)
            unknown = (found < 0).nonzero().squeeze(1)
            found[unknown] = torch.cdist(rows[unknown], inputs.to(rows)).argmin(dim=1)
        return found

    def _take(self, x: Tensor, y: Tensor, rows: Tensor, choice: Tensor) -> Pair:
        """Return the new rows ``choice`` of the training rows ``rows``, of rows ``(..., d)``."""
        # Added to what is given, so that a gradient finds its way to it.
        offsets, labels = (own[rows, choice] for own in (self.offsets, self.labels))
        dtype = working_dtype(x)
        new_x = cast(x.to(dtype) + offsets.to(x.device, dtype), x.dtype)
        return new_x, cast(labels.to(y.device, working_dtype(y)), y.dtype)


class _TeacherAcross(AtOnce[TeacherRows]):
    """TeacherRows on the batches of several runs."""

    def counts(self, batches: RunBatches) -> Indices:
        """Return how many uniform numbers the batches need: one for each row."""
        n = batches.x.shape[1]
        return np.array([n if self.parts[run]._count() else 0 for run in batches.runs.tolist()])

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Look up the new rows of all batches, run by run."""
        x, y = batches.columns
        new_x, new_y = x.clone(), y.clone()
        choice = torch.zeros(x.shape[:2], dtype=torch.int64)
        for part, own in self._by_run(batches.runs):
            if count := part._count():
                picked = (uniform[own.numpy(), : x.shape[1]] * count).astype(np.int64)
                choice[own] = torch.from_numpy(picked)
                rows = None if batches.rows is None else batches.rows[own]
                if rows is None:
                    flat = x[own].flatten(0, 1), y[own].flatten(0, 1)
                    rows = part._find(*flat).reshape(len(own), -1)
                new_x[own], new_y[own] = part._take(x[own], y[own], rows, choice[own])
        for number, part in self.last_batches(batches.runs):
            part.params = TeacherParams(choice[number]) if part._count() else part.neutral
        return new_x.reshape(batches.x.shape), new_y.reshape(batches.y.shape)

    def _by_run(self, runs: Indices) -> Iterator[tuple[TeacherRows, Tensor]]:
        """Give every run's augmentation with the numbers of its batches."""
        for run in np.unique(runs).tolist():
            yield self.parts[run], torch.from_numpy(np.flatnonzero(runs == run))


def _check_teacher(teacher: TeacherName | Regressor) -> TeacherName | Regressor:
    if isinstance(teacher, str):
        check_choice("teacher", str(teacher), tuple(TEACHERS))
        return teacher
    if isinstance(teacher, type) or not isinstance(teacher, Regressor):
        came = teacher.__name__ if isinstance(teacher, type) else type(teacher).__name__
        raise ArgumentTypeError(
            f"`teacher` must be one of {', '.join(map(repr, TEACHERS))}, or a regressor with `fit` "
            f"and `predict`, such as Ridge(), got {came}."
        )
    return teacher


def _check_rows(rows: Rows) -> Rows:
    if not isinstance(rows, Augmentation):
        return check_choice("rows", rows, ROWS)
    if rows.paired:
        raise ArgumentError(
            "`rows` must be an augmentation whose batches have no partners, got one with "
            "paired=True."
        )
    return rows

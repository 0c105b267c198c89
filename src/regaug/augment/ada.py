"""ADA: move the rows of a batch toward the means of their clusters, or away from them."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Self, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regaug import _random
from regaug._checks import check_choice, check_finite, check_integer, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.joint import Known, as_rows, joint_rows
from regaug.augment.limits import Piece
from regaug.augment.numbers import Indices, Values
from regaug.augment.structures import Batch, join
from regaug.augment.whole import Categories, TakesWhole, WholeColumns
from regaug.exceptions import ArgumentError, NotFittedError, PlaceError, RegaugError
from regaug.functional.anchor import ada, group_means
from regaug.functional.precision import working_dtype

ClusterBy = Literal["joint", "raw", "targets"]
# Above this many training rows k-means looks at small parts of them in turn.
_MOST_ROWS = 10_000
# Starts of k-means, the best of which is kept.
_STARTS = 3
_LOOKS_UP = (
    "ADA at a layer looks up the clusters of the model's inputs, its first positional argument"
)


@dataclass(frozen=True)
class ADAParams:
    """What ADA draws for a batch.

    Attributes:
        gamma: Strength; 1 leaves the batch as it is.
        clusters: Cluster of each row, ``(n,)``; None stands for those of the batch.
    """

    gamma: float
    clusters: Tensor | None = field(default=None, repr=False, compare=False)


class ADA(TakesWhole[ADAParams]):
    r"""Anchor Data Augmentation (Schneider et al., NeurIPS 2023).

    :meth:`fit` cuts the joint training rows :math:`[x_i, y_i]` into clusters by k-means. In a
    batch, the distance of every row to the mean of the batch's rows of the same cluster is divided
    by :math:`\sqrt\gamma`, in inputs and targets alike. :math:`\gamma`, drawn per batch, is one of
    :math:`\beta_i = 1 + i (\alpha - 1) / h` and :math:`1 / \beta_i` for :math:`i = 1, \dots, h`.

    Clusters are found in standardized columns, so that no column dominates the distances. A row
    belongs to the nearest centroid. At a layer the clusters are still those of the model's inputs,
    which must be its first positional argument. ``p``, ``append``, ``anneal``, ``total_steps`` and
    ``generator``, whose initial seed is that of k-means too, are options of every
    :class:`Augmentation`.

    Args:
        alpha: Largest strength, at least 1; 1 leaves every batch as it is.
        levels: Number h of strengths above 1, at least 1.
        clusters: Number of clusters, from 1 to the number of training rows; there are fewer if
            there are fewer different rows.
        cluster_by: What k-means compares: ``"joint"`` rows with their columns standardized;
            ``"raw"`` ones, as the authors' script does for tables; or the ``"targets"`` alone, as
            it does for series and images.
        categories: ``"mix"``: all columns are numbers. ``"whole"``: columns that belong together,
            such as those of a category, stay as they are in the row itself, the nearest real one.
            Which these are a training is told by its table, and :meth:`fit` by ``blocks``; else
            every column stands for itself.

    Attributes:
        centroids: In the columns that k-means compares, ``(clusters, columns)``; empty before
            :meth:`fit`.
        mean, std: What these are standardized by: of each joint training column, the deviation 1
            for a constant one; 0 and 1 for columns that are compared as they are.

    Example:
        >>> x, y = torch.randn(200, 5), torch.randn(200)
        >>> augment = ADA(alpha=2.0, clusters=4).fit(x, y)
        >>> new_x, new_y = augment(x[:32], y[:32])
        >>> new_x.shape, new_y.shape
        (torch.Size([32, 5]), torch.Size([32]))
    """

    neutral = ADAParams(gamma=1.0)
    shown = ("alpha", "levels", "clusters")
    learns = True

    def __init__(
        self,
        alpha: float = 2.0,
        *,
        levels: int = 10,
        clusters: int = 8,
        cluster_by: ClusterBy = "joint",
        categories: Categories = "mix",
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
        self.alpha = check_range("alpha", alpha, 1.0)
        self.levels = check_integer("levels", levels, 1)
        self.clusters = check_integer("clusters", clusters, 1)
        self.cluster_by: ClusterBy = check_choice(
            "cluster_by", cluster_by, ("joint", "raw", "targets")
        )
        self._choose_categories(categories)
        self.centroids: Tensor
        self.mean: Tensor
        self.std: Tensor
        for name in ("centroids", "mean", "std"):
            self.register_buffer(name, torch.empty(0))
        self._observed: Tensor | None = None  # clusters of the inputs while a model runs
        self._fitted: Known[Tensor] | None = None  # clusters of the training rows

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Find the clusters of the joint training rows."""
        hint = "There are no more training rows than that."
        check_integer("clusters", self.clusters, 1, len(x), hint=hint)
        check_finite(x=x, y=y)
        rows = self._points(x, y)
        std, mean = torch.std_mean(rows, dim=0, correction=0)
        # Compared exactly: rounding can give a constant column a tiny spread.
        is_constant = (rows == rows[0]).all(dim=0) | (std == 0)
        std = std.masked_fill(is_constant, 1.0)
        if self.cluster_by != "joint":
            mean, std = torch.zeros_like(mean), torch.ones_like(std)
        rows = (rows - mean) / std
        labels = _k_means(rows, self.clusters, seed=self.generator.initial_seed())
        # Some labels go unused when there are fewer different rows than clusters.
        used, labels = torch.unique(labels, return_inverse=True)
        centroids = group_means(rows, labels, len(used)).to(rows.dtype)
        device = self.centroids.device
        self.centroids, self.mean, self.std = (t.to(device) for t in (centroids, mean, std))
        clusters = self._nearest(x, y).cpu()
        self._fitted = Known(clusters, self.centroids, self.mean, self.std)

    def draw(self, x: Tensor, y: Tensor) -> ADAParams:
        """Find the clusters of the rows and draw gamma."""
        return self._draw_gamma(self._clusters_of(x, y))

    def transform(self, x: Tensor, y: Tensor, params: ADAParams) -> tuple[Tensor, Tensor]:
        """Divide the distances to the clusters' means by the root of ``params.gamma``."""
        if params.gamma == 1.0:
            return x, y
        clusters = self._clusters_of(x, y) if params.clusters is None else params.clusters
        new_x, new_y = ada(as_rows(x), as_rows(y), clusters=clusters, gamma=params.gamma)
        return self.keep_whole(x, new_x.reshape(x.shape)), new_y.reshape(y.shape)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _ADAAcross(parts, ahead=ahead)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (*super().structure, self.cluster_by)

    @contextmanager
    def observing(self, x: object, y: Tensor) -> Iterator[None]:
        """Use the clusters of these inputs while the model's layers run."""
        try:
            rows = join("x", cast(Batch, x))
        except RegaugError as error:
            raise PlaceError(f"{_LOOKS_UP}: {error}") from error
        if rows.shape[:1] != y.shape[:1]:
            raise PlaceError(
                f"{_LOOKS_UP}: it must have a row for each of the {len(y)} targets, got "
                f"{tuple(rows.shape)}."
            )
        before, self._observed = self._observed, self._nearest(rows, y)
        try:
            with super().observing(x, y):
                yield
        finally:
            self._observed = before

    @contextmanager
    def within(self, piece: Piece, mask: Tensor | None) -> Iterator[None]:
        """Use the clusters of some rows only, if those of a model's inputs are looked up."""
        before = self._observed
        self._observed = None if before is None else piece.of(before)
        try:
            yield
        finally:
            self._observed = before

    def _draw_gamma(self, clusters: Tensor) -> ADAParams:
        if self.alpha == 1.0:
            return self.neutral
        step, is_inverse = divmod(_random.integer(2 * self.levels, self.generator), 2)
        beta = 1.0 + (step + 1) * (self.alpha - 1.0) / self.levels
        return ADAParams(1.0 / beta if is_inverse else beta, clusters)

    def _known_clusters(self) -> Tensor | None:
        """Return the clusters of the training rows; None if they came from a saved state."""
        known = self._fitted
        return None if known is None else known.of(self.centroids, self.mean, self.std)

    def _clusters_of(self, x: Tensor, y: Tensor) -> Tensor:
        return self._nearest(x, y) if self._observed is None else self._observed

    def _points(self, x: Tensor, y: Tensor) -> Tensor:
        """Return what k-means compares of a batch, as rows."""
        return joint_rows(x[:, :0] if self.cluster_by == "targets" else x, y)

    def _nearest(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the index of the centroid nearest to each joint row."""
        self._check_fitted()
        rows = self._points(x, y)
        if rows.shape[1] != len(self.mean):
            raise ArgumentError(
                f"`x` and `y` must have {len(self.mean)} columns together, as in `fit`, "
                f"got {rows.shape[1]}. To act at a layer use `.at(model, place)`."
            )
        rows = (rows - self.mean.to(rows)) / self.std.to(rows)
        return _nearest_centroid(rows, self.centroids.to(rows))

    def _check_fitted(self) -> None:
        if not self.centroids.numel():
            raise NotFittedError("`ADA` must see the training rows first: call `.fit(x, y)`.")


class _ADAAcross(AtOnce[ADA]):
    """ADA on the batches of several runs as one stack."""

    def __init__(self, parts: Sequence[ADA], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._alpha = np.array([part.alpha for part in parts])
        self._levels = np.array([part.levels for part in parts])
        self._fitted: Tensor | None = None  # clusters of each run's training rows, (runs, n)
        found = [known for part in parts if (known := part._known_clusters()) is not None]
        if len(found) == len(parts):
            self._fitted = pad_sequence(found, batch_first=True)
        self._whole = WholeColumns(parts)

    def counts(self, batches: RunBatches) -> Indices:
        """Return how many uniform numbers the batches need: one for gamma, if it is not known."""
        return (self._alpha[batches.runs] > 1.0).astype(np.int64)

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Move the rows of all batches as one stack."""
        runs, x, y = batches.runs, batches.x, batches.y
        if batches.rows is not None and self._fitted is not None:
            clusters = self._fitted[torch.from_numpy(runs)[:, None], batches.rows]
        else:
            clusters = self._find_clusters(runs, *(batches.given or (x, y)))
        gamma = self._find_gamma(runs, uniform)
        for number, part in self.last_batches(runs):
            one = float(gamma[number])
            part.params = ADA.neutral if one == 1.0 else ADAParams(one, clusters[number])
        new_x, new_y = ada(
            *batches.columns,
            clusters=clusters,
            gamma=torch.from_numpy(gamma).to(x.device),
        )
        new_x = self._whole.keep(batches, new_x)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    def _find_gamma(self, runs: Indices, uniform: Values) -> Values:
        alpha, levels = self._alpha[runs], self._levels[runs]
        if not uniform.shape[1]:  # no batch is to be moved
            return np.ones(len(runs))
        choice = (uniform[:, 0] * (2 * levels)).astype(np.int64)
        beta = 1.0 + (choice // 2 + 1) * (alpha - 1.0) / levels
        gamma: Values = np.where(choice % 2, 1.0 / beta, beta)
        return gamma

    def _find_clusters(self, runs: Indices, x: Tensor, y: Tensor) -> Tensor:
        """Return :meth:`ADA._nearest` of every run, in few calls: ``(runs, n)``."""
        parts = [self.parts[run] for run in runs.tolist()]
        for part in parts:
            part._check_fitted()
        dtype = working_dtype(x, y)
        x = x[:, :, :0] if parts[0].cluster_by == "targets" else x
        columns = x.flatten(2), y.reshape(*y.shape[:2], -1)
        rows = torch.cat([part.detach().to(dtype) for part in columns], dim=-1)
        mean, std = (
            torch.stack([getattr(part, name) for part in parts]).to(rows)[:, None]
            for name in ("mean", "std")
        )
        # Runs may have found fewer clusters than others: what is missing is infinitely far away.
        centroids = pad_sequence([part.centroids for part in parts], True, math.inf)
        return _nearest_centroid((rows - mean) / std, centroids.to(rows))


def _nearest_centroid(rows: Tensor, centroids: Tensor) -> Tensor:
    # The faster way by a matrix product loses the digits that tell two near centroids apart.
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(rows, centroids, compute_mode=mode).argmin(dim=-1)


def _k_means(rows: Tensor, clusters: int, *, seed: int) -> Tensor:
    """Return the cluster of every row."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    random_state = _random.derive(_random.Stream.CLUSTERS, seed) % 2**32
    algorithm = KMeans if len(rows) <= _MOST_ROWS else MiniBatchKMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        search = algorithm(clusters, n_init=_STARTS, random_state=random_state)
        labels = search.fit_predict(rows.cpu().numpy())
    return torch.from_numpy(labels).to(rows.device, torch.int64)

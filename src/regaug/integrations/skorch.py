"""Augmentation in skorch: a ``NeuralNetRegressor`` whose training batches are augmented."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from regaug import _random, methods
from regaug.augment import Identity
from regaug.augment.structures import join
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    MissingExtraError,
    PlaceError,
    RegaugError,
)
from regaug.samplers import BatchSampler

try:
    from skorch import NeuralNetRegressor
    from skorch.dataset import unpack_data
    from skorch.utils import to_tensor
except ImportError as error:
    raise MissingExtraError(
        'The skorch integration needs an extra: pip install "regaug[skorch]".'
    ) from error


class AugmentedNetRegressor(NeuralNetRegressor):  # type: ignore[misc]
    """A ``skorch.NeuralNetRegressor`` that augments its training batches, and nothing else.

    What an augmentation must learn of the data it learns from the training part of ``train_split``,
    which is read once before the first epoch. The method's sampler draws the batches, whole ones in
    random order; skorch's own default goes through the rows in their order.

    Inputs and targets should be standardized: the settings of the methods are meant for that.
    Every call of ``fit`` or ``partial_fit`` is one training: ``anneal`` counts its epochs. A score
    of training rows (``EpochScoring(on_train=True)``) needs ``use_caching=False``, or it compares
    predictions for new rows with the targets of the old ones.

    Args:
        module: As in skorch.
        *args: Likewise.
        method: One of ``regaug.methods.names()``.
        method_settings: Settings of the method that differ from its defaults, such as
            ``{"rho": 0.95, "place": "hidden"}`` to act at the module's layer of that name.
        seed: Seed of batches and draws, at least 0. Weights and dropout are torch's own matter.
        **kwargs: As in skorch.

    Example:
        >>> from torch import nn
        >>> x = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
        >>> net = AugmentedNetRegressor(nn.Linear(3, 1), method="c-mixup", max_epochs=3, verbose=0)
        >>> net.fit(x, x.sum(dim=1, keepdim=True)).predict(x).shape
        (100, 1)
    """

    augmenting_: "_Augmenting | None" = None  # while a training lasts

    def __init__(
        self,
        module: Any,
        *args: Any,
        method: str = "foma-rho",
        method_settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, *args, **kwargs)
        self.method, self.method_settings, self.seed = method, method_settings, seed

    def fit_loop(self, X: Any, y: Any = None, epochs: int | None = None, **params: Any) -> Any:  # noqa: N803
        """Train as skorch does, with augmentation."""
        epochs = self.max_epochs if epochs is None else epochs
        self.augmenting_ = _Augmenting(self, epochs)
        try:
            return super().fit_loop(X, y, epochs=epochs, **params)
        finally:
            self.augmenting_ = None

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return the batches of a data set: those of training are drawn by the method's sampler."""
        augmenting = self.augmenting_
        if not training or augmenting is None or augmenting.sampler is not None:
            return super().get_iterator(dataset, training=training)
        options = self.get_params_for("iterator_train")
        own_batches = {"sampler", "batch_sampler"} & options.keys()
        if own_batches and augmenting.is_plain:
            return super().get_iterator(dataset, training=training)
        for name in own_batches:
            raise ArgumentError(
                f"`iterator_train__{name}` must be left out: the method draws the batches. Choose "
                'its sampler with method_settings={"sampler": ...}.'
            )
        options.pop("shuffle", None)
        size = options.pop("batch_size", self.batch_size)
        size = len(dataset) if size == -1 else min(size, len(dataset))
        # In their order, whatever the user's own loaders do: the sampler counts on it.
        loading = {name: options[name] for name in ("collate_fn", "num_workers") if name in options}
        rows = DataLoader(dataset, batch_size=size, **loading)
        drop_last = options.pop("drop_last", True)
        sampler = augmenting.prepare(rows, len(dataset), size, drop_last=drop_last)
        return self.iterator_train(dataset, batch_sampler=sampler, **options)

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        """Choose the batches and the draws of this epoch."""
        super().on_epoch_begin(net, **kwargs)
        if self.augmenting_ is not None:
            self.augmenting_.start_epoch(len(self.history) - 1)

    def on_batch_begin(self, net: Any, *args: Any, training: bool = False, **kwargs: Any) -> None:
        """Count the steps."""
        super().on_batch_begin(net, *args, training=training, **kwargs)
        if training and self.augmenting_ is not None:
            self.augmenting_.start_step()

    def on_batch_end(self, net: Any, *args: Any, training: bool = False, **kwargs: Any) -> None:
        """Make sure that the batch has been augmented."""
        super().on_batch_end(net, *args, training=training, **kwargs)
        if training and self.augmenting_ is not None and not self.augmenting_.has_run:
            raise PlaceError(
                f"{type(self).__name__} has a `train_step_single` of its own, which must call "
                "that of AugmentedNetRegressor, or nothing is augmented."
            )

    def train_step_single(self, batch: Any, **fit_params: Any) -> Any:
        """Compute the gradients of the loss on an augmented batch."""
        augmenting = self.augmenting_
        if augmenting is None:
            return super().train_step_single(batch, **fit_params)
        self._set_training(True)
        x, y = (to_tensor(part, device=self.device) for part in unpack_data(batch))
        y_pred, x, y = augmenting.run(lambda x: self.infer(x, **fit_params), x, y)
        loss = augmenting.weight * self.get_loss(y_pred, y, X=x, training=True)
        loss.backward()
        return {"loss": loss, "y_pred": y_pred}


class _Augmenting:
    """What a training has beside the net: an augmentation, its place, a sampler, a schedule."""

    def __init__(self, net: AugmentedNetRegressor, epochs: int) -> None:
        self.ready = methods.get(net.method).prepare(net.method_settings, seed=net.seed)
        self.augmentation, self.seed = self.ready.augmentation, net.seed
        self.at = self.ready.at(net.module_)
        self.device, self.epochs = net.device, epochs
        self.is_identity = isinstance(self.augmentation, Identity)
        # Nothing is augmented, and nobody has asked for batches of our own.
        self.is_plain = self.is_identity and self.ready.settings["sampler"] == "random"
        self.sampler: BatchSampler | None = None
        self.steps, self.has_run, self.weight = 0, False, 1.0
        self.state = self.augmentation.generator.get_state()

    def prepare(
        self, rows: Iterable[Any], count: int, batch_size: int, *, drop_last: bool
    ) -> BatchSampler:
        """Learn from the training rows what has to be known of them; return the sampler."""
        # Plain training takes whatever skorch does, and only their number matters to its batches.
        y = torch.zeros(count) if self.is_plain else self._learn(rows)
        if self.device is not None:
            self.augmentation.to(self.device)
        self.sampler = self.ready.sampler(y, batch_size, drop_last=drop_last)
        return self.sampler

    def _learn(self, rows: Iterable[Any]) -> Tensor:
        """Fit the augmentation if it learns; return all targets."""
        xs, ys = [], []
        for batch in rows:
            x, y = unpack_data(batch)
            ys.append(to_tensor(y, device="cpu"))
            if self.augmentation.learns:
                xs.append(self._join(to_tensor(x, device="cpu")))
        y = self._stack(ys)
        if xs:
            self.ready.fit(torch.cat(xs), y)
        return y

    def _stack(self, ys: list[Any]) -> Tensor:
        kinds = {type(y).__name__ for y in ys if not isinstance(y, Tensor)}
        shapes = [] if kinds else sorted({tuple(y.shape[1:]) for y in ys})
        if kinds or len(shapes) > 1:
            has = f"a {kinds.pop()}" if kinds else f"rows of shapes {shapes[0]} and {shapes[1]}"
            raise ArgumentTypeError(
                f"`y` must be one array with rows of one shape to be augmented, got {has}. Plain "
                'training, method="erm", takes any targets that the module and its loss take.'
            )
        return torch.cat(ys)

    def _join(self, x: Any) -> Tensor:
        try:
            return join("X", x)
        except RegaugError as error:
            name = type(self.augmentation).__name__
            raise PlaceError(
                f"{name} learns from the inputs, at a layer too, and cannot learn from these: "
                f"{error} Or choose a method that learns nothing, such as 'foma-rho' or 'mixup', "
                'and a layer: method_settings={"place": ...}.'
            ) from error

    def start_epoch(self, epoch: int) -> None:
        if self.sampler is not None:
            self.sampler.set_epoch(epoch)
        # Every epoch has a seed of its own: going on with `partial_fit` gives draws of its own.
        seed = _random.derive(_random.Stream.EPOCHS, self.seed, epoch)
        self.augmentation.generator.manual_seed(seed)

    def start_step(self) -> None:
        total = self.epochs * len(self.sampler or ())
        self.augmentation.progress = min(self.steps / max(total, 1), 1.0)
        self.steps, self.has_run = self.steps + 1, False
        # An optimizer may compute the loss of a batch several times, and it must be the same loss.
        self.state = self.augmentation.generator.get_state()

    def run(self, infer: Callable[[Any], Any], x: Any, y: Tensor) -> tuple[Any, Any, Tensor]:
        """Return predictions for the augmented batch, its inputs and its targets."""
        self.augmentation.generator.set_state(self.state)
        self.has_run, self.weight = True, 1.0
        if self.is_identity:  # whatever the inputs are
            return infer(x), x, y
        if self.at is None or self.ready.inputs_too:
            x, y = self.augmentation(x, y)
            self.weight = self.augmentation.weight
        if self.at is None:
            return infer(x), x, y
        y_pred, y = self.at.call(infer, x, y)
        self.weight *= self.augmentation.weight
        return y_pred, x, y

"""The callback: augment the training batches of any LightningModule while it is fitted."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regaug import _random, methods
from regaug._checks import check_choice
from regaug.augment import Augmentation
from regaug.augment.collate import Get, Set, check_both, get_pair
from regaug.augment.layer import INPUT, AtLayer
from regaug.augment.structures import Batch, count_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError, CheckpointError
from regaug.integrations.lightning import batches, trainers
from regaug.integrations.lightning.base import Callback
from regaug.integrations.lightning.targets import TargetsGuard

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from regaug.functional.foma import Targets

Run = Callable[[Any, Any], Any]  # the rest of a training step, from x and y on


class AugmentCallback(Callback):
    """Augment the training batches of a Lightning ``Trainer``, at the inputs or at a layer.

    Validation, test and prediction see the data as they are, and the module is not edited: while
    ``fit`` lasts, its ``training_step`` is given a batch with another x and y. At a layer, y is a
    copy that gets its new values when the layer runs, so the step's own loss uses them; a step
    that computes from y before its forward pass would miss them, which is an error.

    ``anneal`` follows the trainer's epochs or steps, unless the augmentation has ``total_steps``
    and counts by itself. What must be learned from the training rows is learned when ``fit``
    starts. A run that goes on from a checkpoint draws what the uninterrupted run would have drawn.

    Args:
        aug: An augmentation, or a method's name (``regaug.methods.names()``), which stands for an
            augmentation, its place and its sampler.
        place: None or ``"input"`` for the inputs, the name of a layer as in
            ``module.named_modules()``, or several names of which one is drawn per step.
        sampler: Who shares a batch: a name such as ``"nearest"`` or a function that is called as
            ``sampler(y, batch_size, seed=..., drop_last=...)``, for which the data set is read once
            for its targets, or a batch sampler. None leaves the train loader as it is.
        targets: ``"joint"`` trains on the new targets, ``"keep"`` on the original ones.
        method_settings: Changes to the settings of a method that is named, such as those that a
            study has found: ``{"rho": 0.95}``.
        seed: Decides the batches and the draws of a method that is named; an augmentation has a
            generator of its own.
        get: ``get(batch)`` returns x and y of a batch that is not ``(x, y)``.
        set: ``set(batch, x, y)`` returns a new batch with these; goes with ``get``.

    Example:
        >>> from regaug import FOMA
        >>> callback = AugmentCallback(FOMA(rho=0.9, anneal=0.7), place="net.1", sampler="nearest")
        >>> callback.state_key
        "AugmentCallback(FOMA, place='net.1')"
    """

    def __init__(
        self,
        aug: Augmentation[Any] | str,
        place: str | Sequence[str] | None = None,
        *,
        sampler: batches.AnySampler | None = None,
        targets: "Targets" = "joint",
        method_settings: methods.Options | None = None,
        seed: int = 0,
        get: Get | None = None,
        set: Set | None = None,
    ) -> None:
        super().__init__()
        self._ready: methods.Prepared | None = None
        if isinstance(aug, str):
            changes = {**(method_settings or {}), **({} if place is None else {"place": place})}
            self._ready = methods.get(aug).prepare(changes, seed=seed)
            aug = self._ready.augmentation
            if sampler is None:
                sampler = self._ready.sampler
        if not isinstance(aug, Augmentation):
            raise ArgumentTypeError(
                "`aug` must be an augmentation such as regaug.FOMA(), or the name of a method, got "
                f"{aug!r}."
            )
        if self._ready is None and method_settings is not None:
            raise ArgumentError(
                "`method_settings` must be None for an augmentation, which has its options "
                f"already, got {dict(method_settings)!r}. Name a method instead."
            )
        check_both(get, set)
        self.augmentation = aug
        self.place = place
        self.sampler = None if sampler is None else batches.check_sampler(sampler)
        self.targets: Targets = check_choice("targets", targets, ("joint", "keep"))
        self._get = partial(get_pair, get=get, user="AugmentCallback(..., ")
        self._set = set or batches.set_pair
        self._seed = aug.generator.initial_seed()
        self._undo = ExitStack()  # what is to be put back when `fit` ends
        self._at: AtLayer[Any] | None = None
        self._is_restored = self._is_guarded = False
        self._number = self._batch = 0

    @property
    def state_key(self) -> str:
        """The name of this callback in a checkpoint: two of them can act in one training."""
        return f"AugmentCallback({type(self.augmentation).__name__}, place={self.place!r})"

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint holds: the seed, and what has been learned."""
        return {"seed": self._seed, "augmentation": dict(self.augmentation.state_dict())}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the seed and the knowledge of a checkpoint."""
        try:
            self.augmentation.load_state_dict(state_dict["augmentation"])
        except RuntimeError as error:
            raise CheckpointError(
                f"The checkpoint's augmentation is not the one of this callback: {error}"
            ) from error
        self._seed = int(state_dict["seed"])
        self.augmentation.generator.manual_seed(self._seed)
        self._is_restored = True

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Get ready for ``fit``: have the train loader made with the sampler."""
        if stage != "fit":
            return
        self._undo.close()
        self._is_restored = self._is_guarded = False
        generator = self.augmentation.generator
        self._seed = generator.initial_seed()
        self._undo.callback(generator.set_state, generator.get_state())
        self.augmentation.progress = 0.0  # a checkpoint says otherwise, later
        if self.sampler is not None:
            self._undo.callback(trainers.replace_loader(trainer, self._make_loader))

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Learn from the training rows if need be, and take over the training step."""
        callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
        ours = [one for one in callbacks if isinstance(one, AugmentCallback)]
        self._number = ours.index(self)
        self._at = self._find_layer(pl_module)
        trainers.check_end(self.augmentation, trainer)
        trainers.check_weight(self.augmentation, pl_module)
        self.augmentation.to(pl_module.device)
        if self.augmentation.learns and not self._is_restored:
            name = f"{type(self.augmentation).__name__}, which learns from the training rows,"
            self.augmentation.fit(*batches.read_rows(trainer.train_dataloader, self._get, name))
        if self._number == 0:  # one wrapper for all
            self._undo.callback(
                trainers.wrap_training_step(pl_module, partial(_run_step, trainer, ours))
            )

    def on_train_batch_start(
        self, trainer: "Trainer", pl_module: "LightningModule", batch: Any, batch_idx: int
    ) -> None:
        """Note how far training is."""
        self._batch = batch_idx
        if self.augmentation.total_steps is None:  # or it counts by itself
            self.augmentation.progress = trainers.progress_of(trainer, batch_idx)

    def teardown(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Put everything back."""
        self._undo.close()

    def on_exception(
        self, trainer: "Trainer", pl_module: "LightningModule", exception: BaseException
    ) -> None:
        """Put everything back, too."""
        self._undo.close()

    def _make_loader(self, loader: Any, epoch: int) -> Any:
        if self.sampler is None:
            return loader
        new = batches.with_sampler(loader, self.sampler, self._get, seed=self._seed)
        # Workers may start on the first batches before Lightning sets the epoch.
        if (set_epoch := getattr(new.batch_sampler, "set_epoch", None)) is not None:
            set_epoch(epoch)
        return new

    def _find_layer(self, pl_module: "LightningModule") -> AtLayer[Any] | None:
        """Return what acts at a layer; None at the inputs."""
        place: str | Sequence[str] = INPUT if self.place is None else self.place
        if self._ready is not None:
            place = self._ready.place(pl_module)
        if place == INPUT:
            return None
        trainers.check_rows_stay(self.augmentation, place)
        return self.augmentation.at(pl_module, place)

    def _run(
        self, trainer: "Trainer", step: Callable[..., Any], batch: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Run ``step`` on the augmented batch and return what it returns."""
        # Of two callbacks with equal seeds each draws for itself, hence the number. And an
        # optimizer that runs a step twice (L-BFGS) gets the same batch twice.
        numbers = trainer.current_epoch, self._batch, trainer.global_rank, self._number
        seed = _random.derive(_random.Stream.EPOCHS, self._seed, *numbers)
        self.augmentation.generator.manual_seed(seed)
        self.augmentation.params = self.augmentation.neutral  # it may be left out of this step

        def run(x: Batch, y: Batch) -> Any:
            return step(self._set(batch, x, y), *args, **kwargs)

        x, y = self._get(batch)
        if self._at is None:
            return self._act_at_inputs(run, x, y)
        if not isinstance(y, Tensor):
            raise ArgumentTypeError(
                "The targets must be one tensor for AugmentCallback at a layer, which fills them "
                f"in when the layer runs, got a {type(y).__name__}. Act on the inputs, or put them "
                "side by side with `get` and `set`."
            )
        if self._ready is not None and self._ready.inputs_too:
            return self._act_at_inputs(partial(self._act_at_layer, self._at, run), x, y)
        return self._act_at_layer(self._at, run, x, y)

    def _act_at_inputs(self, run: Run, x: Batch, y: Batch) -> Any:
        new_x, new_y = self.augmentation(x, y)
        weight = self.augmentation.weight
        if self.targets == "keep" and (made := count_rows(new_x)) != (given := count_rows(y)):
            raise ArgumentError(
                f'`targets` must be "joint" for an augmentation that makes {made} rows of '
                f'{given}, got "keep".'
            )
        return batches.scale_loss(run(new_x, new_y if self.targets == "joint" else y), weight)

    def _act_at_layer(self, at: AtLayer[Any], run: Run, x: Batch, y: Tensor) -> Any:
        def step(x: Batch, new_y: Tensor) -> Any:
            if self.targets == "keep":
                return run(x, y)
            # The first step that gets its targets late is guarded, the others are alike. They are
            # the same while nothing is augmented, and filled if this step acts at the inputs.
            if self._is_guarded or new_y is y:
                return run(x, new_y)
            guard = TargetsGuard(new_y, at.place)
            self._is_guarded = not guard.is_filled
            with guard:
                return run(x, new_y)

        self.augmentation.params = self.augmentation.neutral  # the layer may not run
        return batches.scale_loss(at.act_in(step, x, y), self.augmentation.weight)


def _run_step(
    trainer: "Trainer", ours: list[AugmentCallback], step: Callable[..., Any], *args: Any, **kw: Any
) -> Any:
    """Run a training step with all callbacks around it: those at the inputs, then the layers'."""
    if trainer.training:  # a validation step may call the training step
        in_order = sorted(ours, key=lambda one: one._at is not None)
        for callback in reversed(in_order):
            step = partial(callback._run, trainer, step)
    return step(*args, **kw)

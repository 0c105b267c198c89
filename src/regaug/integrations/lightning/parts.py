"""What a study makes of a user's own: modules, data, a trainer, the callback of a method."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from typing import Any

from torch import nn

from regaug import _random, methods
from regaug._checks import check_choice, check_integer
from regaug.augment import Identity
from regaug.augment.collate import Get, Set, check_both
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.integrations.lightning.base import PACKAGES
from regaug.integrations.lightning.callback import AugmentCallback
from regaug.metrics import Mode
from regaug.training.settings import Settings

# Arguments of `make_datamodule` that get the number of the split.
SPLIT = ("split", "seed")
_USUAL: Mapping[str, Any] = {
    "accelerator": "auto",
    "devices": 1,
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}
# What the study decides, and what to do instead.
_OURS = {
    "max_epochs": "Give `epochs`",
    "callbacks": "Return them from configure_callbacks of the module",
    "fast_dev_run": "The study has a short look of its own before it begins",
    "limit_train_batches": "Give the data module fewer rows",
}
_WAY_OUT = {
    "OptimizedModule": "Methods act inside of the module, which torch.compile hides: leave it out."
}


class LightningParts:
    """Makes fresh parts of a training from what the user gives; see ``Problem.from_lightning``."""

    def __init__(
        self,
        make_module: Callable[..., Any],
        make_datamodule: Callable[..., Any],
        *,
        monitor: str = "val_loss",
        mode: Mode = "min",
        test_metric: str | None = None,
        epochs: int = 20,
        places: Sequence[str] | None = None,
        get: Get | None = None,
        set: Set | None = None,
        trainer_options: Mapping[str, Any] | None = None,
    ) -> None:
        for name, make in (("make_module", make_module), ("make_datamodule", make_datamodule)):
            if isinstance(make, nn.Module) or not callable(make):
                raise ArgumentTypeError(
                    f"`{name}` must be a function or a class that makes a fresh one for every run, "
                    f"got a {type(make).__name__}. Write def {name}(): return ... and give that."
                )
        if isinstance(places, str):
            raise ArgumentTypeError(
                f"`places` must be a list of names, got {places!r}. Write [{places!r}]."
            )
        check_both(get, set)
        self.make_module, self.make_datamodule = make_module, make_datamodule
        self.monitor: str = _check_text("monitor", monitor)
        self.mode: Mode = check_choice("mode", mode, ("min", "max"))
        self.test_metric = None if test_metric is None else _check_text("test_metric", test_metric)
        self.epochs = check_integer("epochs", epochs, 1)
        self.places = None if places is None else tuple(places)
        self.get, self.set = get, set
        self.trainer_options = dict(trainer_options or {})
        for name in self.trainer_options:
            if name in _OURS:
                raise ArgumentError(
                    f"`trainer_options` must leave {name} to the study, got {name}. {_OURS[name]}."
                )

    @property
    def varies(self) -> bool:
        """Whether every split has other rows."""
        return self._split_argument is not None

    def make_net(self, split: int, seed: int) -> nn.Module:
        """Make a fresh module under a seed."""
        knows_seed = "seed" in _arguments(self.make_module)
        with _random.seeded(seed):
            module = self.make_module(seed=seed) if knows_seed else self.make_module()
        if package_of(module, "LightningModule") is None:
            raise ArgumentTypeError(
                f"`make_module` must return a LightningModule, got a {type(module).__name__}. "
                + _WAY_OUT.get(type(module).__name__, "Take one of lightning or pytorch_lightning.")
            )
        if self.places is not None:
            module.places = self.places
        made: nn.Module = module
        return made

    def make_data(self, split: int) -> Any:
        """Make fresh data."""
        given = {} if self._split_argument is None else {self._split_argument: split}
        data = self.make_datamodule(**given)
        if package_of(data, "LightningDataModule") is None:
            raise ArgumentTypeError(
                "`make_datamodule` must return a LightningDataModule, got a "
                f"{type(data).__name__}. Give one with train_dataloader and val_dataloader, and "
                "best with test_dataloader."
            )
        return data

    def make_trainer(self, module: Any, callbacks: Sequence[Any], **options: Any) -> Any:
        """Make a trainer that says nothing and writes nothing."""
        trainer = import_module(package_of(module, "LightningModule") or "").Trainer
        return trainer(**{**_USUAL, **self.trainer_options, **options}, callbacks=list(callbacks))

    def make_callbacks(self, method: str, settings: Settings) -> list[AugmentCallback]:
        """Make what augments; nothing for plain training."""
        known = methods.get(method)
        own = known.settings(**settings.method_settings)
        if known.augmentation is Identity and own["sampler"] == "random":
            return []
        callback = AugmentCallback(
            method,
            method_settings=settings.method_settings,
            seed=settings.seed,
            get=self.get,
            set=self.set,
        )
        if own["sampler"] == "random":
            callback.sampler = None  # as in plain training, whose loader is the user's own
        return [callback]

    @property
    def _split_argument(self) -> str | None:
        known = _arguments(self.make_datamodule)
        return next((name for name in SPLIT if name in known), None)


def package_of(thing: Any, base: str) -> str | None:
    """Return the Lightning package whose class ``base`` a thing is of; None if it is of none."""
    for package in PACKAGES.values():
        for cls in type(thing).__mro__:
            if cls.__name__ == base and cls.__module__.startswith(f"{package}."):
                return package
    return None


def _arguments(make: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return signature(make).parameters
    except ValueError:  # a built-in function has none that can be read
        return {}


def _check_text(name: str, value: str) -> str:
    if not isinstance(value, str) or not value:
        raise ArgumentTypeError(f"`{name}` must be the name of a metric, got {value!r}.")
    return value

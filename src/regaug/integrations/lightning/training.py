"""The trainings of a study that Lightning does: the user's module and data, our callback and seed.

Nothing of the user's is edited: every run makes a fresh module and fresh data, and a trainer.
"""

import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from torch import Tensor

from regaug import methods
from regaug.integrations.lightning import inspection
from regaug.integrations.lightning.epochs import BestEpoch
from regaug.integrations.lightning.parts import LightningParts, package_of
from regaug.integrations.lightning.sessions import quiet, run_trainer, seeded
from regaug.methods import BOTH, INPUT, LAYER, LAYERS
from regaug.metrics import logged_metric
from regaug.problems import make_lightning
from regaug.training.logged import LoggedFacts, LoggedResult
from regaug.training.results import Ending, versions
from regaug.training.settings import Settings

_OPTIONS = ("monitor", "mode", "test_metric", "epochs", "places", "get", "set", "trainer_options")
# What has been found out by a look, which another process need not take again.
_LOOKS = ("facts", "layers", "no_layer")


class LightningTraining(LightningParts):
    """Trains fresh modules of the user's with any method; see ``Problem.from_lightning``.

    It may be sent to another process if ``make_module`` and ``make_datamodule`` can be imported
    there.
    """

    def __reduce__(self) -> tuple[object, ...]:
        known = {name: own for name, own in vars(self).items() if name in _LOOKS}
        options = {name: getattr(self, name) for name in _OPTIONS}
        # Not the class itself: the user's own modules are imported first, and with them the
        # Lightning package that our callbacks inherit from.
        return make_lightning, (self.make_module, self.make_datamodule, options), known

    @property
    def metric(self) -> str:
        """What runs are compared by, as far as that is known before a look at the module."""
        return logged_metric(inspection.wanted(self), self.mode)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, in sentences."""
        if self.varies:
            return ()
        return (
            "make_datamodule takes no `split`, so all runs have the same rows: intervals say how "
            "much seeds vary, not how other rows would.",
        )

    @cached_property
    def facts(self) -> LoggedFacts:
        """What a look at it has shown: it is begun and ended after a few batches, once."""
        return inspection.inspect(self)

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that methods may act at, the best known one first."""
        return tuple(getattr(self.make_net(0, 0), "places", ()))

    @cached_property
    def no_layer(self) -> str:
        """Why no method can act at a layer, in a sentence; empty if methods can."""
        return inspection.why_no_layer(self, self.layers)

    def leave_out(self, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
        """Try some methods for a few batches; return those that work, and why others do not."""
        kept, sentences = [], list[str]()
        if self.no_layer:
            sentences.append(f"Methods act on the inputs alone. {self.no_layer}")
        for name in names:
            own = methods.get(name).suited(self.facts.sizes[0]).settings()
            why = "it acts at a layer alone." if own["place"] == LAYERS and self.no_layer else ""
            if why := why or inspection.try_method(self, name, self.adapt(own)):
                sentences.append(f"{name} is left out: {why}")
            else:
                kept.append(name)
        return tuple(kept), sentences

    def adapt(self, method_settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings of a method that can act here, at a place that there is."""
        own = dict(method_settings)
        # When a layer runs, the training step has its targets: as many as before.
        changes_rows = own.get("paired", False) or own.get("append", False)
        if own["place"] in (LAYER, LAYERS, BOTH) and (self.no_layer or changes_rows):
            own["place"] = INPUT
        # By name, so that the settings can be used without knowing what the study was told.
        if own["place"] in (LAYER, LAYERS):
            own["place"] = self.layers[0] if own["place"] == LAYER else self.layers
        if own["sampler"] == "nearest" and not self.facts.can_sample:
            own["sampler"] = "random"
        return own

    def identity(self) -> str:
        """Return a text that differs for other options of the training."""
        told = ("monitor", "mode", "test_metric", "places", "trainer_options")
        return repr([self.facts.sizes, *((name, getattr(self, name)) for name in told)])

    def train(self, split: int, method: str, settings: Settings) -> LoggedResult:
        """Train once; the seed of the settings decides everything."""
        start = time.perf_counter()
        with quiet(), seeded(settings.seed):
            module, data = self.make_net(split, settings.seed), self.make_data(split)
            best = BestEpoch(self.monitor, self.mode)
            callbacks = [best, *self.make_callbacks(method, settings)]
            trainer = self.make_trainer(module, callbacks, max_epochs=settings.epochs)
            run_trainer(trainer.fit, module, datamodule=data)
            done, test = int(trainer.current_epoch), math.nan
            if best.epoch:
                module.load_state_dict(best.state)
                judged = inspection.judge(self, module, data)
                test = best.value if judged is None else judged.get(self.facts.judged_by, math.nan)
        ending: Ending = "early" if done < settings.epochs else "finished"
        return LoggedResult(
            validation=best.value,
            test=test,
            history=best.history,
            best_epoch=best.epoch,
            epochs=done,
            ending=ending if best.epoch else "diverged",
            seconds=time.perf_counter() - start,
            made_by={**versions(), **_lightning_version(module)},
            weights={name: own for name, own in best.state.items() if isinstance(own, Tensor)},
        )


def _lightning_version(module: Any) -> dict[str, str]:
    package = (package_of(module, "LightningModule") or "").partition(".")[0]
    return {package: str(import_module(package).__version__)}

"""How a run is trained: the settings of the paper and its predecessors, and those that are drawn.

The paper gives settings of FOMA alone (its tables 8 and 9) and refers to C-Mixup for all else. The
others below are those of C-Mixup's released configuration, as far as it has them; ADA has the
defaults of this library, because neither gives any.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from regaug import _random
from regaug._random import Stream
from regaug._registry import lookup
from regaug.methods import INPUT, LAYER, Between, OneOf, Space
from regaug.metrics import MetricName
from regaug.reproduction import published
from regaug.studies.search import draw_settings
from regaug.training import Settings

# The rows of the paper's tables 3 and 4 that this library has.
METHODS = ("erm", "mixup", "manifold-mixup", "c-mixup", "ada", "foma", "foma-rho")
# Every batch is touched until the end, as in the papers.
CONSTANT: dict[str, object] = {"p": 1.0, "anneal": None}
SERIES = ("exchange-rate", "electricity")
NOISE = (0.1, 0.01, 0.001, 0.0001)
# What the tuned protocol searches for every method, plain training included, and where it begins.
SPACE: Space = {
    "learning_rate": Between(3e-4, 1e-2, log=True),
    "weight_decay": Between(1e-6, 1e-1, log=True),
    "batch_size": OneOf((16, 32, 64)),
}
FIRST: dict[str, Any] = {"learning_rate": 1e-3, "weight_decay": 1e-4, "batch_size": 32}


@dataclass(frozen=True)
class Common:
    """The settings that plain training and FOMA's rivals share on a data set.

    ``alpha`` is that of mixup's Beta distribution, ``bandwidth`` that of C-Mixup's kernel, and
    ``place`` where C-Mixup acts.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    alpha: float
    bandwidth: float
    place: str
    clip: float | None = None


COMMON: dict[str, Common] = {
    "airfoil": Common(1e-2, 16, 100, 2.0, 1.75, LAYER),
    "no2": Common(1e-2, 32, 100, 2.0, 1.2, INPUT),
    "exchange-rate": Common(1e-3, 128, 100, 1.5, 0.05, LAYER, clip=10.0),
    "electricity": Common(1e-3, 128, 100, 2.0, 0.5, INPUT, clip=10.0),
    "rcf-mnist": Common(7e-5, 64, 30, 2.0, 0.2, LAYER),
    "crimes": Common(1e-3, 16, 200, 2.0, 4.0, LAYER),
    "dti": Common(5e-5, 64, 20, 2.0, 10.0, LAYER),
    # Not in the configuration: the rates and epochs of FOMA's table 8, C-Mixup's defaults.
    "echo": Common(1e-4, 10, 20, 2.0, 50.0, LAYER),
    "povertymap": Common(1e-3, 32, 50, 2.0, 0.5, LAYER),
}


def metric_of(data: str) -> MetricName:
    """Return the metric by which the paper judges a data set, and chooses epochs."""
    return "pearson" if data in ("dti", "povertymap") else "rmse"


def paper_settings(data: str, method: str, *, seed: int, **changes: object) -> Settings:
    """Return a method's settings in the paper's protocol, with changes to its own ones."""
    common = lookup("data set of the paper", data, COMMON)
    if method in ("foma", "foma-rho"):
        settings = published.settings(data, method)
    else:
        settings = Settings(
            learning_rate=common.learning_rate,
            batch_size=common.batch_size,
            epochs=common.epochs,
            optimizer="adam",
            method_settings=_own_settings(method, common),
        )
    return replace(
        settings,
        clip=common.clip,
        seed=seed,
        metric=metric_of(data),
        method_settings=_at_a_place(data, method, {**settings.method_settings, **changes}),
    )


def tuned_settings(
    data: str, method: str, trials: int, *, epochs: int, patience: int
) -> list[Settings]:
    """Draw the settings that are tried of a method in the tuned protocol.

    What is no setting of the method itself is the same for all methods in a trial.
    """
    clip = lookup("data set of the paper", data, COMMON).clip
    usual = Settings(epochs=epochs, patience=patience, metric=metric_of(data), clip=clip)
    drawn = []
    for number, own in enumerate(draw_settings(method, trials, seed=0)):
        rng = _random.numpy_generator(Stream.RECIPES, 0, number)
        common = {name: choice.draw(rng) for name, choice in SPACE.items()} if number else FIRST
        at = _at_a_place(data, method, own)
        drawn.append(replace(usual, method_settings=at, **common))
    return drawn


def _own_settings(method: str, common: Common) -> dict[str, object]:
    if method == "erm":
        return {}
    own = dict(CONSTANT)
    if method in ("mixup", "manifold-mixup", "c-mixup"):
        own["alpha"] = common.alpha
    if method == "c-mixup":
        own |= {"bandwidth": common.bandwidth, "place": common.place}
    return own


def _at_a_place(data: str, method: str, own: Mapping[str, object]) -> Mapping[str, object]:
    """Return a method's settings with a place at which it can act in the data set's net."""
    # Pairs become single rows there, and a bypass of LSTNet still has all of them further on.
    if data in SERIES and method == "c-mixup" and own.get("place") == LAYER:
        return {**own, "place": "features"}
    return own

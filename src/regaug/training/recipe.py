"""What good training means: a default that needs no search, and what to try.

For the table net, and at the end for any other network, of which less is known.

Four ingredients of the table net's are unusual. Periodic features let a small net learn what
wiggles. Columns that matter more, as a Gaussian process finds, are larger inputs. A ridge
regression that comes first, so that the net learns what it leaves, keeps a net that has seen few
rows from being worse than a line. And it is a running mean of the weights that is judged after
every epoch. ``python -m benchmarks.atlas.recipes`` takes the recipe apart, one line per ingredient
(benchmarks/results/atlas/recipes.md). Rates, schedules and decay differ from table to table, so
several of them are tried and averaged.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from regaug import _random
from regaug._checks import check_integer
from regaug._random import Stream
from regaug.methods import Between, OneOf, Space
from regaug.metrics import MetricName
from regaug.training.settings import Settings

# Widths of the hidden layers: twice as wide is no better on the atlas, and takes twice the time.
HIDDEN = (64, 64)
# What is searched beside a method's own settings. Runs share a stack if their batches have one size
# and their nets one form, so these stay as they are: a stack of 32 takes little more than one of 5.
SPACE: Space = {
    "learning_rate": Between(5e-4, 2e-2, log=True),
    "weight_decay": Between(1e-3, 0.3, log=True),
    "schedule": OneOf(("constant", "cosine", "waves")),
    "spread": Between(0.03, 0.5, log=True),
    "linear": OneOf((True, True, False)),
}
# Changes to the default that make the best ensemble with it and those before them, over the tables
# of the atlas (benchmarks/results/atlas/recipes.md); tried before anything is drawn.
PORTFOLIO: tuple[Mapping[str, Any], ...] = (
    {"schedule": "cosine", "learning_rate": 1e-2},
    {"linear": False},
    {"schedule": "cosine", "learning_rate": 5e-3, "weight_decay": 0.3},
    {"schedule": "waves", "learning_rate": 2e-2, "weight_decay": 0.1},
    {"linear": False, "weight_decay": 0.3},
    {"spread": 0.3},
    {"linear": False, "learning_rate": 5e-3},
)
# The same of a network that is not known: modest, around what most people begin with.
NETWORK_SPACE: Space = {
    "learning_rate": Between(2e-4, 5e-3, log=True),
    "weight_decay": Between(1e-6, 3e-2, log=True),
    "schedule": OneOf(("cosine", "constant")),
}
NETWORK_PORTFOLIO: tuple[Mapping[str, Any], ...] = (
    {"learning_rate": 3e-3},
    {"schedule": "constant", "learning_rate": 5e-4},
    {"weight_decay": 1e-2, "learning_rate": 2e-3},
)
# Steps of a network's training that is long enough, and the epochs that these may be.
_NETWORK_STEPS, _FEWEST_NETWORK_EPOCHS, _MOST_NETWORK_EPOCHS = 2_000, 10, 60
_BATCH, _LARGEST_BATCH, _LARGEST_NETWORK_BATCH = 32, 512, 128
# Epochs without progress; more of them where the rate falls and the last epochs may be the best.
_PATIENCE, _LONG_PATIENCE, _PATIENCE_SHARE = 15, 60, 0.5
# Epochs of a table of up to so many training rows; with more rows there are fewer.
_EPOCHS, _FEWEST_EPOCHS, _USUAL_ROWS = 200, 50, 1_000


def default_recipe(rows: int) -> Settings:
    """Return settings that are a sensible start for a table of so many rows.

    Batches grow with the table and epochs get fewer, so that a large one does not take forever.
    """
    rows = check_integer("rows", rows, 1)
    epochs = _EPOCHS * _USUAL_ROWS // max(rows, _USUAL_ROWS)
    return Settings(
        epochs=max(epochs, _FEWEST_EPOCHS),
        patience=_PATIENCE,
        patience_share=_PATIENCE_SHARE,
        batch_size=_batch_size(rows, _LARGEST_BATCH),
        learning_rate=2e-3,
        weight_decay=1e-2,
        frequencies=8,
        spread=0.1,
        linear=True,
        relevance=True,
        average=0.8,
    )


def draw_recipes(
    count: int, *, seed: int, rows: int, metric: MetricName = "rmse"
) -> list[Settings]:
    """Return recipes to try: the default, then a portfolio, then draws from the space.

    Fewer of them are the first ones of more. A recipe has no settings of a method.

    Args:
        count: How many.
        seed: Decides the draws.
        rows: Rows to train on.
        metric: The error that chooses an epoch.

    Example:
        >>> first, second = draw_recipes(2, seed=0, rows=300)
        >>> first == default_recipe(300), second.learning_rate == first.learning_rate
        (True, False)
    """
    usual = replace(default_recipe(rows), metric=metric)
    recipes = [usual, *(_changed(usual, changes) for changes in PORTFOLIO)]
    for number in range(len(recipes), check_integer("count", count, 1)):
        rng = _random.numpy_generator(Stream.RECIPES, seed, number)
        recipes.append(_changed(usual, {name: own.draw(rng) for name, own in SPACE.items()}))
    return recipes[:count]


def network_epochs(rows: int) -> int:
    """Return how many epochs a network is trained for on so many rows, if nobody says.

    Example:
        >>> network_epochs(1_200), network_epochs(100_000)
        (60, 10)
    """
    steps = max(1, rows // _batch_size(rows, _LARGEST_NETWORK_BATCH))
    epochs = math.ceil(_NETWORK_STEPS / steps)
    return min(max(epochs, _FEWEST_NETWORK_EPOCHS), _MOST_NETWORK_EPOCHS)


def draw_network_recipes(
    count: int, *, seed: int, rows: int, epochs: int, metric: MetricName = "rmse"
) -> list[Settings]:
    """Return recipes to try with a network of which nothing is known.

    All take the same epochs and batches, so that they can be compared half-way and so that the time
    they take is known. None stops early: the best epoch counts anyway.

    Args:
        count: How many; fewer of them are the first ones of more.
        seed: Decides the draws.
        rows: Rows to train on.
        epochs: Epochs of a training.
        metric: The error that chooses an epoch.

    Example:
        >>> first, second = draw_network_recipes(2, seed=0, rows=1_200, epochs=30)
        >>> first.learning_rate, first.schedule, second.learning_rate
        (0.001, 'cosine', 0.003)
    """
    usual = Settings(
        epochs=epochs,
        batch_size=_batch_size(check_integer("rows", rows, 1), _LARGEST_NETWORK_BATCH),
        learning_rate=1e-3,
        weight_decay=1e-4,
        schedule="cosine",
        metric=metric,
    )
    recipes = [usual, *(replace(usual, **changes) for changes in NETWORK_PORTFOLIO)]
    for number in range(len(recipes), check_integer("count", count, 1)):
        rng = _random.numpy_generator(Stream.RECIPES, seed, number)
        drawn: dict[str, Any] = {name: own.draw(rng) for name, own in NETWORK_SPACE.items()}
        recipes.append(replace(usual, **drawn))
    return recipes[:count]


def _batch_size(rows: int, largest: int) -> int:
    """Return a size of batches that grows with the rows."""
    size = _BATCH
    while size < largest and rows >= 32 * size:
        size *= 2
    return size


def _changed(usual: Settings, changes: Mapping[str, Any]) -> Settings:
    changes = dict(changes)
    if changes.get("schedule", "constant") != "constant":
        changes["patience"] = _LONG_PATIENCE
    return replace(usual, **changes)

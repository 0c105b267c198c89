"""What good training of the table net means: a default that needs no search, and what to try."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from regaug import _random
from regaug._checks import check_integer
from regaug._random import Stream
from regaug.methods import Between, OneOf, Space
from regaug.metrics import MetricName
from regaug.training.settings import Settings

# What is searched beside a method's own settings. Batch sizes are few, because runs of one batch
# size share a stack; they are those of a small table.
SPACE: Space = {
    "learning_rate": Between(3e-4, 1e-2, log=True),
    "weight_decay": Between(1e-6, 1e-1, log=True),
    "batch_size": OneOf((16, 32, 64)),
}
# Changes to the default that are good on many tables, tried before anything is drawn.
PORTFOLIO: tuple[Mapping[str, Any], ...] = ()
_BATCH, _LARGEST_BATCH = 32, 512


def default_recipe(rows: int) -> Settings:
    """Return settings that are a sensible start for a table of so many rows.

    Batches grow with the table, so that an epoch of a large one does not take forever. On small
    tables other rates, decays and schedules gave errors within 1 % of these.
    """
    rows, batch_size = check_integer("rows", rows, 1), _BATCH
    while batch_size < _LARGEST_BATCH and rows >= 32 * batch_size:
        batch_size *= 2
    return Settings(
        epochs=200, patience=30, batch_size=batch_size, learning_rate=2e-3, weight_decay=1e-2
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
    recipes = [usual, *(replace(usual, **changes) for changes in PORTFOLIO)]
    for number in range(len(recipes), check_integer("count", count, 1)):
        rng = _random.numpy_generator(Stream.RECIPES, seed, number)
        drawn: dict[str, Any] = {name: choice.draw(rng) for name, choice in SPACE.items()}
        drawn["batch_size"] *= usual.batch_size // _BATCH
        recipes.append(replace(usual, **drawn))
    return recipes[:count]

"""What good training of the table net means: a default that needs no search, and what to try."""

from dataclasses import replace
from typing import Any

from regaug import _random
from regaug._checks import check_integer
from regaug._random import Stream
from regaug.methods import Between, OneOf, Space
from regaug.metrics import MetricName
from regaug.training.settings import Settings

SPACE: Space = {
    "learning_rate": Between(1e-3, 1e-2, log=True),
    "weight_decay": Between(1e-3, 3e-1, log=True),
    "schedule": OneOf(("constant", "cosine", "waves")),
    "linear": OneOf((True, False)),
}
_BATCH, _LARGEST_BATCH = 32, 512


def default_recipe(rows: int) -> Settings:
    """Return settings that are a sensible start for a table of so many rows.

    Batches grow with the table, so that an epoch of a large one does not take forever.
    """
    rows, batch_size = check_integer("rows", rows, 1), _BATCH
    while batch_size < _LARGEST_BATCH and rows >= 32 * batch_size:
        batch_size *= 2
    return Settings(
        epochs=200,
        patience=30,
        batch_size=batch_size,
        learning_rate=2e-3,
        weight_decay=1e-2,
        frequencies=8,
        spread=0.1,
        linear=True,
    )


def draw_recipes(
    count: int, *, seed: int, rows: int, metric: MetricName = "rmse"
) -> list[Settings]:
    """Return recipes to try: the default, then draws from the space.

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
    recipes = [replace(default_recipe(rows), metric=metric)]
    for number in range(1, check_integer("count", count, 1)):
        rng = _random.numpy_generator(Stream.RECIPES, seed, number)
        drawn: dict[str, Any] = {name: choice.draw(rng) for name, choice in SPACE.items()}
        # A rate that falls to zero by plan needs the time that was planned.
        patience = recipes[0].patience if drawn["schedule"] == "constant" else None
        recipes.append(replace(recipes[0], patience=patience, **drawn))
    return recipes

"""Recipes: a default for every table, and more to try that do not depend on how many are asked."""

from dataclasses import replace

import pytest

from regaug.exceptions import ArgumentError
from regaug.training import recipe as module
from regaug.training.recipe import (
    SPACE,
    default_recipe,
    draw_network_recipes,
    draw_recipes,
    network_epochs,
)


def test_batches_grow_with_the_table():
    sizes = [default_recipe(rows).batch_size for rows in (1, 1_000, 3_000, 10**7)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


def test_the_first_recipe_is_the_default_and_the_metric_is_passed_on():
    first, *others = draw_recipes(4, seed=3, rows=200, metric="mae")
    assert first == replace(default_recipe(200), metric="mae")
    assert all(own.metric == "mae" for own in others)
    assert all(own.method_settings == {} for own in others)


def test_fewer_recipes_are_the_first_ones_of_more_and_all_differ():
    many = draw_recipes(20, seed=0, rows=200)
    assert draw_recipes(5, seed=0, rows=200) == many[:5]
    assert len({repr(own) for own in many}) == 20


def test_the_seed_decides_what_is_drawn():
    count = 2 + len(module.PORTFOLIO)
    once, again, other = (draw_recipes(count, seed=seed, rows=200) for seed in (0, 0, 1))
    assert once == again
    assert once[:-1] == other[:-1]
    assert once[-1] != other[-1]


def test_a_portfolio_comes_before_what_is_drawn(monkeypatch):
    monkeypatch.setattr(module, "PORTFOLIO", ({"learning_rate": 0.02}, {"linear": False}))
    for rows in (200, 10**6):
        usual, found = default_recipe(rows), draw_recipes(3, seed=0, rows=rows)
        expected = [usual, replace(usual, learning_rate=0.02), replace(usual, linear=False)]
        assert found == expected
        assert draw_recipes(1, seed=0, rows=rows) == [usual]


def test_recipes_whose_rate_falls_to_zero_have_more_patience():
    found = draw_recipes(20, seed=0, rows=200)
    assert {own.schedule for own in found} == {"constant", "cosine", "waves"}
    for own in found:
        assert own.patience == (15 if own.schedule == "constant" else 60)


def test_large_tables_have_fewer_epochs():
    epochs = [default_recipe(rows).epochs for rows in (1, 1_000, 2_000, 10**7)]
    assert epochs == [200, 200, 100, 50]


def test_what_is_drawn_lies_in_the_space():
    for own in draw_recipes(30, seed=0, rows=200)[1 + len(module.PORTFOLIO) :]:
        assert SPACE["learning_rate"].low <= own.learning_rate <= SPACE["learning_rate"].high


def test_no_recipe_is_refused():
    with pytest.raises(ArgumentError, match="`count` must be"):
        draw_recipes(0, seed=0, rows=10)
    with pytest.raises(ArgumentError, match="`rows` must be"):
        default_recipe(0)


def test_recipes_of_a_network_differ_in_what_any_network_has():
    recipes = draw_network_recipes(12, seed=3, rows=5_000, epochs=20, metric="mae")
    assert len({(r.learning_rate, r.weight_decay, r.schedule) for r in recipes}) == 12
    for recipe in recipes:
        assert (recipe.epochs, recipe.batch_size, recipe.metric) == (20, 128, "mae")
        assert recipe.patience is None
        assert (recipe.frequencies, recipe.linear, recipe.average) == (0, False, 0.0)
        assert 2e-4 <= recipe.learning_rate <= 5e-3
    assert recipes[:5] == draw_network_recipes(5, seed=3, rows=5_000, epochs=20, metric="mae")
    assert recipes[:4] == draw_network_recipes(4, seed=4, rows=5_000, epochs=20, metric="mae")
    assert recipes[4:] != draw_network_recipes(12, seed=4, rows=5_000, epochs=20, metric="mae")[4:]


@pytest.mark.parametrize(("rows", "epochs"), [(1, 60), (1_200, 60), (12_000, 22), (10**6, 10)])
def test_more_rows_are_fewer_epochs_of_a_network(rows, epochs):
    assert network_epochs(rows) == epochs

"""What good training means: a default, and what to try."""

import pytest

from regaug.training.recipe import default_recipe, draw_recipes


def test_batches_grow_with_the_table():
    sizes = [default_recipe(rows).batch_size for rows in (1, 1_000, 3_000, 10**7)]
    assert sizes == [32, 32, 128, 512]


def test_fewer_recipes_are_the_first_of_more_and_the_default_comes_first():
    many = draw_recipes(8, seed=3, rows=300, metric="mae")
    assert draw_recipes(3, seed=3, rows=300, metric="mae") == many[:3]
    assert many[0].learning_rate == default_recipe(300).learning_rate
    assert {own.metric for own in many} == {"mae"}
    assert draw_recipes(8, seed=4, rows=300)[1:] != draw_recipes(8, seed=3, rows=300)[1:]
    assert len({own.learning_rate for own in many}) == 8


@pytest.mark.parametrize("seed", range(3))
def test_a_rate_that_falls_by_plan_is_not_stopped(seed):
    for own in draw_recipes(20, seed=seed, rows=300):
        assert (own.patience is None) == (own.schedule != "constant")

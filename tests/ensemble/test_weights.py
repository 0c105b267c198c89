"""Weights of an ensemble: against brute force, with few rows, with failed models."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regaug.ensemble import weights
from regaug.ensemble.weights import blend_weights, similar_weights, without_luck
from regaug.exceptions import ArgumentError


def draw(seed: int, models: int, n: int, m: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randn(n, m, generator=generator, dtype=torch.float64)
    noise = torch.randn(models, n, m, generator=generator, dtype=torch.float64)
    return target + noise * torch.linspace(0.5, 2.0, models)[:, None, None], target


@pytest.mark.parametrize("rule", [similar_weights, blend_weights])
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 40), st.integers(1, 2))
def test_weights_are_shares(rule, seed, models, n, m):
    weights = rule(*draw(seed, models, n, m))
    assert weights.shape == (models,)
    assert (weights >= 0).all()
    assert weights.sum().item() == pytest.approx(1.0)


def test_similar_weights_follow_the_formula():
    predicted, target = draw(0, 3, 50)
    squares = (predicted - target).square().mean(dim=(1, 2))
    wanted = (-50 / 16 * (squares / squares.min() - 1)).exp()
    torch.testing.assert_close(similar_weights(predicted, target), wanted / wanted.sum())


def test_few_rows_leave_weights_close_to_equal():
    predicted, target = draw(0, 4, 400)
    few = similar_weights(predicted[:, :4], target[:4])
    many = similar_weights(predicted, target)
    assert few.max() < 0.9 * many.max()


def test_blend_is_the_best_mix_on_all_rows_when_there_are_many():
    predicted, target = draw(3, 3, 2000)
    found = blend_weights(predicted, target)

    def error(weights: torch.Tensor) -> float:
        return (torch.einsum("k,knm->nm", weights, predicted) - target).square().mean().item()

    grid = [i / 20 for i in range(21)]
    mixes = [
        torch.tensor([a, b, 1 - a - b], dtype=torch.float64)
        for a, b in itertools.product(grid, grid)
        if a + b <= 1
    ]
    assert error(found) <= 1.001 * min(map(error, mixes))


@pytest.mark.parametrize("rule", [similar_weights, blend_weights])
def test_a_model_that_failed_gets_nothing(rule):
    predicted, target = draw(1, 3, 30)
    predicted[0, 7] = float("nan")
    assert rule(predicted, target)[0] == 0


@pytest.mark.parametrize("rule", [similar_weights, blend_weights])
def test_perfect_and_constant_cases(rule):
    target = torch.ones(20, 1)
    exact = torch.stack([target, target + 1])
    torch.testing.assert_close(
        rule(exact, target), torch.tensor([1.0, 0.0], dtype=torch.float64), atol=1e-5, rtol=0
    )
    assert rule(torch.stack([target, target]), target).isfinite().all()


@pytest.mark.parametrize("rule", [similar_weights, blend_weights])
def test_wrong_arguments_are_named(rule):
    predicted, target = draw(1, 3, 30)
    with pytest.raises(ArgumentError, match=r"`predicted` must be \(models, n, m\)"):
        rule(predicted, target[:-1])
    with pytest.raises(ArgumentError, match="finite, got none"):
        rule(predicted * float("nan"), target)


def test_with_few_rows_a_blend_is_drawn_to_equal_shares(monkeypatch):
    def distance(n):
        predicted, target = draw(2, 3, 2000)
        return (blend_weights(predicted[:, :n], target[:n]) - 1 / 3).abs().max().item()

    few, many = distance(20), distance(2000)
    monkeypatch.setattr(weights, "_PRIOR_ROWS", 0.0)
    assert few < 0.9 * distance(20)
    assert many > 0.99 * distance(2000)


def test_nets_that_stopped_on_the_rows_get_less_than_their_errors_there_ask_for():
    predicted, target = draw(5, 2, 500)
    usual = blend_weights(predicted, target)
    corrected = torch.stack([without_luck(predicted[0], target), predicted[1]])
    assert 0.5 < blend_weights(corrected, target)[0] < usual[0]

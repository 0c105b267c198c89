"""Weights of an ensemble: by their formula, with few rows and many, with failed models."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regaug.ensemble.weights import weigh
from regaug.exceptions import ArgumentError


def draw(seed: int, models: int, n: int, m: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randn(n, m, generator=generator, dtype=torch.float64)
    noise = torch.randn(models, n, m, generator=generator, dtype=torch.float64)
    return target + noise * torch.linspace(0.5, 2.0, models)[:, None, None], target


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 40), st.integers(1, 2))
def test_weights_are_shares(seed, models, n, m):
    weights = weigh(*draw(seed, models, n, m))
    assert weights.shape == (models,)
    assert (weights >= 0).all()
    assert weights.sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize(("rows", "counted"), [(50, 50), (200, 200), (1000, 200)])
def test_they_follow_the_formula(rows, counted):
    predicted, target = draw(0, 3, rows)
    squares = (predicted - target).square().mean(dim=(1, 2))
    wanted = (-counted / 32 * (squares / squares.min() - 1)).exp()
    torch.testing.assert_close(weigh(predicted, target), wanted / wanted.sum())


def test_few_rows_leave_weights_close_to_equal():
    predicted, target = draw(0, 4, 400)
    few, many = weigh(predicted[:, :4], target[:4]), weigh(predicted, target)
    assert few.max() < 0.9 * many.max()


def test_models_that_are_nearly_as_good_stay_with_any_number_of_rows():
    predicted, target = draw(0, 1, 5000)
    nearly = target + 1.02 * (predicted[0] - target)
    assert weigh(torch.stack([predicted[0], nearly]), target)[1] > 0.4


def test_every_target_counts_alike():
    predicted, target = draw(4, 3, 60, 2)
    factors = torch.tensor([1.0, 1e4], dtype=torch.float64)
    torch.testing.assert_close(
        weigh(predicted * factors, target * factors), weigh(predicted, target)
    )


def test_a_model_that_failed_gets_nothing():
    predicted, target = draw(1, 3, 30)
    predicted[0, 7] = float("nan")
    assert weigh(predicted, target)[0] == 0


def test_perfect_and_constant_cases():
    target = torch.ones(20, 1)
    exact = torch.stack([target, target + 1])
    torch.testing.assert_close(
        weigh(exact, target), torch.tensor([1.0, 0.0], dtype=torch.float64), atol=1e-5, rtol=0
    )
    assert weigh(torch.stack([target, target]), target).isfinite().all()


def test_wrong_arguments_are_named():
    predicted, target = draw(1, 3, 30)
    with pytest.raises(ArgumentError, match=r"`predicted` must be \(models, n, m\)"):
        weigh(predicted, target[:-1])
    with pytest.raises(ArgumentError, match="finite, got none"):
        weigh(predicted * float("nan"), target)

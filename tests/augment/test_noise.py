"""Gaussian noise: its size, its independence, and what it leaves alone."""

import pytest
import torch
from scipy.stats import kstest

from regaug.augment.noise import GaussianNoise
from regaug.exceptions import ArgumentError


def make_batch(n=16, d=4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=generator).to(dtype)
    return x, torch.randn(n, generator=generator).to(dtype)


def test_noise_is_normal_with_standard_deviation_sigma():
    x, y = make_batch(n=4000, dtype=torch.float64)
    new_x, new_y = GaussianNoise(sigma=0.3)(x, y)
    assert kstest(((new_x - x) / 0.3).flatten(), "norm").pvalue > 1e-3
    assert kstest((new_y - y) / 0.3, "norm").pvalue > 1e-3


def test_noise_of_entries_is_independent():
    x, y = make_batch(n=4000)
    new_x, new_y = GaussianNoise(sigma=1.0)(x, y)
    noise = torch.column_stack([new_x - x, new_y - y])
    correlation = torch.corrcoef(noise.T) - torch.eye(5)
    assert correlation.abs().max() < 0.08


def test_transform_adds_what_was_drawn():
    x, y = make_batch()
    augment = GaussianNoise(sigma=0.1)
    new_x, new_y = augment(x, y)
    assert torch.equal(new_x, x + augment.params.x)
    assert torch.equal(new_y, y + augment.params.y)
    again = augment.transform(x, y, augment.params)
    assert torch.equal(again[0], new_x)


def test_sigma_zero_and_neutral_params_leave_the_batch():
    x, y = make_batch()
    for new_x, new_y in (
        GaussianNoise(sigma=0.0)(x, y),
        GaussianNoise().transform(x, y, GaussianNoise.neutral),
        GaussianNoise(p=0.0)(x, y),
        GaussianNoise().eval()(x, y),
    ):
        assert torch.equal(new_x, x)
        assert torch.equal(new_y, y)


@pytest.mark.parametrize("targets", [(), (3,), (2, 2)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shape_and_dtype_are_kept_and_inputs_not_modified(targets, dtype):
    x, y = torch.ones(5, 2, 3, dtype=dtype), torch.ones(5, *targets)
    augment = GaussianNoise(sigma=0.1)
    new_x, new_y = augment(x, y)
    assert (new_x.shape, new_x.dtype) == (x.shape, x.dtype)
    assert (new_y.shape, new_y.dtype) == (y.shape, y.dtype)
    assert not torch.equal(new_x, x)
    assert (x == 1).all()
    assert (y == 1).all()


def test_half_precision_is_rounded_once():
    x, y = make_batch(dtype=torch.float16)
    augment = GaussianNoise(sigma=0.01)
    new_x, _ = augment(x, y)
    assert augment.params.x.dtype == torch.float32
    assert torch.equal(new_x, (x.double() + augment.params.x.double()).half())


def test_the_largest_half_precision_numbers_stay_finite():
    x = torch.full((50, 4), torch.finfo(torch.float16).max, dtype=torch.float16)
    assert GaussianNoise(sigma=1e4)(x, x)[0].isfinite().all()


def test_append_returns_the_originals_first():
    x, y = make_batch()
    new_x, new_y = GaussianNoise(append=True)(x, y)
    assert torch.equal(new_x[:16], x)
    assert torch.equal(new_y[:16], y)
    assert new_x.shape == (32, 4)


def test_gradient_goes_through():
    x, y = make_batch()
    x.requires_grad_()
    GaussianNoise()(x, y)[0].sum().backward()
    assert torch.equal(x.grad, torch.ones(16, 4))


def test_same_seed_same_result_whatever_the_global_generator_does():
    x, y = make_batch()
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        augment = GaussianNoise(generator=torch.Generator().manual_seed(7))
        results.append([augment(x, y)[0] for _ in range(2)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert not torch.equal(results[0][0], results[0][1])


@pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf")])
def test_sigma_must_not_be_negative(sigma):
    with pytest.raises(ArgumentError, match="`sigma` must be at least 0"):
        GaussianNoise(sigma=sigma)


def test_inputs_are_multiplied_by_factors_of_their_own():
    x, y = torch.full((4000, 2), 3.0, dtype=torch.float64), torch.zeros(4000, dtype=torch.float64)
    augment = GaussianNoise(0.0, relative=0.2)
    new_x, new_y = augment(x, y)
    assert kstest(((new_x / 3.0 - 1.0) / 0.2).flatten(), "norm").pvalue > 1e-3
    assert torch.equal(new_y, y)
    both = GaussianNoise(0.1, relative=0.2)
    new_x, new_y = both(x, y)
    assert torch.equal(new_x, x * both.params.factor + both.params.x)
    assert torch.equal(new_y, y + both.params.y)


def test_targets_may_be_kept():
    x, y = make_batch()
    new_x, new_y = GaussianNoise(0.1, targets="keep")(x, y)
    assert new_y is y
    assert not torch.equal(new_x, x)


def test_without_factors_the_noise_is_as_it_ever_was():
    x, y = make_batch(dtype=torch.float64)
    draws = torch.rand(80, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    noise = 0.1 * torch.special.ndtri(draws)
    new_x, new_y = GaussianNoise(0.1)(x, y)
    torch.testing.assert_close(new_x, x + noise[:64].reshape(16, 4))
    torch.testing.assert_close(new_y, y + noise[64:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relative": -0.1}, "`relative` must be at least 0, got -0.1"),
        ({"targets": "drop"}, "`targets` must be one of 'joint', 'keep', got 'drop'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        GaussianNoise(**options)

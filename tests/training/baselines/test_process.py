"""The Gaussian process: that of scikit-learn, good at smooth functions, hard to upset."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

from regaug.data.scaling import Scaler
from regaug.training.baselines import Rows, fit_predictor
from regaug.training.baselines import process as module
from regaug.training.baselines.likelihood import Kernel
from regaug.training.baselines.process import (
    GaussianProcess,
    find_kernels,
    make_process,
)


def draw(seed, *shape):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def split_rows(x, y, n):
    return Rows(x[:n], y[:n]), Rows(x[n:], y[n:])


def rmse(prediction, target):
    return (prediction - target).square().mean().sqrt().item()


@pytest.mark.parametrize("d", [1, 3, 50])
def test_predictions_are_those_of_scikit_learn_with_the_same_kernel(d):
    x = draw(0, 30, d) * torch.logspace(-2, 2, d) + 100.0
    y = torch.stack([x.sum(dim=1).sin(), 1e3 + x[:, 0] ** 2, draw(1, 30)], dim=1)
    rng = np.random.default_rng(2)
    kernels = [Kernel.of(rng.standard_normal(d + 3)) for _ in range(3)]
    process = make_process(Rows(x, y), kernels)
    new = draw(3, 9, d) * torch.logspace(-2, 2, d) + 100.0
    scalers = Scaler.fit(x), Scaler.fit(y)
    scaled = [
        scaler.transform(values).numpy() for scaler, values in zip(scalers, (x, y), strict=True)
    ]
    for target, kernel in enumerate(kernels):
        same = (
            ConstantKernel(kernel.smooth) * Matern(kernel.length.numpy(), nu=2.5)
            + ConstantKernel(kernel.linear / d) * DotProduct(0.0, "fixed")
            + WhiteKernel(kernel.noise)
        )
        model = GaussianProcessRegressor(same, alpha=0.0, optimizer=None)
        model.fit(scaled[0], scaled[1][:, target])
        expected = model.predict(scalers[0].transform(new).numpy())
        expected = expected * scalers[1].std[target] + scalers[1].mean[target]
        np.testing.assert_allclose(process(new)[:, target], expected, rtol=1e-6, atol=1e-8)


def test_rows_do_not_depend_on_how_many_are_predicted_together(monkeypatch):
    rows = Rows(draw(0, 20, 2), draw(1, 20, 1))
    process = fit_predictor("gp", rows, rows).predictor
    new = draw(2, 50, 2)
    expected = process(new)
    monkeypatch.setattr(module, "_BLOCK", 60)
    torch.testing.assert_close(process(new), expected)
    assert process(new[:0]).shape == (0, 1)


def test_a_smooth_function_without_noise_is_found():
    x = torch.from_numpy(np.random.default_rng(0).uniform(-2.0, 2.0, (150, 2)))
    y = (2.0 * x[:, :1]).sin() + 0.3 * x[:, 1:] ** 2
    train, validation = split_rows(x, y, 100)
    fitted = fit_predictor("gp", train, validation)
    assert rmse(fitted.predictor(validation.x), validation.y) < 0.05 * y.std()


def test_a_line_goes_on_outside_of_the_rows():
    x = torch.linspace(-1, 1, 40).double()[:, None]
    train = Rows(x, 3.0 * x + 5.0)
    found = fit_predictor("gp", train, train).predictor(torch.tensor([[3.0], [-3.0]]))
    torch.testing.assert_close(found, torch.tensor([[14.0], [-4.0]]).double(), rtol=0.02, atol=0.0)


def test_columns_that_do_not_matter_get_long_lengths():
    x = draw(0, 200, 6)
    y = (3.0 * x[:, :1]).sin() + 0.05 * draw(1, 200, 1)
    train, validation = split_rows(x, y, 150)
    fitted = fit_predictor("gp", train, validation)
    length = fitted.predictor.lengths[0]
    assert fitted.chosen["spread"] > 0
    assert length[1:].min() > 3.0 * length[0]


def test_pure_noise_is_predicted_by_its_mean():
    x, y = draw(0, 120, 5), draw(1, 120, 1)
    train, validation = split_rows(x, y, 80)
    found = fit_predictor("gp", train, validation).predictor(validation.x)
    assert rmse(found, validation.y) < 1.1 * rmse(train.y.mean().expand_as(found), validation.y)


def test_each_target_has_a_process_of_its_own():
    x = draw(0, 40, 3)
    y = torch.cat([x[:, :1].sin(), 1e4 * draw(1, 40, 1) - 7.0], dim=1)
    both = fit_predictor("gp", Rows(x, y), Rows(x, y), error=lambda prediction: 0.0).predictor
    for target in range(2):
        rows = Rows(x, y[:, [target]])
        alone = fit_predictor("gp", rows, rows, error=lambda prediction: 0.0).predictor
        torch.testing.assert_close(both(x)[:, [target]], alone(x))


def test_the_scale_of_the_rows_does_not_matter():
    x = draw(0, 60, 3)
    y = x[:, :1].sin() + 0.1 * draw(1, 60, 1)
    plain = fit_predictor("gp", Rows(x, y), Rows(x, y)).predictor
    factor = torch.tensor([1e-6, 1.0, 1e6]).double()
    rows = Rows(x * factor + 3.0, 1e5 * y - 1e3)
    scaled = fit_predictor("gp", rows, rows).predictor
    found = (scaled(x * factor + 3.0) + 1e3) / 1e5
    torch.testing.assert_close(found, plain(x), rtol=1e-3, atol=1e-3)


def test_many_rows_have_a_kernel_of_some_and_weights_of_all(monkeypatch):
    monkeypatch.setattr(module, "KERNEL_ROWS", 20)
    n = 30
    x = draw(0, n, 2)
    rows = Rows(x, x[:, :1].sin())
    first, same, other = (
        fit_predictor("gp", rows, rows, seed=seed).predictor for seed in (0, 0, 1)
    )
    assert first.weights.shape == (n, 1)
    assert torch.equal(first.lengths, same.lengths)
    assert not torch.equal(first.lengths, other.lengths)


UGLY = {
    "one row": (draw(0, 1, 3), draw(1, 1, 1)),
    "two rows": (draw(0, 2, 3), draw(1, 2, 1)),
    "fifteen rows": (draw(0, 15, 4), draw(1, 15, 1)),
    "one column": (draw(0, 30, 1), draw(1, 30, 1)),
    "equal rows": (torch.ones(20, 2), draw(1, 20, 1)),
    "twins with other targets": (draw(0, 10, 2).repeat(3, 1), draw(1, 30, 1)),
    "constant columns": (torch.cat([draw(0, 20, 1), torch.full((20, 3), 7.0)], 1), draw(1, 20, 1)),
    "constant targets": (draw(0, 20, 2), torch.full((20, 1), -3.0)),
    "whole numbers": (draw(0, 40, 3).round(), draw(1, 40, 1).round()),
    "a huge target": (draw(0, 30, 2), torch.cat([draw(1, 29, 1), torch.full((1, 1), 1e12)])),
    "a huge input": (torch.cat([draw(0, 29, 2), torch.full((1, 2), 1e12)]), draw(1, 30, 1)),
    "without noise": (draw(0, 60, 1), draw(0, 60, 1).square()),
    "wide": (draw(0, 30, 400), draw(1, 30, 1)),
    "wide twins": (draw(0, 30, 1).repeat(1, 300), draw(0, 30, 1)),
    "tiny": (1e-30 * draw(0, 20, 2), 1e-30 * draw(1, 20, 1)),
    "large": (1e30 * draw(0, 20, 2), 1e30 * draw(1, 20, 1)),
}


@pytest.mark.parametrize("name", UGLY)
def test_predictions_are_finite_for_ugly_rows(name):
    x, y = (values.double() for values in UGLY[name])
    process = fit_predictor("gp", Rows(x, y), Rows(x, y)).predictor
    far = torch.cat([x, 0.5 * x, -x, 1e3 * x, torch.full((1, x.shape[1]), 1e30)])
    assert bool(process(far).isfinite().all())
    # Never worse on its own rows than a mean is.
    assert rmse(process(x), y) <= 1.01 * rmse(y.mean().expand_as(y), y) + 1e-9 * y.abs().max()
    back = GaussianProcess.from_state(process.to_state(), x.shape[1], 1)
    assert torch.equal(back(far), process(far))


def test_one_column_has_one_kernel():
    kernels = find_kernels(draw(0, 20, 1), draw(1, 20))
    assert all(torch.equal(kernel.length, kernels[0].length) for kernel in kernels)

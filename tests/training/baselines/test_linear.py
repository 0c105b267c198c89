"""Ridge regression: one decomposition for all penalties, and the same as solving for each."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.training.baselines import Rows, fit_predictor
from regaug.training.baselines.linear import PENALTIES


def draw(seed, *shape):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def solve(x, y, penalty):
    """Return the textbook's slope and offset, on standardized columns."""
    mean, std = x.mean(0), x.std(0, correction=0)
    std = torch.where(std > 0, std, 1.0)
    z = (x - mean) / std
    slope = torch.linalg.solve(z.T @ z + penalty * torch.eye(z.shape[1]), z.T @ (y - y.mean(0)))
    return lambda new: (new - mean) / std @ slope + y.mean(0)


@given(st.integers(2, 12), st.integers(1, 15), st.integers(1, 3), st.integers(0, 999))
def test_the_error_of_every_penalty_is_seen_and_the_best_is_kept(n, d, m, seed):
    x, y, new = draw(seed, n, d), draw(seed + 1, n, m), draw(seed + 2, 4, d)
    seen = []

    def error(prediction):
        seen.append(prediction)
        return abs(len(seen) - 9.0)

    fitted = fit_predictor("ridge", Rows(x, y), Rows(new, draw(seed, 4, m)), error=error)
    for prediction, penalty in zip(seen, PENALTIES, strict=True):
        torch.testing.assert_close(prediction, solve(x, y, penalty)(new), rtol=1e-6, atol=1e-8)
    assert fitted.chosen == {"penalty": PENALTIES[8]}
    torch.testing.assert_close(fitted.predictor(new), seen[8])


def test_constant_columns_have_no_slope_and_units_do_not_matter():
    x, y = draw(0, 30, 3), draw(1, 30, 1)
    plain = fit_predictor("ridge", Rows(x, y), Rows(x, y)).predictor
    factor = torch.tensor([1e-8, 1.0, 1e8]).double()
    wider = torch.cat([x * factor + 5.0, torch.full((30, 1), 3.0)], dim=1)
    rows = Rows(wider, y)
    other = fit_predictor("ridge", rows, rows).predictor
    assert other.slope[3].item() == 0.0
    torch.testing.assert_close(other(wider), plain(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [2, 40])
def test_the_largest_penalty_is_almost_the_mean(d):
    x, y = draw(0, 20, d), draw(1, 20, 1)
    rows = Rows(x, y)
    flat = fit_predictor("ridge", rows, rows, error=lambda p: p.std().item())
    assert flat.chosen["penalty"] == PENALTIES[-1]
    torch.testing.assert_close(flat.predictor(x), y.mean().expand(20, 1), rtol=0, atol=1e-3)

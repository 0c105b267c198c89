"""Relevance by the box plot, and the arithmetic of SMOGN, against loops over the formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.functional import relevance, smogn


def slow_relevance(values, side):
    """One target at one end, from the definition."""
    values = [side * value for value in values]
    first, middle, third = np.quantile(values, [0.25, 0.5, 0.75])
    inside = [value for value in values if value <= third + 1.5 * (third - first)]
    if len(inside) == len(values):
        return [0.0] * len(values)
    found = []
    for value in values:
        if value >= max(inside) and value > middle:
            found.append(1.0)
        elif value <= middle:
            found.append(0.0)
        else:
            s = (value - middle) / (max(inside) - middle)
            found.append(s**2 * (3 - 2 * s))
    return found


@given(n=st.integers(1, 60), levels=st.sampled_from([None, 1, 2]), seed=st.integers(0, 99))
def test_relevance_is_that_of_the_box_plot(n, levels, seed):
    y = np.random.default_rng(seed).standard_t(2, size=(n, 2))
    y = y if levels is None else (levels * y).round()
    low, high = relevance(torch.from_numpy(y))
    for column in range(2):
        np.testing.assert_allclose(low[:, column], slow_relevance(y[:, column], -1), atol=1e-9)
        np.testing.assert_allclose(high[:, column], slow_relevance(y[:, column], 1), atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e300])
def test_equal_targets_are_not_rare(value):
    low, high = relevance(torch.full((9, 1), value, dtype=torch.float64))
    assert low.sum() == high.sum() == 0


def slow_smogn(x, y, *, source, partner, reach, u, noise, sigma):
    rows = []
    for k, (i, j) in enumerate(zip(source.tolist(), partner.tolist(), strict=True)):
        z_i, z_j = torch.cat([x[i], y[i]]), torch.cat([x[j], y[j]])
        if (x[i] - x[j]).square().sum().sqrt() < reach[i]:
            rows.append((1 - u[k]) * z_i + u[k] * z_j)
        else:
            rows.append(z_i + min(reach[i].item(), sigma) * torch.cat([noise[0][k], noise[1][k]]))
    return torch.stack(rows).split([x.shape[1], y.shape[1]], dim=1)


@given(
    n=st.integers(1, 12),
    k=st.integers(1, 20),
    targets=st.integers(1, 2),
    seed=st.integers(0, 99),
    sigma=st.sampled_from([0.0, 0.1, 5.0]),
)
def test_new_rows_are_those_of_the_formula(n, k, targets, seed, sigma):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    x, y = draw(n, 3), draw(n, targets)
    before = x.clone(), y.clone()
    drawn = {
        "source": torch.randint(n, (k,), generator=generator),
        "partner": torch.randint(n, (k,), generator=generator),
        "reach": draw(n).abs() * 3,
        "u": torch.rand(k, generator=generator, dtype=torch.float64),
        "noise": (draw(k, 3), draw(k, targets)),
        "sigma": sigma,
    }
    for found, expected in zip(smogn(x, y, **drawn), slow_smogn(x, y, **drawn), strict=True):
        torch.testing.assert_close(found, expected)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])

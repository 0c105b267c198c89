"""SK-Mixup: its limits, what distances are of, its two warps."""

import numpy as np
import pytest
import torch
from scipy.stats import beta, kstest
from torch import nn

from regaug import Mixup, SKMixup
from regaug.exceptions import ArgumentError, NonFiniteError


def make_batch(n=12, d=4, seed=0, targets=()):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return x, torch.randn(n, *targets, generator=generator, dtype=torch.float64)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def shares(apart, draw, alpha, width):
    """The paper's formula, pair by pair."""
    mean = sum(apart) / len(apart)
    strengths = [alpha * np.exp((1 - own / mean) / (2 * width**2)) for own in apart]
    return torch.tensor([beta.ppf(draw, tau, tau) for tau in strengths], dtype=torch.float64)


@pytest.mark.parametrize("distance", ["targets", "inputs"])
def test_samples_are_mixed_by_the_formula(distance):
    x, y = make_batch(targets=(2,))
    augment = SKMixup(0.7, width=0.8, distance=distance, alpha_y=2.0, width_y=1.5)
    new_x, new_y = augment(x, y)
    draws = torch.rand(13, generator=seeded(0), dtype=torch.float64)
    draw, partners = float(draws[0]), draws[1:].argsort()
    of = y if distance == "targets" else x
    apart = [float((of[i] - of[j]).square().sum()) for i, j in enumerate(partners)]
    lam, lam_y = shares(apart, draw, 0.7, 0.8), shares(apart, draw, 2.0, 1.5)
    assert torch.equal(augment.params.partners, partners)
    torch.testing.assert_close(augment.params.lam, lam, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(augment.params.lam_y, lam_y, rtol=1e-6, atol=1e-9)
    for new, old, share in ((new_x, x, lam[:, None]), (new_y, y, lam_y[:, None])):
        torch.testing.assert_close(
            new, share * old + (1 - share) * old[partners], rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_with_a_wide_kernel_it_is_mixup(alpha):
    x, y = make_batch()
    wide = SKMixup(alpha, width=1e6, generator=seeded(3))
    plain = Mixup(alpha, generator=seeded(3))
    for _ in range(5):
        for new, expected in zip(wide(x, y), plain(x, y), strict=True):
            torch.testing.assert_close(new, expected, rtol=0, atol=1e-8)


def test_without_strength_samples_stay_or_change_places():
    x, y = make_batch()
    weak = SKMixup(1e-9, width=1e6)
    stayed = 0
    for _ in range(20):
        new_x, new_y = weak(x, y)
        stays = bool(weak.params.lam[0] > 0.5)
        partners = torch.arange(12) if stays else weak.params.partners
        torch.testing.assert_close(new_x, x[partners])
        torch.testing.assert_close(new_y, y[partners])
        stayed += stays
    assert 3 < stayed < 17


def test_a_pair_has_its_own_beta_distribution():
    x, y = torch.zeros(2, 1, dtype=torch.float64), torch.tensor([0.0, 1.0], dtype=torch.float64)
    augment = SKMixup(2.0, width=0.5)
    drawn = (augment.draw(x, y) for _ in range(4000))
    lams = [float(own.lam[0]) for own in drawn if own.partners[0] == 1]  # at the mean distance
    assert kstest(lams, beta(2.0, 2.0).cdf).pvalue > 1e-3


def test_far_pairs_are_mixed_less():
    x, y = make_batch(n=200)
    augment = SKMixup(1.0, width=0.5)
    params = augment.draw(x, y)
    mixed = torch.minimum(params.lam, 1 - params.lam)
    apart = (y - y[params.partners]).abs()
    far, near = mixed[apart > apart.median()], mixed[apart <= apart.median()]
    assert far.max() <= near.min()


def test_at_a_layer_distances_are_of_what_it_puts_out():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).double()
    x, y = make_batch(targets=(1,))
    at = SKMixup(width=0.5, distance="inputs").at(net, "1")
    prediction, new_y = at(x, y)
    alone = SKMixup(width=0.5, distance="inputs")
    new_hidden, expected_y = alone(net[:2](x), y)
    torch.testing.assert_close(prediction, net[2](new_hidden))
    torch.testing.assert_close(new_y, expected_y)
    prediction.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


def test_targets_that_are_not_finite_have_no_distances():
    x, y = make_batch()
    y[3] = torch.nan
    with pytest.raises(NonFiniteError, match="must be finite, got nan at index"):
        SKMixup()(x, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "`alpha` must be greater than 0, got 0.0"),
        ({"width": -1.0}, "`width` must be greater than 0, got -1.0"),
        ({"width": torch.inf}, "`width` must be greater than 0, got inf"),
        ({"alpha_y": 0.0}, "`alpha_y` must be greater than 0"),
        ({"width_y": 0.0}, "`width_y` must be greater than 0"),
        ({"distance": "labels"}, "`distance` must be one of 'targets', 'inputs', got 'labels'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        SKMixup(**options)


def test_repr_shows_the_settings():
    assert repr(SKMixup(width=0.5, alpha_y=2.0)) == (
        "SKMixup(alpha=1.0, width=0.5, distance='targets', alpha_y=2.0, p=1.0, anneal=None)"
    )

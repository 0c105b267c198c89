"""Mixing of rows, and the probabilities of C-Mixup's partners."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn.neighbors import KernelDensity
from torch.autograd import gradcheck

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.functional.mixing import kernel_probabilities, mix, stretch


def make_batch(*leading, n=6, d=3, m=2, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*leading, n, d, generator=generator, dtype=torch.float64).to(dtype)
    y = torch.randn(*leading, n, m, generator=generator, dtype=torch.float64).to(dtype)
    partners = torch.randint(n, (*leading, n), generator=generator)
    return x, y, partners


def mix_by_loop(rows, lam, partners):
    return torch.stack(
        [lam * rows[i] + (1 - lam) * rows[j] for i, j in enumerate(partners.tolist())]
    )


cases = st.builds(
    make_batch,
    n=st.integers(1, 8),
    d=st.integers(1, 5),
    m=st.integers(1, 3),
    seed=st.integers(0, 999),
)


@given(cases, st.floats(0.0, 1.0))
def test_rows_are_mixed_one_by_one(case, lam):
    x, y, partners = case
    new_x, new_y = mix(x, y, lam=lam, partners=partners)
    torch.testing.assert_close(new_x, mix_by_loop(x, lam, partners))
    torch.testing.assert_close(new_y, mix_by_loop(y, lam, partners))


@given(cases, st.floats(-2.0, 3.0), st.floats(-2.0, 3.0))
def test_targets_may_have_a_share_of_their_own(case, lam, lam_y):
    x, y, partners = case
    new_x, new_y = mix(x, y, lam=lam, partners=partners, lam_y=lam_y)
    torch.testing.assert_close(new_x, mix_by_loop(x, lam, partners))
    torch.testing.assert_close(new_y, mix_by_loop(y, lam_y, partners))


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
@pytest.mark.parametrize("k", [6, 4])
def test_every_row_may_have_a_share_of_its_own(leading, k):
    x, y, partners = make_batch(*leading)
    partners = partners[..., :k]
    lam = torch.rand(
        partners.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    new_x, new_y = mix(x, y, lam=lam, partners=partners)
    for at in np.ndindex(*partners.shape):
        *batch, row = at
        own, share = tuple(batch), lam[at]
        other = int(partners[at])
        torch.testing.assert_close(new_x[at], share * x[own][row] + (1 - share) * x[own][other])
        torch.testing.assert_close(new_y[at], share * y[own][row] + (1 - share) * y[own][other])


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 4.0, 100.0])
def test_a_stretched_share_keeps_the_spread(alpha):
    evenly = (np.arange(100_000) + 0.5) / 100_000
    lam = stretch(beta(alpha, alpha).ppf(evenly), alpha=alpha)
    assert lam.mean() == pytest.approx(0.5)
    assert (lam * (1 - lam)).mean() == pytest.approx(0.0, abs=1e-4)
    middle, ends = stretch(0.5, alpha=alpha), stretch(np.array([0.0, 1.0]), alpha=alpha)
    assert middle == 0.5
    assert ends.sum() == pytest.approx(1.0)
    assert ends[0] < 0.0


@given(cases)
def test_lam_one_returns_the_batch_itself(case):
    x, y, partners = case
    new_x, new_y = mix(x, y, lam=1.0, partners=partners)
    assert new_x is x
    assert new_y is y


@given(cases)
def test_lam_zero_returns_the_partners(case):
    x, y, partners = case
    new_x, new_y = mix(x, y, lam=0.0, partners=partners)
    assert torch.equal(new_x, x[partners])
    assert torch.equal(new_y, y[partners])


@given(cases, st.floats(0.0, 1.0), st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(case, lam, seed):
    x, y, partners = case
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    moved_partners = order.argsort()[partners[order]]  # where the old partners are now
    old = mix(x, y, lam=lam, partners=partners)
    new = mix(x[order], y[order], lam=lam, partners=moved_partners)
    assert torch.equal(new[0], old[0][order])
    assert torch.equal(new[1], old[1][order])


@pytest.mark.parametrize("lam", [0.3, 1.0])
def test_fewer_partners_than_rows_mix_the_first_rows(lam):
    x, y, partners = make_batch(n=6)
    whole = mix(x, y, lam=lam, partners=partners)
    part = mix(x, y, lam=lam, partners=partners[:4])
    assert torch.equal(part[0], whole[0][:4])
    assert torch.equal(part[1], whole[1][:4])


def test_a_stack_is_mixed_like_its_matrices():
    x, y, partners = make_batch(2, 3)
    lam = torch.tensor([[0.0, 0.2, 0.5], [0.7, 0.9, 1.0]])
    new_x, new_y = mix(x, y, lam=lam, partners=partners)
    for index in np.ndindex(2, 3):
        alone = mix(x[index], y[index], lam=lam[index], partners=partners[index])
        torch.testing.assert_close((new_x[index], new_y[index]), alone)
    assert torch.equal(new_x[1, 2], x[1, 2])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("lam", [0.25, torch.tensor(0.25, dtype=torch.float64)])
def test_dtypes_are_kept_and_half_precision_is_rounded_once(dtype, lam):
    x, y, partners = make_batch(dtype=dtype)
    new_x, new_y = mix(x, y.float(), lam=lam, partners=partners)
    assert new_x.dtype == dtype
    assert new_y.dtype == torch.float32
    exact = (0.25 * x.double() + 0.75 * x.double()[partners]).to(dtype)
    torch.testing.assert_close(new_x, exact, atol=0.0 if dtype.itemsize == 2 else 1e-6, rtol=0.0)


def test_the_largest_half_precision_numbers_stay_finite():
    x = torch.full((3, 2), torch.finfo(torch.float16).max, dtype=torch.float16)
    new_x, _ = mix(x, x, lam=0.3, partners=torch.tensor([1, 2, 0]))
    assert torch.equal(new_x, x)


@pytest.mark.parametrize("leading", [(), (2,)])
def test_gradient_matches_finite_differences(leading):
    x, y, partners = make_batch(*leading)
    x.requires_grad_(), y.requires_grad_()
    assert gradcheck(lambda x, y: mix(x, y, lam=0.3, partners=partners), (x, y))


def test_the_callers_tensors_are_not_modified():
    x, y, partners = make_batch()
    copies = x.clone(), y.clone(), partners.clone()
    mix(x, y, lam=0.5, partners=partners)
    kernel_probabilities(y, bandwidth=0.5)
    assert all(torch.equal(a, b) for a, b in zip((x, y, partners), copies, strict=True))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"lam": torch.inf}, ArgumentError, "`lam` must be finite, got inf"),
        ({"lam": torch.tensor(torch.nan)}, ArgumentError, r"`lam` must be finite, got nan"),
        ({"lam": torch.ones(3)}, ArgumentError, "`lam` must be .* leading shape"),
        ({"lam_y": torch.ones(5)}, ArgumentError, "`lam_y` must be .* leading shape"),
        ({"partners": [1, 0]}, ArgumentTypeError, "`partners` must be an int64 tensor.*got list"),
        ({"partners": torch.zeros(6)}, ArgumentTypeError, "`partners` must be an int64 .*float32"),
        ({"partners": torch.arange(7)}, ArgumentError, r"k from 1 to 6, got \(7,\)"),
        ({"partners": torch.zeros(2, 6).long()}, ArgumentError, "leading shape of `x`"),
        ({"partners": torch.tensor([0, 6])}, ArgumentError, "from 0 to 5, got 6"),
        ({"partners": torch.tensor([0, -1])}, ArgumentError, "from 0 to 5, got -1"),
        ({"y": torch.zeros(5, 1)}, ArgumentError, "`x` and `y` must be .* equal leading shapes"),
        ({"x": torch.zeros(6, 3).long()}, ArgumentTypeError, "`x` must hold floating-point"),
    ],
)
def test_bad_arguments_are_named(change, error, message):
    x, y, partners = make_batch()
    arguments = {"x": x, "y": y, "lam": 0.5, "partners": partners} | change
    with pytest.raises(error, match=message):
        mix(arguments.pop("x"), arguments.pop("y"), **arguments)


@pytest.mark.parametrize("m", [1, 3])
def test_probabilities_are_those_of_the_c_mixup_script(m):
    y = make_batch(n=20, m=m)[1]
    probabilities = kernel_probabilities(y, bandwidth=0.7).numpy()
    for i in range(20):
        density = KernelDensity(kernel="gaussian", bandwidth=0.7).fit(y[i : i + 1])
        rates = np.exp(density.score_samples(y))
        np.testing.assert_allclose(probabilities[i], rates / rates.sum(), rtol=1e-10)


@given(
    n=st.integers(1, 9),
    m=st.integers(1, 3),
    scale=st.sampled_from([0.0, 1e-12, 1.0, 1e12]),
    bandwidth=st.sampled_from([5e-324, 1e-300, 1e-12, 1.0, 1e300]),
    dtype=st.sampled_from([torch.float16, torch.float32, torch.float64]),
)
def test_rows_are_distributions_for_every_bandwidth(n, m, scale, bandwidth, dtype):
    y = (make_batch(n=n, m=m)[1] * scale).clamp(-6e4, 6e4).to(dtype)
    probabilities = kernel_probabilities(y, bandwidth=bandwidth)
    assert probabilities.shape == (n, n)
    assert (probabilities >= 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(n, dtype=torch.float64))
    assert torch.equal(probabilities.diagonal(), probabilities.amax(-1))


def test_tiny_bandwidths_leave_the_row_and_its_duplicates():
    y = torch.tensor([[1.0], [2.0], [1.0]])
    expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]).double()
    assert torch.equal(kernel_probabilities(y, bandwidth=1e-200), expected)


def test_every_matrix_of_a_stack_may_have_its_bandwidth():
    y = make_batch(3)[1]
    bandwidths = torch.tensor([0.1, 1.0, 10.0], dtype=torch.float64)
    stacked = kernel_probabilities(y, bandwidth=bandwidths)
    for rows, bandwidth, alone in zip(y, bandwidths.tolist(), stacked, strict=True):
        torch.testing.assert_close(kernel_probabilities(rows, bandwidth=bandwidth), alone)


@pytest.mark.parametrize(
    ("y", "bandwidth", "error", "message"),
    [
        (torch.zeros(3, 1), 0.0, ArgumentError, "`bandwidth` must be greater than 0, got 0.0"),
        (torch.zeros(3, 1), torch.tensor(0.0), ArgumentError, "`bandwidth` must be finite"),
        (torch.zeros(3), 1.0, ArgumentError, r"`y` must be \(..., n, m\)"),
        (torch.tensor([[1.0], [torch.nan]]), 1.0, NonFiniteError, "`y` must be finite"),
    ],
)
def test_bad_kernels_are_named(y, bandwidth, error, message):
    with pytest.raises(error, match=message):
        kernel_probabilities(y, bandwidth=bandwidth)

"""FOMA as a function: properties, closed forms, gradients."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.functional import foma
from regaug.functional.foma import join, scale_joint


def make_batch(n, d, seed, targets=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=dtype)
    return x, torch.randn(n, targets, generator=generator, dtype=dtype)


batches = st.builds(
    make_batch,
    n=st.integers(2, 9),
    d=st.integers(1, 6),
    seed=st.integers(0, 999),
    targets=st.integers(1, 3),
)


@given(batches, st.floats(0.0, 1.0))
def test_new_rows_lie_between_the_batch_and_its_best_low_rank_approximation(batch, lam):
    a = torch.cat(batch, dim=1)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    best = (u[:, :1] * s[:1]) @ vh[:1]
    new = torch.cat(foma(*batch, lam=lam, k=1), dim=1)
    if len(s) > 1 and s[0] - s[1] > 1e-3 * s[0]:
        torch.testing.assert_close(new, lam * a + (1 - lam) * best, rtol=1e-7, atol=1e-7)


@given(batches, st.floats(0.0, 1.0), st.booleans())
def test_order_of_samples_does_not_matter(batch, lam, center):
    x, y = batch
    flipped = foma(x.flip(0), y.flip(0), lam=lam, k=1, center=center)
    new = foma(x, y, lam=lam, k=1, center=center)
    for one, other in zip(new, flipped, strict=True):
        torch.testing.assert_close(other.flip(0), one, rtol=1e-6, atol=1e-6)


@given(batches)
def test_inputs_are_not_changed(batch):
    before = [tensor.clone() for tensor in batch]
    foma(*batch, lam=0.0, k=0, center=True)
    assert all(torch.equal(old, new) for old, new in zip(before, batch, strict=True))


def test_keep_returns_the_original_targets():
    x, y = make_batch(8, 3, seed=0)
    new_x, new_y = foma(x, y, lam=0.2, k=1, targets="keep")
    assert new_y is y
    torch.testing.assert_close(new_x, foma(x, y, lam=0.2, k=1)[0])


def test_centered_batches_keep_their_mean():
    x, y = make_batch(20, 3, seed=0)
    x, y = x + 5.0, y - 3.0
    new_x, new_y = foma(x, y, lam=0.0, k=1, center=True)
    torch.testing.assert_close(new_x.mean(0), x.mean(0))
    torch.testing.assert_close(new_y.mean(0), y.mean(0))


def test_a_line_that_misses_the_origin_needs_centring_to_stay_a_line():
    t = torch.linspace(0, 1, 16, dtype=torch.float64)[:, None]
    x, y = t, 2.0 * t + 1.0
    centered_x, centered_y = foma(x, y, lam=0.0, k=1, center=True)
    torch.testing.assert_close(centered_y, 2.0 * centered_x + 1.0)
    plain_x, plain_y = foma(x, y, lam=0.0, k=1)
    assert (plain_y - 2.0 * plain_x - 1.0).abs().max() > 0.1


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("scale", ["trailing", "leading"])
def test_gradient_matches_finite_differences(center, scale):
    x, y = (tensor.requires_grad_() for tensor in make_batch(6, 3, seed=0))
    assert gradcheck(partial(foma, lam=0.3, k=2, center=center, scale=scale), (x, y))


def test_a_known_decomposition_gives_the_same_result():
    x, y = make_batch(12, 4, seed=0)
    for center in (False, True):
        joint = join(x, y, center=center)
        own = {"scale": "trailing", "targets": "joint", "gradient": "exact"}
        given = scale_joint(joint, x, y, lam=0.3, k=2, **own)
        torch.testing.assert_close(given, foma(x, y, lam=0.3, k=2, center=center))


def test_stacks_equal_one_by_one():
    parts = [make_batch(7, 3, seed) for seed in range(4)]
    x, y = (torch.stack(tensors) for tensors in zip(*parts, strict=True))
    lam, k = torch.tensor([0.0, 0.3, 1.0, 2.0]), torch.tensor([0, 1, 2, 4])
    new_x, new_y = foma(x, y, lam=lam, k=k, center=True)
    for i, part in enumerate(parts):
        one = foma(*part, lam=lam[i].item(), k=int(k[i]), center=True)
        torch.testing.assert_close((new_x[i], new_y[i]), one, rtol=1e-7, atol=1e-7)


def test_each_tensor_keeps_its_dtype():
    x, y = make_batch(8, 3, seed=0)
    for x_dtype, y_dtype in [
        (torch.float32, torch.float64),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float16),
    ]:
        new_x, new_y = foma(x.to(x_dtype), y.to(y_dtype), lam=0.5, k=1)
        assert (new_x.dtype, new_y.dtype) == (x_dtype, y_dtype)


def test_bad_batches_are_named():
    x, y = make_batch(8, 3, seed=0)
    with pytest.raises(NonFiniteError, match=r"`x` must be finite, got nan at index \(0, 1\)"):
        foma(x.clone().index_fill_(1, torch.tensor(1), torch.nan)[2:], y[2:], lam=0.5, k=1)
    with pytest.raises(NonFiniteError, match="`y` must be finite, got inf"):
        foma(x, y.abs() / 0.0, lam=0.5, k=1)
    with pytest.raises(ArgumentError, match="`x` and `y` must be"):
        foma(x, y[:5], lam=0.5, k=1)
    with pytest.raises(ArgumentTypeError, match=r"`y` must hold floating-point.*y.float\(\)"):
        foma(x, y.long(), lam=0.5, k=1)
    with pytest.raises(ArgumentError, match="`targets` must be one of"):
        foma(x, y, lam=0.5, k=1, targets="new")


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("targets", ["joint", "keep"])
@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # of torch's own making
def test_the_forward_derivative_is_that_of_small_steps(center, targets):
    x, y = make_batch(8, 3, seed=0)
    along = make_batch(8, 3, seed=1)[0]

    def function(x):
        return foma(x, y, lam=0.3, k=2, center=center, targets=targets)

    found = torch.func.jvp(function, (x,), (along,))[1]
    ahead, behind = function(x + 1e-6 * along), function(x - 1e-6 * along)
    for derivative, one, other in zip(found, ahead, behind, strict=True):
        torch.testing.assert_close(derivative, (one - other) / 2e-6, rtol=1e-6, atol=1e-7)

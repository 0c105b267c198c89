"""The convolution of which only the largest values are asked for, against torch's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regaug.models.peak import PeakConvolution


def make_pair(channels, out, kernel, dtype=torch.float64, seed=0):
    """The convolution and torch's with the same weights."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        ours = PeakConvolution(channels, out, kernel).to(dtype)
    plain = nn.Conv1d(channels, out, kernel).to(dtype)
    plain.load_state_dict(ours.state_dict())
    return ours, lambda x: plain(x).relu().max(dim=2).values, plain


def make_x(n, channels, positions, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, channels, positions, generator=generator, dtype=dtype)


def check_equal(pair, x, tolerance):
    ours, by_torch, plain = pair
    found = []
    for module, owner in ((ours, ours), (by_torch, plain)):
        own = x.clone().requires_grad_()
        out = module(own)
        found.append(
            (out, *torch.autograd.grad((out + out.sin()).sum(), [own, *owner.parameters()]))
        )
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@given(
    st.integers(1, 7),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(0, 20),
    st.integers(0, 99),
)
def test_values_and_gradients_are_those_of_torch(n, channels, out, kernel, more, seed):
    pair = make_pair(channels, out, kernel, seed=seed)
    check_equal(pair, make_x(n, channels, kernel + more, seed=seed), 1e-12)


def test_in_single_precision_at_the_size_of_a_protein():
    check_equal(
        make_pair(64, 96, 12, torch.float32), make_x(2, 64, 988, torch.float32).relu(), 1e-3
    )


@pytest.mark.parametrize("value", [0.0, 1.0, -5.0])
def test_where_all_positions_are_alike(value):
    ours, by_torch, plain = make_pair(2, 3, 2)
    x = torch.full((4, 2, 6), value, dtype=torch.float64)
    ours(x).sum().backward()
    by_torch(x).sum().backward()
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_channel_that_is_never_positive_has_no_gradient():
    ours, _, _ = make_pair(2, 3, 2)
    with torch.no_grad():
        ours.bias.fill_(-1e3)
    x = make_x(4, 2, 6).requires_grad_()
    out = ours(x)
    out.sum().backward()
    assert not out.any()
    assert not x.grad.any()
    assert not ours.weight.grad.any()


def test_gradcheck():
    ours, _, _ = make_pair(2, 3, 2)
    x = make_x(3, 2, 7).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, *_: ours(x), (x, *ours.parameters()))


def test_a_second_derivative_is_refused():
    ours, _, _ = make_pair(2, 3, 2)
    x = make_x(3, 2, 7).requires_grad_()
    (gradient,) = torch.autograd.grad(ours(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_autocast_and_a_compiled_model_work_as_torch_does_it():
    ours, by_torch, _ = make_pair(2, 3, 2, torch.float32)
    x = make_x(3, 2, 7, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(ours(x), by_torch(x))
    compiled = torch.compile(ours, backend="aot_eager")
    torch.testing.assert_close(compiled(x), by_torch(x))

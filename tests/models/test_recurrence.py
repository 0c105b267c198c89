"""The recurrence of which only the last state is asked for, against torch's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regaug.models.recurrence import LastState


def make_pair(columns, size, dtype=torch.float64, seed=0):
    """The recurrence and torch's GRU with the same weights."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        ours = LastState(columns, size).to(dtype)
    torch_gru = nn.GRU(columns, size, batch_first=True).to(dtype)
    torch_gru.load_state_dict(ours.state_dict())
    return ours, torch_gru


def make_x(n, time, columns, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, time, columns, generator=generator, dtype=dtype)


def state_and_gradients(module, x, last=lambda output: output):
    x = x.clone().requires_grad_()
    state = last(module(x))
    return state, torch.autograd.grad(state.sin().sum(), [x, *module.parameters()])


def check_equal(ours, torch_gru, x, tolerance):
    state, gradients = state_and_gradients(ours, x)
    expected, their_gradients = state_and_gradients(torch_gru, x, lambda output: output[1][0])
    torch.testing.assert_close(state, expected, rtol=0, atol=tolerance)
    for ours_one, theirs in zip(gradients, their_gradients, strict=True):
        scale = theirs.abs().max().clamp_min(1e-300)
        torch.testing.assert_close(ours_one / scale, theirs / scale, rtol=0, atol=tolerance)


@given(
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 7),
    st.integers(0, 99),
)
def test_states_and_gradients_are_those_of_torch(n, time, columns, size, seed):
    check_equal(*make_pair(columns, size, seed=seed), make_x(n, time, columns, seed=seed), 1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e4])
def test_zero_tiny_and_huge_inputs_too(scale):
    check_equal(*make_pair(5, 4), scale * make_x(6, 30, 5), 1e-12)


def test_in_single_precision_over_many_steps():
    ours, torch_gru = make_pair(50, 50, torch.float32)
    check_equal(ours, torch_gru, make_x(16, 163, 50, torch.float32), 1e-5)


def test_gradcheck():
    ours, _ = make_pair(3, 4)
    x = make_x(2, 5, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, *_: ours(x), (x, *ours.parameters()))


def test_inputs_need_not_be_contiguous_nor_have_a_gradient():
    ours, torch_gru = make_pair(3, 4)
    x = make_x(3, 6, 9).transpose(1, 2)[:, ::2][..., ::2]
    ours(x).sum().backward()
    torch_gru(x)[1].sum().backward()
    for one, other in zip(ours.parameters(), torch_gru.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_without_gradient_the_state_is_the_same():
    ours, torch_gru = make_pair(3, 4)
    with torch.inference_mode():
        x = make_x(3, 6, 3)
        torch.testing.assert_close(ours(x), torch_gru(x)[1][0])


def test_a_second_derivative_is_refused():
    ours, _ = make_pair(3, 4)
    x = make_x(2, 5, 3).requires_grad_()
    (gradient,) = torch.autograd.grad(ours(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_autocast_works_as_torch_does_it():
    ours, torch_gru = make_pair(3, 4, torch.float32)
    x = make_x(2, 5, 3, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(ours(x), torch_gru(x)[1][0])


def test_a_compiled_model_gives_the_same():
    ours, torch_gru = make_pair(3, 4, torch.float32)
    x = make_x(2, 5, 3, torch.float32)
    compiled = torch.compile(ours, backend="aot_eager")
    torch.testing.assert_close(compiled(x), torch_gru(x)[1][0])

"""A recurrence whose last state is all that is asked for, faster than torch's in small batches."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear


class LastState(nn.GRU):
    """A GRU that returns its last state alone.

    It has the parameters and the values of :class:`torch.nn.GRU`. On a CPU torch records several
    operations for each step and walks back through them one by one. Here a step back is three:
    whatever does not depend on the gradient is computed for all steps at once, and so is the
    gradient of the weights. The smaller the batch, the more that saves; for large ones both take
    the same time (``benchmarks/recurrence.py`` measures it).

    On other devices, under autocast and in a compiled model, torch's own GRU does the work.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Return the state ``(n, hidden_size)`` after inputs ``(n, time, columns)``."""
        by_torch = x.device.type != "cpu" or torch.is_autocast_enabled("cpu")
        if by_torch or torch.compiler.is_compiling():
            x = super().forward(x)[1][0]
            return x
        weights = self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0
        x = _LastState.apply(x.transpose(0, 1).contiguous(), *weights)  # type: ignore[no-untyped-call]
        return x


class _LastState(torch.autograd.Function):
    """From inputs ``(time, n, columns)`` to the last state ``(n, size)``, beginning with zeros.

    A step is ``r, z = sigmoid(W_i x + W_h h)``, ``new = tanh(V_i x + r * inner)`` with ``inner =
    V_h h + b``, and ``h = (1 - z) * new + z * h``. Weights have the rows of r, z and new in turn.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, inner_bias: Tensor
    ) -> Tensor:
        n_steps, n, _ = x.shape
        size = recurrent.shape[1]
        both = 2 * size
        bias = torch.cat([bias[:both] + inner_bias[:both], bias[both:]])
        gates = linear(x, weight, bias)  # (time, n, 3 size): the share of the inputs, at first
        states = gates.new_zeros(n_steps + 1, n, size)
        new = gates[..., both:].clone()
        gates[..., both:] = inner_bias[both:]  # so that r, z and inner are one product of the state
        to_all = recurrent.t().contiguous()
        state, *later = states.unbind()
        # Views of all steps are made beforehand: making one takes as long as computing with it.
        for whole, gate, reset, update, inner, new_t, next_state in zip(
            gates.unbind(),
            gates[..., :both].unbind(),
            gates[..., :size].unbind(),
            gates[..., size:both].unbind(),
            gates[..., both:].unbind(),
            new.unbind(),
            later,
            strict=True,
        ):
            whole.addmm_(state, to_all)
            gate.sigmoid_()
            new_t.addcmul_(reset, inner).tanh_()
            state = torch.lerp(new_t, state, update, out=next_state)
        ctx.save_for_backward(x, weight, recurrent, gates, states, new)
        return state.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, weight, recurrent, gates, states, new = ctx.saved_tensors
        n_steps, n, size = new.shape
        both = 2 * size
        reset, update, inner = gates[..., :size], gates[..., size:both], gates[..., both:]
        # How r, z, inner and new of a step (before their functions) change the state after it.
        slopes = gates.new_empty(n_steps, n, 4, size)
        to_new = (1 - update) * (1 - new * new)
        torch.mul(to_new * inner, reset * (1 - reset), out=slopes[:, :, 0])
        torch.mul(states[:-1] - new, update * (1 - update), out=slopes[:, :, 1])
        torch.mul(to_new, reset, out=slopes[:, :, 2])
        slopes[:, :, 3] = to_new
        flat = slopes.view(n_steps, n, 4 * size)
        for kept, own, through_state in zip(
            reversed(update.contiguous().unbind()),
            reversed(slopes.unbind()),
            reversed(flat[..., : 3 * size].unbind()),
            strict=True,
        ):
            own.mul_(grad.unsqueeze(1))  # a slope becomes a gradient
            grad = torch.addmm(grad * kept, through_state, recurrent)
        gradient = flat.view(n_steps * n, 4 * size)
        at_gates, at_new = gradient[:, :both], gradient[:, 3 * size :]
        at_state, rows = gradient[:, : 3 * size], x.view(n_steps * n, -1)
        inner_bias = at_state.sum(0)
        return (
            torch.addmm(at_gates @ weight[:both], at_new, weight[both:]).view(x.shape),
            torch.cat([at_gates.t() @ rows, at_new.t() @ rows]),
            at_state.t() @ states[:-1].view(n_steps * n, size),
            torch.cat([inner_bias[:both], at_new.sum(0)]),
            inner_bias,
        )

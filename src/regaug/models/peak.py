"""A convolution of which only the largest value of each channel is asked for."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import conv1d


class PeakConvolution(nn.Conv1d):
    """A convolution over a string, its ReLU, and the maximum over the positions.

    It has the parameters of :class:`torch.nn.Conv1d` and the values of the three in turn. One
    position of a channel decides its maximum, so one window of the input has a gradient: on a CPU
    the way back visits these alone, where torch convolves with zeros.

    On other devices, under autocast and in a compiled model, torch's own way is taken.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(n, out_channels)`` for inputs ``(n, in_channels, positions)``."""
        by_torch = x.device.type != "cpu" or torch.is_autocast_enabled("cpu")
        if by_torch or torch.compiler.is_compiling():
            x = super().forward(x).relu().amax(dim=2)
            return x
        x = _Peak.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return x


class _Peak(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        values, places = conv1d(x, weight, bias).max(dim=2)
        ctx.save_for_backward(x, weight, places, values)
        return values.relu()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, places, values = ctx.saved_tensors
        grad = grad * (values > 0)  # (n, out), through the ReLU
        n, channels, _ = x.shape
        kernel = weight.shape[2]
        # The positions of every window that has been the largest, (n, in, out * kernel).
        steps = torch.arange(kernel, device=x.device)
        at = (places[:, :, None] + steps).flatten(1)[:, None].expand(-1, channels, -1)
        windows = x.gather(2, at).view(n, channels, -1, kernel)
        grad_at = grad[:, None, :, None]
        at_weight = windows.mul_(grad_at).sum(0).transpose(0, 1)
        at_x = None
        if ctx.needs_input_grad[0]:
            shares = grad_at * weight.transpose(0, 1)  # (n, in, out, kernel)
            at_x = torch.zeros_like(x).scatter_add_(2, at, shares.flatten(2))
        return at_x, at_weight, grad.sum(0)

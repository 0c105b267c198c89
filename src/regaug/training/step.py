"""The parts of a training step: the augmented loss, the optimizer, and words for its failure."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from regaug.augment import Identity
from regaug.augment.base import AnyAugmentation
from regaug.augment.layer import AtLayer
from regaug.augment.structures import Batch, list_tensors
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.training.settings import Settings


def call_model(model: nn.Module, x: Batch) -> Any:
    """Return what a model makes of its inputs: ``model(x)``, ``model(*x)`` or ``model(**x)``.

    Example:
        >>> net = nn.Bilinear(2, 3, 1)
        >>> drug, protein = torch.zeros(5, 2), torch.zeros(5, 3)
        >>> call_model(net, (drug, protein)).shape
        torch.Size([5, 1])
        >>> call_model(net, {"input2": protein, "input1": drug}).shape
        torch.Size([5, 1])
    """
    if isinstance(x, Tensor):
        return model(x)
    return model(**x) if isinstance(x, Mapping) else model(*x)


class AugmentedLoss(nn.Module):
    """The mean squared error of a model on an augmented batch.

    A module, so that a wrapper for several processes or another precision surrounds all of it.
    ``at`` is ``augmentation.at(model, place)``, called instead of the model; None if the inputs are
    the only place. With ``inputs_too`` the inputs are augmented as well, with a draw of their own.
    """

    def __init__(
        self,
        model: nn.Module,
        augmentation: AnyAugmentation,
        at: AtLayer[Any] | None = None,
        *,
        inputs_too: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        # In a tuple, or it would count as a part of the network.
        self._augmentations = (augmentation,)
        # Plain training takes any inputs, codes among them.
        is_plain = type(augmentation) is Identity
        self._at, self._on_inputs = at, (inputs_too or at is None) and not is_plain

    def forward(
        self, x: Batch, y: Tensor, *, groups: Tensor | None = None, mask: Batch | None = None
    ) -> Tensor:
        """Return the loss of one batch, augmented within groups and to a mask of the inputs."""
        augmentation, weight, at = self._augmentations[0], 1.0, self._at
        if self._on_inputs:
            x, y = augmentation(x, y, groups=groups, mask=mask)
            weight *= augmentation.weight
        if at is None:
            prediction = call_model(self.model, x)
        else:
            at = at if groups is None else at.within(groups=groups)
            prediction, y = at.call(partial(call_model, self.model), x, y)
            weight *= augmentation.weight
        if not isinstance(prediction, Tensor):
            raise ArgumentTypeError(
                f"`model` must put out one tensor, got a {type(prediction).__name__}. Return the "
                "predictions alone."
            )
        column = as_column(prediction)
        if column.shape != y.shape:
            raise ArgumentError(
                f"`model` must put out a prediction for every target, {tuple(y.shape)}, got "
                f"{tuple(prediction.shape)}."
            )
        loss = F.mse_loss(column, y)
        return loss if weight == 1.0 else weight * loss


def as_column(prediction: Tensor) -> Tensor:
    """Return predictions as targets are kept, ``(n, m)``.

    Those of one target may be ``(n,)``, those of a window ``(n, steps, columns)``: nets are written
    in all these ways.
    """
    if prediction.ndim == 1:
        return prediction[:, None]
    return prediction.flatten(1) if prediction.ndim > 2 else prediction


def make_optimizer(model: nn.Module, settings: Settings, *, fused: bool) -> torch.optim.Optimizer:
    """Return the optimizer that the settings describe."""
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    rate, decay = settings.learning_rate, settings.weight_decay
    return kind(model.parameters(), lr=rate, weight_decay=decay, fused=fused)


@contextmanager
def tiny_as_zero() -> Iterator[None]:
    """Take numbers nearer to zero than the smallest normal one as zero for a while, on a CPU.

    The gradient of a recurrence dies away over its steps into such numbers, and processors compute
    with them many times slower. It holds for the calling thread; afterwards it is as it was.
    """
    smallest = torch.tensor(torch.finfo(torch.float64).tiny, dtype=torch.float64)
    before = (smallest / 2).item() == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def explain_divergence(
    model: nn.Module, place: str, loss: float, x: Batch, y: Tensor, settings: Settings
) -> str:
    """Return what to tell the user whose loss is not a number any more."""
    # torch's maximum, not Python's: it does not lose a NaN.
    weights = torch.stack([p.detach().abs().max().float() for p in model.parameters()]).max()
    way_out = (
        f"Lower `learning_rate` (it is {settings.learning_rate:g}), set `clip` to bound the "
        "gradient, or standardize the data."
    )
    inputs = torch.cat([tensor.reshape(-1).float() for _, tensor in list_tensors("x", x)])
    if not bool(inputs.isfinite().all() and y.isfinite().all()):
        way_out = "Remove or impute what is not finite in the data."
    return (
        f"The loss became {loss} in {place}. The batch: {len(y)} rows, inputs {_summary(inputs)}, "
        f"targets {_summary(y)}; the largest weight of the model is {weights:.3g}. {way_out}"
    )


def _summary(values: Tensor) -> str:
    finite = values[values.isfinite()].double()
    if not len(finite):
        return "without a finite value"
    spread = (
        f"from {finite.min():.3g} to {finite.max():.3g}, mean {finite.mean():.3g}, standard "
        f"deviation {finite.std(correction=0):.3g}"
    )
    left_out = values.numel() - len(finite)
    return spread if not left_out else f"{spread}, {left_out} of them NaN or infinite"

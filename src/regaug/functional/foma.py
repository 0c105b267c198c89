"""FOMA as a function of a batch, a factor and a cut (Kaufman and Azencot, ICML 2024, section 3)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regaug._checks import check_choice, check_finite, check_flag, check_rows
from regaug.exceptions import NonFiniteError
from regaug.functional.decomposition import Spectrum, decompose
from regaug.functional.precision import cast
from regaug.functional.spectral import Gradient, Scale, scale_singular_values

Targets = Literal["joint", "keep"]


@dataclass(slots=True)
class Joint:
    """The matrix ``[x, y]`` that FOMA decomposes."""

    rows: Tensor  # (..., n, d + m); the deviations from the mean if there is one
    mean: Tensor | None  # (..., 1, d + m), when the batch is decomposed about its mean
    spectrum: Spectrum  # of the rows


def join(x: Tensor, y: Tensor, *, center: bool = False) -> Joint:
    """Put inputs ``(..., n, d)`` and targets ``(..., n, m)`` side by side and decompose them.

    Whoever needs the singular values to choose the cut makes this first and hands it to
    :func:`scale_joint`, so that the work is done once.
    """
    if x.dtype != y.dtype:
        dtype = torch.promote_types(x.dtype, y.dtype)
        x, y = x.to(dtype), y.to(dtype)
    rows, mean = torch.cat([x, y], dim=-1), None
    if center:
        mean = rows.mean(dim=-2, keepdim=True)
        rows = rows - mean
    try:
        return Joint(rows, mean, decompose(rows))
    except NonFiniteError:
        check_finite(x=x, y=y)
        raise


def foma(
    x: Tensor,
    y: Tensor,
    *,
    lam: float | Tensor,
    k: int | Tensor,
    scale: Scale = "trailing",
    targets: Targets = "joint",
    gradient: Gradient = "exact",
    center: bool = False,
) -> tuple[Tensor, Tensor]:
    r"""Scale one side of the singular values of the batch ``[x, y]``.

    The rows :math:`(x_i, y_i)` form a matrix :math:`A` with best rank-k approximation :math:`A_k`.
    Scaling the trailing values by :math:`\lambda` gives :math:`\lambda A + (1 - \lambda) A_k`.

    Args:
        x: Inputs of shape ``(..., n, d)``.
        y: Targets of shape ``(..., n, m)``.
        lam: Factor, at least 0; 1 leaves the batch as it is. A number or a tensor ``(...)``.
        k: Size of the leading group, from 0 to min(n, d + m); an int or an integer tensor.
        scale: The group that is multiplied: ``"trailing"`` or ``"leading"``.
        targets: ``"joint"`` returns the targets of the new matrix (the paper), ``"keep"`` the
            original ones (the authors' released script).
        gradient: ``"exact"`` or ``"frozen"``; see :func:`scale_singular_values`.
        center: Decompose about the mean of the batch instead of about the origin.

    Returns:
        New inputs and targets; shapes, dtypes and device are kept.

    Example:
        >>> x, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.zeros(2, 1)
        >>> foma(x, y, lam=0.5, k=1)[0]
        tensor([[2.0000, 0.0000],
                [0.0000, 0.5000]])
    """
    check_rows(x, y)
    joint = join(x, y, center=check_flag("center", center))
    return scale_joint(joint, x, y, lam=lam, k=k, scale=scale, targets=targets, gradient=gradient)


def scale_joint(
    joint: Joint,
    x: Tensor,
    y: Tensor,
    *,
    lam: float | Tensor,
    k: int | Tensor,
    scale: Scale,
    targets: Targets,
    gradient: Gradient,
) -> tuple[Tensor, Tensor]:
    """Do what :func:`foma` does to a batch whose :func:`join` is known."""
    check_choice("targets", targets, ("joint", "keep"))
    rows = scale_singular_values(
        joint.rows, lam=lam, k=k, scale=scale, gradient=gradient, spectrum=joint.spectrum
    )
    if joint.mean is not None:
        rows = rows + joint.mean
    new_x, new_y = rows.split_with_sizes((x.shape[-1], y.shape[-1]), -1)
    return cast(new_x, x.dtype), cast(new_y, y.dtype) if targets == "joint" else y

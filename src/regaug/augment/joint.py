"""A batch as joint rows ``[x, y]``, one for every sample."""

import math
from typing import Generic, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_choice, check_finite, check_integer
from regaug.dimension import two_nn, two_nn_of_each
from regaug.exceptions import NotFittedError, TooFewPointsError
from regaug.functional.precision import working_dtype

T = TypeVar("T")
Dimension = int | Literal["two_nn", "two_nn_data"]
# Above this many training rows TwoNN looks at a random part of them.
_MOST_POINTS = 20_000


def as_rows(tensor: Tensor) -> Tensor:
    """Return the samples of a batch as rows ``(n, columns)``."""
    return tensor if tensor.ndim == 2 else tensor.reshape(len(tensor), -1)


def joint_rows(x: Tensor, y: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return ``[x, y]`` without its history, in ``dtype`` or at least float32."""
    dtype = working_dtype(x, y) if dtype is None else dtype
    return torch.cat([as_rows(x).detach().to(dtype), as_rows(y).detach().to(dtype)], dim=1)


def row_keys(rows: Tensor) -> list[bytes]:
    """Return the bytes of every row ``(n, columns)``, to look it up by."""
    values = rows.detach().cpu().contiguous().numpy()
    # Bytes cut by hand: a view of NumPy's as void ends torch.compile with an error.
    data, width = values.tobytes(), values.shape[1] * values.itemsize
    return [data[start : start + width] for start in range(0, len(data), width)]


def joint_dimension(x: Tensor, y: Tensor) -> int:
    """Return TwoNN's estimate for the joint rows, rounded up, less than their columns."""
    check_finite(x=x, y=y)
    points = joint_rows(x, y, torch.float64)
    # On a regular grid the estimate is infinite.
    most = points.shape[1] - 1
    return math.ceil(min(two_nn(points, max_points=_MOST_POINTS).dimension, most))


def check_dimension(name: str, value: Dimension, low: int) -> Dimension:
    """Return ``value`` if it is a way to choose a dimension."""
    if isinstance(value, str):
        return check_choice(name, value, ("two_nn", "two_nn_data"))
    return check_integer(name, value, low)


def batch_dimension(x: Tensor, y: Tensor) -> int | None:
    """Return the dimension of a batch; None if it cannot be estimated."""
    try:
        return joint_dimension(x, y)
    except TooFewPointsError:
        return None


def dimensions_of_each(batches: Tensor) -> NDArray[np.int64]:
    """Return the dimension of each of many batches of joint rows ``(batches, n, columns)``.

    -1 where it cannot be estimated.
    """
    dimension = np.minimum(two_nn_of_each(batches), batches.shape[-1] - 1)
    return np.nan_to_num(np.ceil(dimension), nan=-1.0).astype(np.int64)


def fixed_dimension(name: str, choice: Dimension | None, fitted: Tensor) -> int:
    """Return a dimension that is the same for all batches: as given, or of the training rows.

    ``fitted`` is negative as long as it is not known.
    """
    if isinstance(choice, int):
        return choice
    if fitted < 0:
        raise NotFittedError(f"`{name}` must see the training rows first: call `.fit(x, y)`.")
    return int(fitted)


# A compiled step of torch 2.6 cannot branch on a tensor's count of changes; 2.13 can.
_COMPILES_COUNTS = torch.__version__ >= "2.13"


class Known(Generic[T]):
    """Something that was found out about tensors, as long as they are what they were."""

    __slots__ = ("_tensors", "_value", "_versions")

    def __init__(self, value: T, *tensors: Tensor) -> None:
        self._value, self._tensors = value, tensors
        self._versions = [_version(tensor) for tensor in tensors]

    def of(self, *tensors: Tensor) -> T | None:
        """Return what is known of these tensors; None if they are others or have been changed."""
        if not _COMPILES_COUNTS and torch.compiler.is_compiling():
            return None  # found out once more
        for tensor, known, version in zip(tensors, self._tensors, self._versions, strict=False):
            if tensor is not known or _version(tensor) != version:
                return None
        return self._value


def _version(tensor: Tensor) -> int:
    """Return a count that grows when the tensor is changed in place."""
    return -1 if tensor.is_inference() else tensor._version

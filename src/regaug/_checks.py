"""Checks of arguments, with one wording: the name, what it must be, what came, the way out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError

_CODES = (
    "Codes such as token ids have nothing between them: act behind the layer that reads them, "
    'augment.at(model, "embedding")(x, y).'
)
T = TypeVar("T")
Number = TypeVar("Number", float, Tensor, float | Tensor)


def check_range(
    name: str,
    value: float,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
) -> float:
    """Return ``value`` as a float if it lies in [low, high] (or in (low, high])."""
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
        raise ArgumentTypeError(f"`{name}` must be a number, got {value!r}.")
    number = float(value)
    below = number <= low if open_low else number < low
    if below or number > high or not math.isfinite(number):
        raise ArgumentError(f"`{name}` must be {_interval(low, high, open_low)}, got {value!r}.")
    return number


def check_integer(
    name: str, value: int, low: int, high: int | None = None, *, hint: str = ""
) -> int:
    """Return ``value`` as an int if it is whole and lies in [low, high]."""
    try:
        number = None if isinstance(value, bool) else value.__index__()
    except (AttributeError, TypeError):  # a tensor has the method, whatever it holds
        number = None
    if number is None:
        raise ArgumentTypeError(f"`{name}` must be a whole number, got {value!r}.")
    if number < low or (high is not None and number > high):
        span = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ArgumentError(f"`{name}` must be {span}, got {number}.{hint and ' ' + hint}")
    return number


def check_choice(name: str, value: T, choices: Sequence[T]) -> T:
    """Return ``value`` if it is one of ``choices``."""
    # By type first: a tensor compares with anything, value by value. Texts are the usual case.
    is_one = (
        value in choices
        if type(value) is str
        else any(isinstance(value, type(choice)) and value == choice for choice in choices)
    )
    if not is_one:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ArgumentError(f"`{name}` must be one of {listed}, got {value!r}.")
    return value


def check_flag(name: str, value: bool) -> bool:
    """Return ``value`` if it is True or False, of NumPy too."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)


def check_list(name: str, values: Iterable[T]) -> tuple[T, ...]:
    """Return ``values`` as a tuple if they are several: a list, and not a text."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ArgumentTypeError(f"`{name}` must be a list, got {values!r}.")
    try:
        return tuple(values)
    except TypeError:  # a tensor without a dimension
        raise ArgumentTypeError(f"`{name}` must be a list, got {values!r}.") from None


def check_floating(name: str, tensor: Tensor, *, hint: str = "") -> None:
    """Refuse anything that is not a tensor of real floating-point numbers."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"`{name}` must be a torch.Tensor, got {type(tensor).__name__}. "
            f"Convert it with torch.as_tensor({name})."
        )
    if not tensor.is_floating_point():
        raise ArgumentTypeError(
            f"`{name}` must hold floating-point numbers, got {tensor.dtype}: the new values lie "
            f"between the old ones. Convert it with {name}.float().{hint and ' ' + hint}"
        )


def as_numbers(name: str, values: object) -> Tensor:
    """Return an array, a list or a tensor of real numbers as a tensor, without its history."""
    numbers: Tensor | None
    if isinstance(values, Tensor):
        numbers = values.detach()
    else:
        # Through NumPy, because torch would read a list of Python floats as float32.
        try:
            found = np.array(values)
            numbers = torch.from_numpy(found) if found.dtype.kind in "biuf" else None
        except (TypeError, ValueError):  # such as lists of unequal lengths
            numbers = None
    if numbers is None or numbers.is_complex():
        came = numbers.dtype if numbers is not None else type(values).__name__
        raise ArgumentTypeError(f"`{name}` must be real numbers, an array or a tensor, got {came}.")
    return numbers


def check_finite(**tensors: Tensor) -> None:
    """Refuse NaN and infinity in the arguments of these names; say where the first one is."""
    for name, tensor in tensors.items():
        finite = torch.isfinite(tensor)
        if not bool(finite.all()):
            first = tuple((~finite).nonzero()[0].tolist())
            raise NonFiniteError(
                f"`{name}` must be finite, got {tensor[first].item()} at index {first} "
                f"({int((~finite).sum())} of {tensor.numel()} values are NaN or infinite). "
                f"Remove or impute them first."
            )


def check_rows(x: Tensor, y: Tensor) -> None:
    """Check the two tensors of a function: stacks of rows that belong together."""
    check_floating("x", x)
    check_floating("y", y)
    is_right = x.ndim >= 2 and x.shape[:-1] == y.shape[:-1]
    _check_pair(x, y, is_right, "(..., n, d) and (..., n, m) with equal leading shapes")


def check_per_matrix(
    name: str,
    value: Number,
    shape: Sequence[int],
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    whole: bool = False,
) -> Number:
    """Check a number, or one for each matrix of a stack: it is a constant, so drop its history."""
    if not isinstance(value, Tensor):
        return check_range(name, value, low, high, open_low=open_low)
    if value.ndim and tuple(value.shape) != tuple(shape):
        raise ArgumentError(
            f"`{name}` must be a number or a tensor of the leading shape {tuple(shape)}, "
            f"got shape {tuple(value.shape)}."
        )
    if whole and (value.is_floating_point() or value.dtype == torch.bool):
        raise ArgumentTypeError(f"`{name}` must hold whole numbers, got {value.dtype}.")
    above = value > low if open_low else value >= low
    if not bool((above & (value <= high) & value.isfinite()).all()):
        span = _interval(low, high, open_low)
        must = span if span == "finite" else f"finite and {span}"
        raise ArgumentError(f"`{name}` must be {must}, got {value.tolist()}.")
    return value.detach()


def check_fits(name: str, value: float | Tensor, dtype: torch.dtype) -> None:
    """Refuse a plain number that is too large for the numbers it is multiplied with."""
    # Asking for the dtype's own limit takes longer than all the rest, and every dtype holds this.
    if isinstance(value, float) and abs(value) > 6e4 and abs(value) > torch.finfo(dtype).max:
        raise ArgumentError(f"`{name}` must be a number that {dtype} can hold, got {value!r}.")


def check_batch(x: Tensor, y: Tensor) -> None:
    """Check the two tensors of a batch: floating point, not empty, equally long."""
    check_floating("x", x, hint=_CODES)
    check_floating("y", y)
    is_right = x.ndim >= 2 and y.ndim >= 1 and len(x) == len(y)
    _check_pair(x, y, is_right, "(n, *features) and (n,) or (n, *targets) with equal n")


def _check_pair(x: Tensor, y: Tensor, is_right: bool, form: str) -> None:
    if not is_right or x.numel() == 0 or y.numel() == 0:
        must = "not be empty" if is_right else f"be {form}"
        came = f"got {tuple(x.shape)} and {tuple(y.shape)}"
        raise ArgumentError(f"`x` and `y` must {must}, {came}.")


def _interval(low: float, high: float, open_low: bool) -> str:
    if math.isinf(low) and math.isinf(high):
        return "finite"
    if math.isinf(high):
        return f"{'greater than' if open_low else 'at least'} {low:g}"
    return f"in {'(' if open_low else '['}{low:g}, {high:g}]"

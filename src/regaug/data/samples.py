"""Data sets of the user's own: read once, checked, and put into memory if they fit."""

import zlib
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from regaug.augment.structures import list_tensors, map_tensors, replace_item
from regaug.data.lazy import Inputs, Lazy, Places
from regaug.data.several import as_inputs
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError

# From a sample to its inputs, or to its targets.
Get = Callable[[Any], Any]
# Path, shape and type of the tensors of a sample.
Signature = list[tuple[str, tuple[int, ...], torch.dtype]]

# Inputs that take more memory than that are read when they are asked for.
MOST_BYTES = 256 * 2**20
_SAY_WHERE = (
    "Say where they are with functions of a sample: inputs=lambda sample: ..., "
    "targets=lambda sample: ..."
)
_PAD = "Pad or crop them in the data set, or with `inputs`: they have to share a batch."


class Samples:
    """A data set of the user's own.

    Args:
        dataset: A map-style data set of ``(x, y)``, anything with a length that can be indexed; or
            the pair of all ``x`` and all ``y``, as tensors or arrays. ``x`` is a tensor, or tensors
            in a tuple, a list or a dict.
        name: What it is called in errors.
        inputs: From a sample to ``x``, if samples are not ``(x, y)``.
        targets: From a sample to ``y`` likewise.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        name: str = "dataset",
        inputs: Get | None = None,
        targets: Get | None = None,
    ) -> None:
        self.name, self._inputs, self._targets = name, inputs, targets
        self._dataset = dataset
        self._pair = _as_pair(dataset) if inputs is None and targets is None else None
        if self._pair is None:
            _check_map_style(name, dataset)
        self._n = len(dataset) if self._pair is None else len(self._pair[1])
        if not self._n:
            raise ArgumentError(f"`{name}` must have samples, got none.")

    def __len__(self) -> int:
        return self._n

    @property
    def size(self) -> int:
        """Bytes that all inputs take in memory, if all samples are like the first one."""
        if self._pair is not None:  # there they are
            return 0
        tensors = list_tensors("x", self._read_inputs(self._dataset[0], 0))
        return self._n * sum(tensor.numel() * tensor.element_size() for _, tensor in tensors)

    def read(self, *, lazily: bool) -> tuple[Tensor | Inputs, Tensor]:
        """Return all inputs and targets ``(n, m)``: every sample is read.

        With ``lazily`` the inputs are not kept, but read again whenever they are asked for.
        """
        if self._pair is not None:
            return self._read_pair(*self._pair)
        x, y = self._read_sample(0)
        expected, width = _signature(x), y.shape
        whole = None if lazily else map_tensors(lambda one: one.new_empty(self._n, *one.shape), x)
        targets = torch.empty(self._n, max(1, width.numel()))
        digests = np.zeros(self._n, dtype=np.uint32)
        for number in range(self._n):
            if number:  # reading may take long
                x, y = self._read_sample(number)
            self._check_like_first(number, _signature(x), expected)
            if y.shape != width:
                raise ArgumentError(
                    f"`{self.name}` must have targets of one shape, got {tuple(width)} in sample 0 "
                    f"and {tuple(y.shape)} in sample {number}."
                )
            targets[number] = y.reshape(-1)
            if whole is None:
                digests[number] = _digest(x)
            else:
                for (_, all_of_them), (_, own) in zip(
                    list_tensors("x", whole), list_tensors("x", x), strict=True
                ):
                    all_of_them[number] = own
        if whole is not None:
            return as_inputs(whole), targets
        return SampleInputs(self._dataset, self._inputs, self.name, x, digests), targets

    def _read_pair(self, x: Any, y: Any) -> tuple[Tensor | Inputs, Tensor]:
        x, y = self._convert("inputs", x), self._convert_targets(y)
        for path, tensor in list_tensors("x", x):
            if not tensor.ndim or len(tensor) != self._n:
                raise ArgumentError(
                    f"`{self.name}` must have an input for each of its {self._n} targets, got "
                    f"shape {tuple(tensor.shape)} in {path}."
                )
            _check_finite(self.name, path, tensor)
        _check_finite(self.name, "y", y)
        if isinstance(x, Tensor) and x.ndim == 1 and x.is_floating_point():
            x = x[:, None]
        return as_inputs(x), y.reshape(self._n, -1)

    def _read_sample(self, number: int) -> tuple[Any, Tensor]:
        sample = self._dataset[number]
        x = self._read_inputs(sample, number)
        found = _second(self.name, sample) if self._targets is None else self._targets(sample)
        y = self._convert_targets(found, f" in sample {number}")
        for path, tensor in [*list_tensors("x", x), ("y", y)]:
            _check_finite(self.name, path, tensor, number)
        return x, y

    def _read_inputs(self, sample: Any, number: int) -> Any:
        return read_inputs(sample, self._inputs, self.name, number)

    def _convert(self, what: str, value: Any, place: str = "") -> Any:
        return _convert(self.name, what, value, place)

    def _convert_targets(self, value: Any, place: str = "") -> Tensor:
        y = self._convert("targets", value, place)
        if not isinstance(y, Tensor):
            raise ArgumentTypeError(
                f"`{self.name}` must have one tensor of targets for a sample, got a "
                f"{type(y).__name__}{place}. Put them side by side, with torch.cat or torch.stack: "
                "targets=lambda sample: ..."
            )
        if not y.is_floating_point():
            raise ArgumentTypeError(
                f"`{self.name}` must have floating-point targets, got {y.dtype}{place}. Amounts "
                "and counts are converted with .float(), or by targets=lambda sample: "
                "float(sample[1]). Labels of classes are no targets of a regression."
            )
        if not y.numel():
            raise ArgumentError(f"`{self.name}` must have targets, got an empty tensor{place}.")
        return y

    def _check_like_first(self, number: int, found: Signature, expected: Signature) -> None:
        if found == expected:
            return
        if [path for path, _, _ in found] != [path for path, _, _ in expected]:
            raise ArgumentError(
                f"`{self.name}` must have inputs of one form, got {_listed(expected)} in sample 0 "
                f"and {_listed(found)} in sample {number}."
            )
        pairs = zip(expected, found, strict=True)
        (path, *first), (_, *other) = next(pair for pair in pairs if pair[0] != pair[1])
        if first[0] == other[0]:
            raise ArgumentTypeError(
                f"`{self.name}` must have inputs of one type, got {first[1]} in {path} of sample 0 "
                f"and {other[1]} in sample {number}. Convert them with .float()."
            )
        raise ArgumentError(
            f"`{self.name}` must have inputs of one shape, got {first[0]} in {path} of sample 0 "
            f"and {other[0]} in sample {number}. {_PAD}"
        )


class SampleInputs(Lazy):
    """The inputs of a data set of the user's own, read when they are asked for.

    Attributes:
        digests: A checksum of every sample, as it was read first.
    """

    def __init__(
        self, dataset: Any, inputs: Get | None, name: str, sample: Any, digests: NDArray[np.uint32]
    ) -> None:
        is_one = isinstance(sample, Tensor)
        numbers = sum(tensor.numel() for _, tensor in list_tensors("x", sample))
        super().__init__(len(digests), tuple(sample.shape) if is_one else (numbers,))
        self.digests = digests
        self._dataset, self._inputs, self._name = dataset, inputs, name

    def _read(self, place: int) -> Any:
        return read_inputs(self._dataset[place], self._inputs, self._name, place)

    def _stack(self, places: Places) -> Any:
        if not len(places):
            return map_tensors(lambda one: one.new_empty(0, *one.shape), self._read(0))
        samples = [self._read(place) for place in places.tolist()]
        tensors = zip(*(list_tensors("x", sample) for sample in samples), strict=True)
        stacked = iter([torch.stack([own for _, own in each]) for each in tensors])
        return map_tensors(lambda _: next(stacked), samples[0])


def read_inputs(sample: Any, inputs: Get | None, name: str, number: int) -> Any:
    """Return the inputs of a sample: a tensor, or tensors in a tuple, a list or a dict."""
    found = _first(name, sample) if inputs is None else inputs(sample)
    x = _convert(name, "inputs", found, f" in sample {number}")
    # One number is a vector of one; a code, such as an index, is what an embedding takes.
    is_number = isinstance(x, Tensor) and not x.ndim and x.is_floating_point()
    return x.reshape(1) if is_number else x


def row_digests(x: Tensor | Inputs) -> NDArray[np.uint32]:
    """Return a checksum of the inputs of every sample, equal for equal ones."""
    known: NDArray[np.uint32] | None = getattr(x, "digests", None)
    if known is not None:
        return known
    return np.array([_digest(x[number]) for number in range(len(x))], dtype=np.uint32)


def _digest(x: Any) -> int:
    digest = 0
    for _, tensor in list_tensors("x", x):
        digest = zlib.crc32(tensor.contiguous().numpy().tobytes(), digest)
    return digest


def _signature(x: Any) -> Signature:
    return [(path, tuple(own.shape), own.dtype) for path, own in list_tensors("x", x)]


def _listed(signature: Signature) -> str:
    return ", ".join(path for path, _, _ in signature) or "nothing"


def _as_pair(dataset: Any) -> tuple[Any, Any] | None:
    """Return all inputs and all targets if that is what there is; None for single samples."""
    if type(dataset) is TensorDataset and len(dataset.tensors) == 2:
        return dataset.tensors[0], dataset.tensors[1]
    if not isinstance(dataset, tuple | list) or len(dataset) != 2:
        return None
    # A list, or a tuple, of two samples has pairs in it.
    is_pair = _is_array(dataset[1]) and dataset[1].ndim > 0
    if isinstance(dataset, list):
        is_pair = is_pair and _is_array(dataset[0])
    return (dataset[0], dataset[1]) if is_pair else None


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)


def _check_map_style(name: str, dataset: Any) -> None:
    way_out = "Give anything that has a length and can be indexed, or the pair (x, y) of tensors."
    if isinstance(dataset, DataLoader):
        way_out = "Give its data set, loader.dataset: the study makes batches itself."
    has_both = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    if not has_both or isinstance(dataset, DataLoader | IterableDataset | Mapping | str):
        raise ArgumentTypeError(
            f"`{name}` must be a map-style data set of (x, y), got {type(dataset).__name__}. "
            f"{way_out}"
        )


def _first(name: str, sample: Any) -> Any:
    return _check_sample(name, sample)[0]


def _second(name: str, sample: Any) -> Any:
    return _check_sample(name, sample)[1]


def _check_sample(name: str, sample: Any) -> Any:
    if isinstance(sample, tuple | list) and len(sample) == 2:
        return sample
    if isinstance(sample, Mapping):
        came = f"a dict of {', '.join(map(repr, sample)) or 'nothing'}"
    elif isinstance(sample, tuple | list):
        came = f"a {type(sample).__name__} of {len(sample)}"
    elif _is_array(sample):
        came = f"one tensor of shape {tuple(sample.shape)}, without targets"
    else:
        came = f"a {type(sample).__name__}"
    raise ArgumentError(f"`{name}` must have samples (x, y), got {came}. {_SAY_WHERE}")


def _convert(name: str, what: str, value: Any, place: str) -> Any:
    """Return tensors: floating-point ones in float32, others as they are."""
    if isinstance(value, Mapping):
        for key in value:
            value = replace_item(value, key, _convert(name, what, value[key], place))
        return value
    if isinstance(value, tuple | list) and not all(isinstance(item, Number) for item in value):
        for key, item in enumerate(value):
            value = replace_item(value, key, _convert(name, what, item, place))
        return value
    if not isinstance(value, Tensor | np.ndarray | np.generic | Number | tuple | list) or (
        isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "biuf"
    ):
        kind = f" of {value.dtype}" if isinstance(value, np.ndarray) else ""
        raise ArgumentTypeError(
            f"`{name}` must have tensors, arrays or numbers as {what}, got {type(value).__name__}"
            f"{kind}{place}. Convert them in the data set, or say how: {what}=lambda sample: ..."
        )
    tensor = torch.as_tensor(value).detach().cpu()
    if tensor.is_complex():
        raise ArgumentTypeError(
            f"`{name}` must have real numbers as {what}, got {tensor.dtype}{place}."
        )
    return tensor.float() if tensor.is_floating_point() else tensor


def _check_finite(name: str, path: str, tensor: Tensor, number: int | None = None) -> None:
    """Refuse NaN and infinity in a sample, or in the rows of all of them."""
    if not tensor.is_floating_point():
        return
    finite = tensor.isfinite()
    if bool(finite.all()):
        return
    if number is None:
        number = int((~finite.reshape(len(tensor), -1)).any(dim=1).nonzero()[0])
    value = tensor[~finite][0].item() if tensor.ndim else tensor.item()
    raise NonFiniteError(
        f"`{name}` must be finite, got {value} in {path} of sample {number}. Remove such samples, "
        "or impute what is missing."
    )

"""States: everything comes back as it was, and damage is found."""

import json
import math
import tempfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regaug import _random, _tensors
from regaug.exceptions import ArgumentError, ArgumentTypeError, FileError
from regaug.training import state as module
from regaug.training.state import read_state, write_state

DTYPES = sorted(module.DTYPES, key=str)


def same(a, b):
    """Equal in value, type and order, NaN and the sign of zero included."""
    if isinstance(a, Tensor):
        if not isinstance(b, Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        raw_a, raw_b = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (a, b))
        return torch.equal(raw_a, raw_b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=False)
        return len(a) == len(b) and all(same(x, y) for x, y in pairs)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=False))
    if isinstance(a, float):
        return repr(a) == repr(b)
    return a == b


def round_trip(state):
    with tempfile.TemporaryDirectory() as parent:
        write_state(Path(parent, "saved"), state)
        return read_state(Path(parent, "saved"))


def metadata(path):
    with safe_open(path, framework="pt") as file:
        return file.metadata()["regaug"]


def make_tensor(shape, dtype, seed):
    values = torch.randn(shape, generator=_random.make_generator(seed)) * 100
    return values.to(dtype)


tensors = st.builds(
    make_tensor,
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(DTYPES),
    st.integers(0, 99),
)
# Keys and strings that look like the format's own marks, and half of a surrogate pair.
ugly = st.sampled_from(["$tensor", "$dict", "$float", "#0", "__metadata__", "", "a.b", "\ud800"])
strings = st.text(max_size=5) | ugly
scalars = st.none() | st.booleans() | st.integers() | st.floats() | strings
keys = strings | st.integers() | st.floats(allow_nan=False) | st.none()
values = st.recursive(
    scalars | tensors,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(strings, values, max_size=5))
def test_any_state_comes_back_as_it_was(state):
    assert same(round_trip(state), state)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e16, 1.0])
def test_every_float_comes_back_from_valid_json(tmp_path, number):
    def refuse(constant):
        raise AssertionError(constant)

    write_state(tmp_path / "saved", {"number": number, number: 1})
    assert same(read_state(tmp_path / "saved"), {"number": number, number: 1})
    json.loads(metadata(tmp_path / "saved"), parse_constant=refuse)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3, 2)])
def test_every_dtype_and_shape_comes_back(dtype, shape):
    state = {"tensor": make_tensor(shape, dtype, seed=1)}
    assert same(round_trip(state), state)


def test_views_come_back_with_memory_of_their_own():
    base = torch.arange(12.0).reshape(3, 4)
    negated = torch._neg_view(base)  # its memory holds the opposite sign
    state = {"whole": base, "same": base, "turned": base.T, "column": base[:, 1], "neg": negated}
    state["expanded"] = torch.ones(1, 3).expand(2, 3)
    state["weight"] = nn.Parameter(base)
    back = round_trip(state)
    assert same(back, state | {"neg": -base})
    assert type(back["weight"]) is Tensor
    pointers = {tensor.untyped_storage().data_ptr() for tensor in back.values()}
    assert len(pointers) == len(back)
    back["whole"].zero_()
    assert base.sum() == 66


def test_names_that_safetensors_or_the_format_reserve_come_back():
    ones = torch.ones(2)
    state = {"a": {"b": ones}, "a.b": 2 * ones, "#1": 3 * ones, "#0": 4 * ones}
    state |= {"__metadata__": 5 * ones, "\n": 6 * ones, "#3": 7 * ones}
    assert same(round_trip(state), state)
    assert same(round_trip({"#1": ones, "\n": 2 * ones}), {"#1": ones, "\n": 2 * ones})


def test_subclasses_come_back_as_what_they_derive_from():
    back = round_trip({"ordered": OrderedDict(a=np.float64(0.5)), "size": torch.Size([2])})
    assert same(back, {"ordered": {"a": 0.5}, "size": (2,)})


def test_other_programs_find_the_tensors_by_their_names(tmp_path):
    state = {str(dtype): make_tensor((3,), dtype, seed=2) for dtype in reversed(DTYPES)}
    state |= {"Größe 😀": torch.ones(1), "empty": torch.ones(0, 2), "net": {"bias": torch.ones(())}}
    write_state(tmp_path / "saved", state)
    found = load_file(tmp_path / "saved")
    expected = state | {"net.bias": state["net"]["bias"]}
    del expected["net"]
    assert found.keys() == expected.keys()
    content = (tmp_path / "saved").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    del header["__metadata__"]
    for name, entry in header.items():  # who reads numbers in place needs them aligned
        assert entry["data_offsets"][0] % found[name].itemsize == 0
    assert all(same(found[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize(
    ("value", "kind"),
    [({1, 2}, "set"), (np.float32(1), "float32"), (np.zeros(2), "ndarray"), (1j, "complex")],
)
def test_what_cannot_be_saved_is_named_with_its_place(tmp_path, value, kind):
    state = {"optimizer": {"state": {0: {"foo": [1, value]}}}}
    with pytest.raises(ArgumentTypeError, match=rf"{kind} at optimizer\.state\.0\.foo\.1\."):
        write_state(tmp_path / "saved", state)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(2, dtype=torch.complex128),
        torch.eye(2).to_sparse(),
        torch.ones(1, device="meta"),
    ],
    ids=["complex", "sparse", "meta"],
)
def test_tensors_that_cannot_be_saved_are_named_with_their_place(tmp_path, tensor):
    with pytest.raises(ArgumentTypeError, match=r"at net\.weight\."):
        write_state(tmp_path / "saved", {"net": {"weight": tensor}})


def test_a_key_that_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"as keys, got \(1, 2\) in a\.b\."):
        write_state(tmp_path / "saved", {"a": {"b": {(1, 2): 0}}})


def test_a_state_that_is_no_dict_or_contains_itself_is_refused(tmp_path):
    with pytest.raises(ArgumentTypeError, match="must be a dict"):
        write_state(tmp_path / "saved", [1, 2])
    state = {}
    state["itself"] = state
    with pytest.raises(ArgumentError, match="must not contain itself"):
        write_state(tmp_path / "saved", state)


STATE = {"epoch": 6, "rate": 0.125, "net": {"weight": torch.arange(64.0)}, "ids": {3: (1, 2)}}


@pytest.fixture
def saved(tmp_path):
    write_state(tmp_path / "saved", STATE)
    return tmp_path / "saved"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_found(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileError, match=r"Cannot use .*saved: .* damaged\."):
        read_state(saved)


def test_a_flipped_bit_is_found_wherever_it_is(saved):
    content, found = saved.read_bytes(), 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 7
        saved.write_bytes(damaged)
        try:
            back = read_state(saved)
        except FileError:
            found += 1
        else:
            assert same(back, STATE)  # a space may become a tab
    assert found >= 0.99 * len(content)


def test_a_file_of_other_programs_is_refused(tmp_path):
    save_file({"weight": torch.ones(2)}, tmp_path / "foreign")
    with pytest.raises(FileError, match="regaug did not write it"):
        read_state(tmp_path / "foreign")
    save_file({"weight": torch.ones(2)}, tmp_path / "foreign", {"regaug": "[]"})
    with pytest.raises(FileError, match="regaug did not write it"):
        read_state(tmp_path / "foreign")


def test_another_format_is_refused_with_the_version_that_wrote_it(saved):
    document = json.loads(metadata(saved)) | {"format": 2, "regaug": "9.8.7"}
    save_file(load_file(saved), saved, {"regaug": json.dumps(document)})
    with pytest.raises(FileError, match=r"format 2, written by regaug 9\.8\.7, .*Use the version"):
        read_state(saved)


def forge(path, tree):
    """Write another tree, with a checksum that fits."""
    path.write_bytes(_tensors.dump_tensors({"net.weight": torch.ones(2)}, {"state": tree})[0])


def test_a_reference_to_no_tensor_is_named(saved):
    forge(saved, {"net": {"$tensor": "net.bias"}})
    with pytest.raises(FileError, match=r"saved: the tensor 'net\.bias' is missing"):
        read_state(saved)
    forge(saved, {"net": {"$tensor": 10_000 * "a"}})
    with pytest.raises(FileError, match="is missing") as caught:
        read_state(saved)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    "tree",
    [
        *([], None, "", {"$tensor": "net.weight"}, {"$tuple": []}),
        *({"a": {"$dict": 5}}, {"a": {"$dict": [[[], 1]]}}, {"a": {"$float": "one"}}),
        *({"a": {"$tensor": []}}, {"a": {"$tuple": 1}}),
    ],
)
def test_a_tree_of_another_form_is_refused(saved, tree):
    forge(saved, tree)
    with pytest.raises(FileError, match="saved: its content does not have the form of a state"):
        read_state(saved)


def test_metadata_without_a_state_are_refused(saved):
    saved.write_bytes(_tensors.dump_tensors({}, {})[0])
    with pytest.raises(FileError, match="form of a state"):
        read_state(saved)

"""Saved states: everything comes back, damage is found, and a failed write changes nothing."""

import errno
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import zlib
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import regaug
from regaug import _random
from regaug.exceptions import ArgumentError, ArgumentTypeError, CheckpointError
from regaug.training import state_files
from regaug.training.checkpoint import Checkpoints, load_weights
from regaug.training.state_files import read_state, write_state

FILES = ["state.json", "state.safetensors"]
DTYPES = sorted(state_files.DTYPES, key=str)


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
    json.loads((tmp_path / "saved" / "state.json").read_text(), parse_constant=refuse)


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
    from safetensors.torch import load_file

    state = {str(dtype): make_tensor((3,), dtype, seed=2) for dtype in reversed(DTYPES)}
    state |= {"Größe 😀": torch.ones(1), "empty": torch.ones(0, 2), "net": {"bias": torch.ones(())}}
    write_state(tmp_path / "saved", state)
    found = load_file(tmp_path / "saved" / "state.safetensors")
    expected = state | {"net.bias": state["net"]["bias"]}
    del expected["net"]
    assert found.keys() == expected.keys()
    content = (tmp_path / "saved" / "state.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    for name, entry in header.items():  # who reads numbers in place needs them aligned
        assert entry["data_offsets"][0] % found[name].itemsize == 0
    assert all(same(found[name], tensor) for name, tensor in expected.items())


def trained():
    """A net with running statistics, and its optimizer, after two steps."""
    generator = _random.make_generator(0)
    with _random.seeded(0):
        net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, betas=(0.8, 0.99))
    for _ in range(2):
        step(net, optimizer, torch.randn(16, 3, generator=generator))
    return net, optimizer, generator


def step(net, optimizer, x):
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).square().mean().backward()
    optimizer.step()


def test_a_training_continues_as_if_it_had_not_stopped():
    (net, optimizer, generator), (other, other_optimizer, other_generator) = trained(), trained()
    foma, other_foma = regaug.FOMA(), regaug.FOMA()
    foma(torch.randn(8, 3, generator=_random.make_generator(1)), torch.zeros(8, 1))
    back = round_trip(
        {
            "net": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "augmentation": foma.state_dict(),
            "generator": generator.get_state(),
        }
    )
    step(other, other_optimizer, torch.ones(16, 3))
    torch.rand(5, generator=other_generator)
    load_weights(other, back["net"], source="saved")
    other_optimizer.load_state_dict(back["optimizer"])
    load_weights(other_foma, back["augmentation"], source="saved")
    other_generator.set_state(back["generator"])
    assert same(other_optimizer.state_dict(), optimizer.state_dict())
    for _ in range(3):
        step(net, optimizer, torch.randn(16, 3, generator=generator))
        step(other, other_optimizer, torch.randn(16, 3, generator=other_generator))
    assert same(dict(other.state_dict()), dict(net.state_dict()))
    assert torch.equal(foma.generator.get_state(), other_foma.generator.get_state())


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


def test_the_folder_holds_two_files_and_nothing_is_beside_it(saved):
    assert sorted(os.listdir(saved)) == FILES
    assert os.listdir(saved.parent) == ["saved"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_found(saved, file, share):
    content = (saved / file).read_bytes()
    (saved / file).write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match=f"{file}: .* damaged. Delete the folder .*saved "):
        read_state(saved)


@pytest.mark.parametrize("file", FILES)
def test_a_flipped_bit_is_found_wherever_it_is(saved, file):
    content, found = (saved / file).read_bytes(), 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 7
        (saved / file).write_bytes(damaged)
        try:
            back = read_state(saved)
        except CheckpointError:
            found += 1
        else:
            assert same(back, STATE)  # 1e-05 and 1E-05 are one number
    assert found >= 0.99 * len(content)


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named(saved, file):
    (saved / file).unlink()
    with pytest.raises(CheckpointError, match=f"{file}: No such file"):
        read_state(saved)


@pytest.mark.parametrize("text", [b"[]", b"7", b"{}", b'{"format": 1}', b"[" * 100_000, b"\xff"])
def test_json_of_another_form_is_refused(saved, text):
    (saved / "state.json").write_bytes(text)
    with pytest.raises(CheckpointError, match=r"state\.json: it is not a complete JSON file"):
        read_state(saved)


def forge(folder, **changes):
    """Change the JSON file and make its sum right again."""
    document = json.loads((folder / "state.json").read_text()) | changes
    del document["crc32"]
    document["crc32"] = zlib.crc32(json.dumps(document, separators=(",", ":")).encode())
    (folder / "state.json").write_text(json.dumps(document))


def test_another_format_is_refused_with_the_version_that_wrote_it(saved):
    forge(saved, format=2, regaug="9.8.7")
    with pytest.raises(CheckpointError, match=r"format 2, written by regaug 9\.8\.7"):
        read_state(saved)


def test_a_reference_to_no_tensor_is_named(saved):
    forge(saved, state={"net": {"$tensor": "net.bias"}})
    with pytest.raises(CheckpointError, match=r"the tensor 'net\.bias' is missing"):
        read_state(saved)


@pytest.mark.parametrize(
    "tree", [[], {"a": {"$dict": 5}}, {"a": {"$dict": [[[], 1]]}}, {"a": {"$float": "one"}}, None]
)
def test_a_tree_of_another_form_is_refused(saved, tree):
    forge(saved, state=tree)
    with pytest.raises(CheckpointError, match="does not have the form of a state"):
        read_state(saved)


def test_a_document_without_its_parts_is_refused(saved):
    forge(saved, tensors=None)
    with pytest.raises(CheckpointError, match="damaged"):
        read_state(saved)


def test_a_file_that_is_not_safetensors_is_refused(saved):
    data = b"not safetensors"
    (saved / "state.safetensors").write_bytes(data)
    forge(saved, tensors={"bytes": len(data), "crc32": zlib.crc32(data)})
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        read_state(saved)


def test_no_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(CheckpointError, match="There is no checkpoint .*nowhere"):
        read_state(tmp_path / "nowhere")


def test_a_second_write_replaces_the_first(saved):
    write_state(saved, {"epoch": 7})
    assert read_state(saved) == {"epoch": 7}
    assert os.listdir(saved.parent) == ["saved"]


def test_a_leftover_of_a_process_with_the_same_number_is_no_obstacle(tmp_path):
    (tmp_path / f".saved.{os.getpid()}.tmp").mkdir()
    write_state(tmp_path / "saved", STATE)
    assert os.listdir(tmp_path) == ["saved"]


def test_a_kill_between_the_two_renames_leaves_the_earlier_state(saved):
    saved.rename(saved.with_name("saved.previous"))
    assert same(read_state(saved), STATE)
    write_state(saved, {"epoch": 7})
    assert read_state(saved) == {"epoch": 7}
    assert os.listdir(saved.parent) == ["saved"]


def test_a_folder_with_other_files_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("three years")
    with pytest.raises(CheckpointError, match=r"holds something else \(thesis\.tex\)"):
        write_state(tmp_path, STATE)
    assert os.listdir(tmp_path) == ["thesis.tex"]


class Failing:
    """Calls the real function, except that one of the calls fails."""

    def __init__(self, real, at, error):
        self.real, self.left, self.error = real, at, error

    def __call__(self, *args, **kwargs):
        self.left -= 1
        if self.left == -1:
            raise self.error
        return self.real(*args, **kwargs)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
STAGES = [
    *[("builtins.open", n) for n in range(2)],  # the two files
    *[("os.fsync", n) for n in range(4)],  # the two files, their folder, the folder above
    ("os.replace", 0),
    ("pathlib.Path.mkdir", 0),
    ("pathlib.Path.mkdir", 1),
]


@pytest.mark.parametrize(("function", "at"), STAGES)
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
def test_a_failed_save_changes_nothing(tmp_path, monkeypatch, function, at, error):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(5, STATE | {"epoch": 5})
    checkpoints.save(6, STATE)
    with monkeypatch.context() as patch:
        module, _, name = function.rpartition(".")
        owner = Path if module == "pathlib.Path" else {"os": os}.get(module, state_files)
        real = open if name == "open" else getattr(owner, name)
        failing = Failing(real, at, error)
        # A class turns a plain function into a method, an object it leaves.
        stand_in = (lambda *a, **k: failing(*a, **k)) if owner is Path else failing
        patch.setattr(owner, name, stand_in, raising=False)
        with pytest.raises((CheckpointError, KeyboardInterrupt)) as caught:
            checkpoints.save(7, {"epoch": 7})
    if error is FULL:
        assert str(caught.value) == (
            f"Could not write the checkpoint {tmp_path / 'epoch-00007'}: No space left on device. "
            "Free some space and run the same command again. "
            "The checkpoint of epoch 6 is untouched."
        )
    assert sorted(os.listdir(tmp_path)) == ["epoch-00005", "epoch-00006"]
    assert same(checkpoints.latest(), (6, STATE))


@pytest.mark.parametrize(("function", "at"), [*STAGES[:6], ("os.replace", 0), ("os.replace", 1)])
def test_a_failed_write_leaves_the_state_it_would_replace(saved, monkeypatch, function, at):
    module, name = function.split(".")
    owner, real = (os, getattr(os, name)) if module == "os" else (state_files, open)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, Failing(real, at, FULL), raising=False)
        with pytest.raises(CheckpointError, match="No space left on device"):
            write_state(saved, {"epoch": 7})
    assert same(read_state(saved), STATE)
    assert os.listdir(saved.parent) == ["saved"]


def test_a_write_that_the_system_cuts_short_changes_nothing(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(6, STATE)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.raises(CheckpointError, match=r"File too large.* epoch 6 is untouched\."):
            checkpoints.save(7, {"net": torch.zeros(2**20)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["epoch-00006"]
    assert same(checkpoints.latest(), (6, STATE))


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "runs").write_text("a file")
    checkpoints = Checkpoints(tmp_path / "runs")
    assert checkpoints.latest() is None
    with pytest.raises(CheckpointError, match="A file is in the way: choose another folder"):
        checkpoints.save(1, STATE)
    with pytest.raises(CheckpointError, match="A file is in the way: choose another folder"):
        write_state(tmp_path / "runs", STATE)
    assert (tmp_path / "runs").read_text() == "a file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="Permission denied. Choose a folder"):
        Checkpoints(tmp_path).save(1, STATE)


def test_denied_permission_is_an_error_with_the_way_out(tmp_path, monkeypatch):
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    monkeypatch.setattr(state_files, "open", Failing(open, 0, error), raising=False)
    with pytest.raises(CheckpointError, match=r"Permission denied\. Choose a folder that you may"):
        Checkpoints(tmp_path).save(1, STATE)


def test_nothing_saved_is_none(tmp_path):
    assert Checkpoints(tmp_path / "nowhere").latest() is None
    assert Checkpoints(str(tmp_path)).latest() is None


def test_the_last_two_epochs_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path / "made" / "here")
    for epoch in (1, 2, 99_999, 100_000):
        checkpoints.save(epoch, {"epoch": epoch})
        assert checkpoints.latest() == (epoch, {"epoch": epoch})
    assert sorted(os.listdir(checkpoints.folder)) == ["epoch-100000", "epoch-99999"]


def test_an_earlier_epoch_replaces_the_later_ones(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for epoch in (3, 8, 9, 4):
        checkpoints.save(epoch, {"epoch": epoch})
    assert checkpoints.latest() == (4, {"epoch": 4})


def test_a_damaged_newest_one_is_named_and_the_one_before_is_next(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(6, STATE)
    checkpoints.save(7, {"epoch": 7})
    (tmp_path / "epoch-00007" / "state.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="Delete the folder .*epoch-00007 to continue"):
        checkpoints.latest()
    for file in (tmp_path / "epoch-00007").iterdir():
        file.unlink()
    (tmp_path / "epoch-00007").rmdir()
    assert same(checkpoints.latest(), (6, STATE))


def test_leftovers_of_a_killed_process_are_ignored_then_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, STATE)
    for name in (".epoch-00002.123.tmp", f".epoch-00002.{os.getpid()}.tmp", ".mine.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text("half of")
    assert same(checkpoints.latest(), (1, STATE))
    checkpoints.save(2, STATE)
    assert sorted(os.listdir(tmp_path)) == [".mine.tmp", "epoch-00001", "epoch-00002"]


def test_an_epoch_that_was_being_replaced_still_counts(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, STATE)
    (tmp_path / "epoch-00001").rename(tmp_path / "epoch-00001.previous")
    assert same(checkpoints.latest(), (1, STATE))
    checkpoints.clear()
    assert os.listdir(tmp_path) == []


def test_clear_removes_the_checkpoints_and_nothing_else(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, STATE)
    checkpoints.save(2, STATE)
    (tmp_path / ".epoch-00003.123.tmp").mkdir()
    (tmp_path / "notes.txt").write_text("keep me")
    checkpoints.clear()
    assert os.listdir(tmp_path) == ["notes.txt"]
    assert checkpoints.latest() is None


@pytest.mark.parametrize("epoch", [-1, 1.5, True])
def test_an_epoch_is_a_whole_number(tmp_path, epoch):
    with pytest.raises((ArgumentError, ArgumentTypeError), match="`epoch`"):
        Checkpoints(tmp_path).save(epoch, STATE)


# Saves in a loop in a process of its own and kills it with SIGKILL, ten times; prints the last
# epoch that was announced and the one that is found, or what is wrong with it.
KILLED_TEN_TIMES = """
import os, random, signal, sys, time
import torch
from regaug.training.checkpoint import Checkpoints

checkpoints, moments = Checkpoints(sys.argv[1]), random.Random(0)

def save_forever(epoch, announce):
    while True:
        epoch += 1
        checkpoints.save(epoch, {"epoch": epoch, "weight": torch.full((100, 100), float(epoch))})
        os.write(announce, b"%d " % epoch)

epoch = 0
for _ in range(10):
    listen, announce = os.pipe()
    child = os.fork()
    if child == 0:
        save_forever(epoch, announce)
    os.close(announce)
    first = os.read(listen, 1)
    time.sleep(moments.uniform(0.0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    announced = int((first + os.read(listen, 1 << 20)).split()[-1])
    os.close(listen)
    epoch, state = checkpoints.latest()
    assert state["epoch"] == epoch and bool((state["weight"] == epoch).all())
    print(announced, epoch)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.serial
def test_a_process_killed_at_any_moment_leaves_its_last_epoch(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED_TEN_TIMES, str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rounds = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(rounds) == 10
    assert all(found - announced in (0, 1) for announced, found in rounds)
    Checkpoints(tmp_path).save(rounds[-1][1] + 1, STATE)
    assert len(os.listdir(tmp_path)) == 2


def make_net(width=8, depth=1):
    layers = [nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width)) for _ in range(depth)]
    return nn.Sequential(OrderedDict(body=nn.Sequential(*layers), head=nn.Linear(width, 1)))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            make_net(width=9),
            r"body\.0\.0\.weight is \(9, 9\) there and \(8, 8\) here, .* and 4 more",
        ),
        (make_net(depth=2), r"unknown here: body\.1\.0\.weight, body\.1\.0\.bias, .* and 4 more\."),
        (
            make_net(depth=0),
            r"missing there: body\.0\.0\.weight, body\.0\.0\.bias, .* and 4 more\.",
        ),
    ],
    ids=["wider", "deeper", "shallower"],
)
def test_weights_of_another_architecture_leave_the_module_untouched(other, message):
    net = make_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(CheckpointError, match=f"weights of run/7 belong to another .*{message}"):
        load_weights(net, other.state_dict(), source="run/7")
    assert same(dict(net.state_dict()), before)


def test_weights_that_are_no_tensors_leave_the_module_untouched():
    net = nn.Linear(2, 1)
    before = net.weight.clone()
    weights = {"weight": torch.zeros(1, 2), "bias": [0.0]}
    with pytest.raises(CheckpointError, match=r"bias is a list there and \(1,\) here"):
        load_weights(net, weights, source="run/7")
    assert torch.equal(net.weight, before)


def test_weights_that_fit_are_copied():
    net, other = make_net(), make_net()
    load_weights(net, other.state_dict(), source="run/7")
    assert same(dict(net.state_dict()), dict(other.state_dict()))
    other.head.weight.data.zero_()
    assert bool(net.head.weight.any())


def test_importing_checkpoints_does_not_import_safetensors():
    code = "import sys, regaug.training.checkpoint; print('safetensors' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

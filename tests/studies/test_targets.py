"""The targets of a study's splits: kept as they are, and checked when they are read."""

import numpy as np
import pytest
import torch

from regaug._tensors import dump_tensors, read_tensors
from regaug.data import standardize
from regaug.data.base import Part, Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import StoreError
from regaug.problems import LoadedSplits, Problem
from regaug.studies import targets as module
from regaug.studies.targets import TARGETS, Targets, make_targets, read_targets, write_targets


def make_split(n=5, *, groups=None, columns=2, shift=0.0):
    y = torch.arange(n * columns, dtype=torch.float32).reshape(n, columns) + shift
    parts = [Part(torch.ones(n, 1), y + 100 * i, np.arange(n), groups) for i in range(3)]
    return Split(*parts)


def check_same(found, expected):
    assert len(found) == len(expected)
    for own, other in zip(found, expected, strict=True):
        for name in ("validation", "test", "low", "high"):
            assert torch.equal(getattr(own, name), getattr(other, name))
            assert getattr(own, name).dtype == torch.float64
        if other.groups is None:
            assert own.groups is None
        else:
            assert own.groups.tolist() == other.groups.tolist()


@pytest.mark.parametrize("groups", [None, np.array(list("bbaca")), np.array([3, 1, 3, 2, 2])])
def test_they_come_back_from_the_folder(tmp_path, groups):
    own = [Targets.of(make_split(groups=groups)), Targets.of(make_split(shift=7.0))]
    assert write_targets(tmp_path, own) == tmp_path / TARGETS
    check_same(read_targets(tmp_path), own)
    if groups is not None:
        assert own[0].groups.tolist() == [str(label) for label in groups]


def test_a_folder_without_them_has_none(tmp_path):
    assert read_targets(tmp_path) is None


def test_they_are_in_the_targets_own_units():
    split = make_manifold("line", n=50).split()
    plain, scaled = Targets.of(split), Targets.of(standardize(split))
    assert torch.equal(plain.test, split.test.y.double())
    torch.testing.assert_close(scaled.test, plain.test, atol=1e-5, rtol=1e-5)
    assert plain.low.item() == split.train.y.min()
    assert plain.high.item() == split.train.y.max()


def test_predictions_are_clamped_to_a_range_that_is_as_much_wider_on_both_sides():
    targets = Targets(
        torch.zeros(1, 2), torch.zeros(1, 2), torch.tensor([0, 10]), torch.tensor([4, 10])
    )
    found = targets.clamp(torch.tensor([[-9.0, 3.0], [4.5, 10.0], [1e30, 99.0]]))
    assert found.tolist() == [[-4.0, 10.0], [4.5, 10.0], [8.0, 10.0]]


def test_every_split_of_a_problem_has_its_own():
    problem = Problem.from_table(make_manifold("line", n=50), splits=3)
    check_same(make_targets(problem), [Targets.of(split) for split in problem.splits])
    lazy = Problem(LoadedSplits(problem.splits.__getitem__, 3), model=lambda split: None)
    check_same(make_targets(lazy), make_targets(problem))


def test_there_are_none_where_runs_keep_no_predictions(monkeypatch):
    problem = Problem.from_table(make_manifold("line", n=50), splits=2)
    monkeypatch.setattr(module, "MOST_NUMBERS", 19)
    assert make_targets(problem) is None
    monkeypatch.setattr(module, "MOST_NUMBERS", 20)
    assert len(make_targets(problem)) == 2


def rewrite(folder, tensors=None, **document):
    """Write the file anew, with some entries changed and with checksums that are right."""
    own, was = read_tensors(folder / TARGETS)
    own |= tensors or {}
    own = {name: value for name, value in own.items() if value is not None}
    content, _ = dump_tensors(own, {"groups": was["groups"]} | document)
    (folder / TARGETS).write_bytes(content)


NAN = torch.full((5, 2), torch.nan, dtype=torch.float64)
HOSTILE = {
    "nan": ({"0.test": NAN}, {}),
    "infinite": ({"0.low": torch.tensor([-torch.inf, 0.0], dtype=torch.float64)}, {}),
    "missing": ({"0.test": None}, {}),
    "more": ({"7.test": torch.ones(1)}, {}),
    "columns": ({"0.validation": torch.ones(5, 3, dtype=torch.float64)}, {}),
    "shape": ({"0.test": torch.ones(5, dtype=torch.float64)}, {}),
    "empty": ({"0.validation": torch.ones(0, 2, dtype=torch.float64)}, {}),
    "type": ({"0.test": torch.ones(5, 2)}, {}),
    "order": ({"0.low": torch.full((2,), 1e9, dtype=torch.float64)}, {}),
    "rows": ({"0.groups": torch.zeros(4, dtype=torch.int64)}, {}),
    "beyond": ({"0.groups": torch.full((5,), 9)}, {}),
    "negative": ({"0.groups": torch.full((5,), -1)}, {}),
    "names": ({}, {"groups": [[1, 2, 3]]}),
    "no list": ({}, {"groups": ["abc"]}),
    "no splits": ({}, {"groups": []}),
    "number": ({}, {"groups": 7}),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_file_of_targets_is_refused(tmp_path, change):
    write_targets(tmp_path, [Targets.of(make_split(groups=np.array(list("bbaca"))))])
    rewrite(tmp_path, change[0], **change[1])
    with pytest.raises(StoreError, match=r"holds no targets of a study\. Delete it, and run"):
        read_targets(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{}", b"\x08" + b"\x00" * 30])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / TARGETS).write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged\. Delete it, and run the command"):
        read_targets(tmp_path)


def test_a_changed_byte_is_found(tmp_path):
    path = write_targets(tmp_path, [Targets.of(make_split())])
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        read_targets(tmp_path)

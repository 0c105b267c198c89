"""Splits of data sets of the user's own."""

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset, TensorDataset

from regaug.data import Part, Split, split_dataset, standardize
from regaug.data import partition as module
from regaug.data.lazy import Subset as Rows
from regaug.data.partition import read_splits
from regaug.data.samples import SampleInputs
from regaug.exceptions import ArgumentError


def make(n=40):
    x = torch.randn(n, 2, 3, generator=torch.Generator().manual_seed(0))
    return x, torch.arange(float(n))


class Counting(Dataset):
    def __init__(self, n=40):
        (self.x, self.y), self.reads = make(n), 0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, number):
        self.reads += 1
        return self.x[number], self.y[number]


def test_every_sample_is_in_one_part_with_its_own_input_and_target():
    x, y = make()
    for split in split_dataset((x, y), seeds=3):
        rows = np.concatenate([part.rows for part in split.parts.values()])
        assert sorted(rows.tolist()) == list(range(40))
        assert [len(part) for part in split.parts.values()] == [24, 8, 8]
        for part in split.parts.values():
            assert torch.equal(part.x, x[part.rows])
            assert part.y[:, 0].tolist() == part.rows.tolist()


def test_seeds_are_numbers_of_splits_or_seeds():
    one, again = (split_dataset(make(), seeds=3) for _ in range(2))
    listed = split_dataset(make(), seeds=[2, 0])
    rows = [split.test.rows.tolist() for split in one]
    assert rows == [split.test.rows.tolist() for split in again]
    assert rows[0] != rows[1] != rows[2]
    assert [split.test.rows.tolist() for split in listed] == [rows[2], rows[0]]
    assert len(split_dataset(make())) == 5


def test_the_data_set_is_read_once_for_all_splits():
    dataset = Counting()
    split_dataset(dataset, seeds=7)
    assert dataset.reads == 40 + 1


def test_whole_groups_are_held_out():
    groups = np.repeat(list("abcdefgh"), 5)
    for split in split_dataset(make(), seeds=4, groups=groups):
        seen = [set(part.groups.tolist()) for part in split.parts.values()]
        assert not seen[0] & seen[1]
        assert not (seen[0] | seen[1]) & seen[2]
        for part in split.parts.values():
            assert part.groups.tolist() == groups[part.rows].tolist()


def test_samples_with_equal_inputs_stay_on_one_side():
    x, y = make()
    x[20:] = x[:20]
    for split in split_dataset((x, y), seeds=5):
        for part in split.parts.values():
            twins = (part.rows + 20) % 40
            assert set(twins.tolist()) == set(part.rows.tolist())


def test_shares_are_kept():
    (split,) = split_dataset(make(), seeds=1, shares=(0.5, 0.25, 0.25))
    assert [len(part) for part in split.parts.values()] == [20, 10, 10]


def test_functions_say_what_is_what():
    x, y = make()
    samples = [{"a": x[i], "b": x[i, 0], "y": y[i]} for i in range(40)]
    (split,) = split_dataset(
        samples, seeds=1, inputs=lambda own: (own["a"], own["b"]), targets=lambda own: own["y"]
    )
    a, b = split.train.x[:]
    assert torch.equal(a, x[split.train.rows])
    assert torch.equal(b, x[split.train.rows, 0])


def test_too_few_samples_and_no_splits_are_refused():
    with pytest.raises(ArgumentError, match="at least 3 samples, one for each part, got 2"):
        split_dataset(make(2))
    with pytest.raises(ArgumentError, match="`seeds` must be at least 1"):
        split_dataset(make(), seeds=0)
    with pytest.raises(ArgumentError, match=r"`groups` must be \(40,\)"):
        split_dataset(make(), groups=[1, 2, 3])


def test_many_splits_of_large_inputs_share_them_and_are_scaled_alike(monkeypatch):
    plain = split_dataset(make(), seeds=4)
    monkeypatch.setattr(module, "MOST_BYTES", 40 * 6 * 4)
    shared = split_dataset(make(), seeds=4)
    assert all(isinstance(split.train.x, Rows) for split in shared)
    assert len({id(part.x.inputs) for split in shared for part in split.parts.values()}) == 1
    assert len(pickle.dumps(shared)) < len(pickle.dumps(plain))
    for one, other in zip(plain, pickle.loads(pickle.dumps(shared)), strict=True):
        scaled, again = standardize(one), standardize(other)
        for part, same in zip(scaled.parts.values(), again.parts.values(), strict=True):
            assert torch.equal(part.x, same.x)
            assert torch.equal(part.y, same.y)


# Parts of splits that are data sets


def test_parts_may_be_pairs_data_sets_and_subsets_of_one():
    x, y = make()
    part = Part.of((x[:9], y[:9]))
    dataset = TensorDataset(x, y)
    (split,) = read_splits([Split(Subset(dataset, range(20, 40)), (x[:9], y[:9]), part)])
    assert torch.equal(split.train.x, x[20:])
    assert torch.equal(split.validation.x, x[:9])
    assert split.test is part
    assert split.train.y[:, 0].tolist() == list(range(20, 40))


def test_splits_of_parts_are_the_same_objects():
    splits = split_dataset(make(), seeds=2)
    assert all(new is old for new, old in zip(read_splits(splits), splits, strict=True))


def test_a_data_set_in_several_splits_is_read_once():
    train, test = Counting(), Counting()
    splits = read_splits([Split(train, test, test), Split(train, test, test)])
    assert train.reads == test.reads == 40 + 1
    assert splits[0].test is splits[1].test is splits[0].validation


def test_a_further_part_is_read_too_and_pooling_is_kept():
    x, y = make()
    (split,) = read_splits([Split((x, y), (x, y), (x, y), {"far": (x + 1, y)}, pooled=True)])
    assert torch.equal(split.more["far"].x, x + 1)
    assert split.pooled


def test_either_all_parts_are_in_memory_or_none(monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 90 * 6 * 4)
    (split,) = read_splits([Split(Counting(60), Counting(20), Counting(20))])
    assert all(isinstance(part.x, SampleInputs) for part in split.parts.values())
    assert standardize(split).x_scaler is None
    (split,) = read_splits([Split(Counting(50), Counting(20), Counting(20))])
    assert all(isinstance(part.x, torch.Tensor) for part in split.parts.values())


def test_errors_name_the_part():
    x, y = make()
    with pytest.raises(ArgumentError, match=r"`splits\[1\].test` must have samples, got none"):
        read_splits([Split((x, y), (x, y), (x, y)), Split((x, y), (x, y), [])])


@pytest.mark.parametrize("change", ["inputs", "targets", "form"])
def test_parts_of_another_form_are_refused(change):
    x, y = make()
    other = {"inputs": (x[:, :1], y), "targets": (x, x[:, 0]), "form": ((x, x), y)}[change]
    with pytest.raises(ArgumentError, match=r"samples of one form .* \(2, 3\) with 1 target and"):
        read_splits([Split((x, y), (x, y), other)])

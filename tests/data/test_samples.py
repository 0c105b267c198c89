"""Data sets of the user's own: read once, checked before anything trains."""

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from regaug.data import Part
from regaug.data import samples as module
from regaug.data.samples import SampleInputs, Samples, row_digests
from regaug.data.several import Several, digest_inputs
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError


class Own(Dataset):
    """Samples that are made by a function, and know how often they were read."""

    def __init__(self, make, n=6):
        self.make, self.n, self.reads = make, n, []

    def __len__(self):
        return self.n

    def __getitem__(self, number):
        self.reads.append(number)
        return self.make(number)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(())


def image(number):
    return torch.full((1, 2, 2), float(number)), number / 2


def pair(number):
    """Top-level, so that it can be sent to another process."""
    return {"drug": np.full(3, number, np.float64), "ids": [number, 1], "price": number / 2}


def drug_and_ids(sample):
    return {"drug": sample["drug"], "ids": torch.tensor(sample["ids"])}


def price(sample):
    return sample["price"]


def test_every_sample_is_read_once_and_put_into_memory():
    dataset = Own(image)
    part = Part.of(dataset)
    assert part.x.shape == (6, 1, 2, 2)
    assert part.x[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert part.y.tolist() == [[0.0], [0.5], [1.0], [1.5], [2.0], [2.5]]
    assert part.rows.tolist() == list(range(6))
    # The first one says how much memory all of them take.
    assert sorted(dataset.reads) == [0, *range(6)]


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4, 2)])
def test_targets_of_any_shape_are_a_row_each(shape):
    part = Part.of(Own(lambda number: (torch.zeros(2), torch.full(shape, float(number)))))
    assert part.y.shape == (6, max(1, int(np.prod(shape))))
    assert part.y[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    whole = Part.of((torch.zeros(6, 2), torch.arange(6.0).reshape(6, *[1] * len(shape))))
    assert whole.y[:, 0].tolist() == part.y[:, 0].tolist()


@pytest.mark.parametrize(
    "dataset",
    [
        (torch.zeros(4, 3), torch.ones(4)),
        [torch.zeros(4, 3), torch.ones(4)],
        (np.zeros((4, 3)), np.ones((4, 1))),
        TensorDataset(torch.zeros(4, 3), torch.ones(4)),
        [(torch.zeros(3), 1.0)] * 4,
        [([0.0, 0.0, 0.0], np.float64(1.0))] * 4,
        ((np.zeros(3), 1.0),) * 4,
    ],
    ids=["tensors", "list", "arrays", "TensorDataset", "samples", "numbers", "tuple"],
)
def test_pairs_of_all_and_single_samples_are_the_same(dataset):
    part = Part.of(dataset)
    assert torch.equal(part.x, torch.zeros(4, 3))
    assert torch.equal(part.y, torch.ones(4, 1))
    assert part.x.dtype == part.y.dtype == torch.float32


def test_two_samples_are_no_pair_of_all():
    part = Part.of([(torch.zeros(3), 1.0), (torch.ones(3), 2.0)])
    assert part.y[:, 0].tolist() == [1.0, 2.0]
    assert Part.of(((torch.zeros(3), 1.0), (torch.ones(3), 2.0))).x[1].tolist() == [1.0] * 3


def test_one_number_is_a_column_and_one_code_is_a_code():
    assert Part.of((torch.arange(4.0), torch.ones(4))).x.shape == (4, 1)
    assert Part.of([(2.0, 1.0)] * 4).x.shape == (4, 1)
    codes = Part.of([(2, 1.0)] * 4).x
    assert (codes.shape, codes.dtype) == ((4,), torch.int64)


def test_samples_of_any_form_are_told_apart_by_functions():
    part = Part.of(Own(pair), inputs=drug_and_ids, targets=price)
    assert isinstance(part.x, Several)
    assert part.x[:]["drug"].dtype == torch.float32
    assert part.x[:]["ids"].tolist() == [[number, 1] for number in range(6)]
    assert part.y[:, 0].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]


def test_inputs_in_samples_may_be_several_tensors_without_a_function():
    part = Part.of(Own(lambda number: ((torch.zeros(2), torch.ones(3, 2)), 1.0)))
    assert [tuple(own.shape) for own in part.x[:]] == [(6, 2), (6, 3, 2)]
    whole = Part.of(((torch.zeros(6, 2), torch.ones(6, 3, 2)), torch.ones(6)))
    assert [tuple(own.shape) for own in whole.x[:]] == [(6, 2), (6, 3, 2)]


def test_groups_come_along_and_must_be_as_many():
    assert Part.of(Own(image), groups=list("aabbcc")).groups.tolist() == list("aabbcc")
    with pytest.raises(ArgumentError, match=r"`groups` must be \(6,\), .* got shape \(2,\)"):
        Part.of(Own(image), groups=[1, 2])


# Too large for memory


@pytest.fixture
def _small_memory(monkeypatch):
    monkeypatch.setattr("regaug.data.base.MOST_BYTES", 16 * 6 - 1)


@pytest.mark.usefixtures("_small_memory")
def test_large_inputs_are_read_again_when_they_are_asked_for():
    dataset = Own(image)
    part = Part.of(dataset)
    assert isinstance(part.x, SampleInputs)
    assert part.x.shape == (6, 1, 2, 2)
    assert part.y[:, 0].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    dataset.reads.clear()
    assert part.x[[4, 2]][:, 0, 0, 0].tolist() == [4.0, 2.0]
    assert part.take([5]).x[:].shape == (1, 1, 2, 2)
    assert part.x[-1][0, 0, 0] == 5.0
    assert part.x[[]].shape == (0, 1, 2, 2)
    assert dataset.reads == [4, 2, 5, 5, 0]


@pytest.mark.usefixtures("_small_memory")
def test_large_inputs_of_several_tensors_are_stacked_in_their_form_and_travel():
    part = Part.of(Own(pair), inputs=drug_and_ids, targets=price)
    assert part.x.shape == (6, 5)
    sent = pickle.loads(pickle.dumps(part))
    for own in (part, sent, part.take(np.arange(6))):
        batch = own.x[1:3]
        assert batch["drug"].tolist() == [[1.0] * 3, [2.0] * 3]
        assert batch["ids"].tolist() == [[1, 1], [2, 1]]


@pytest.mark.usefixtures("_small_memory")
def test_the_digest_of_large_inputs_needs_no_second_reading():
    dataset = Own(image)
    part = Part.of(dataset)
    dataset.reads.clear()
    one, some, other = (digest_inputs(x) for x in (part.x, part.take([1, 2]).x, part.take([2]).x))
    assert len({one, some, other}) == 3
    assert dataset.reads == []
    assert digest_inputs(Part.of(Own(image)).x) == one
    assert digest_inputs(Part.of(Own(lambda number: image(number + 1))).x) != one


def test_equal_samples_have_equal_digests():
    part = Part.of(Own(lambda number: image(number % 3)))
    digests = row_digests(part.x)
    assert len(set(digests.tolist())) == 3
    lazily, _ = Samples(Own(lambda number: image(number % 3))).read(lazily=True)
    assert np.array_equal(row_digests(lazily), digests)


# What is refused


def unequal(number):
    return torch.zeros(3 + number // 4), 1.0


WRONG = {
    "no targets": (lambda number: torch.zeros(3), r"\(x, y\), got one tensor .* without targets"),
    "dict": (lambda number: {"x": 1.0, "y": 2.0}, r"got a dict of 'x', 'y'\. Say where .* inputs="),
    "three": (lambda number: (1.0, 2.0, 3.0), "got a tuple of 3. Say where"),
    "a number": (lambda number: 3.5, "got a float"),
    "unequal shapes": (
        unequal,
        r"one shape, got \(3,\) in x of sample 0 and \(4,\) in sample 4. Pad",
    ),
    "unequal forms": (
        lambda number: ({"a": torch.zeros(1)} if number < 2 else {"b": torch.zeros(1)}, 1.0),
        r"one form, got x\['a'\] in sample 0 and x\['b'\] in sample 2",
    ),
    "unequal targets": (
        lambda number: (torch.zeros(1), torch.zeros(1 + number // 3)),
        r"targets of one shape, got \(1,\) in sample 0 and \(2,\) in sample 3",
    ),
    "empty targets": (lambda number: (torch.zeros(1), torch.zeros(0)), "targets, got an empty"),
}
WRONG_TYPES = {
    "whole targets": (
        lambda number: (torch.zeros(3), number),
        r"floating-point targets, got torch.int64 in sample 0. .*\.float\(\)",
    ),
    "flags": (lambda number: (torch.zeros(3), True), "got torch.bool in sample 0"),
    "several targets": (
        lambda number: (torch.zeros(3), {"a": 1.0}),
        "one tensor of targets .* got a dict in sample 0. Put them side by side",
    ),
    "text": (lambda number: ("text", 1.0), "as inputs, got str in sample 0. Convert them"),
    "texts": (lambda number: (np.array(["a"]), 1.0), "got ndarray of <U1 in sample 0"),
    "nothing": (lambda number: (torch.zeros(3), None), "as targets, got NoneType"),
    "complex": (lambda number: (torch.zeros(3) * 1j, 1.0), "real numbers as inputs"),
    "unequal types": (
        lambda number: (torch.zeros(3) if number < 4 else torch.zeros(3).long(), 1.0),
        "one type, got torch.float32 in x of sample 0 and torch.int64 in sample 4",
    ),
}


@pytest.mark.parametrize(("make", "match"), WRONG.values(), ids=WRONG)
def test_samples_that_cannot_be_used_are_refused(make, match):
    with pytest.raises(ArgumentError, match=f"`dataset` must have .*{match}"):
        Part.of(Own(make))


@pytest.mark.parametrize(("make", "match"), WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_samples_of_a_wrong_type_are_refused(make, match):
    with pytest.raises(ArgumentTypeError, match=f"`dataset` must have .*{match}"):
        Part.of(Own(make))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_not_finite_is_refused_and_its_sample_named(value, place):
    def broken(number):
        sample = [torch.zeros(3), torch.zeros(2)]
        sample[place][1] = value if number == 4 else 0.0
        return tuple(sample)

    name = "xy"[place]
    with pytest.raises(NonFiniteError, match=f"got {value} in {name} of sample 4. Remove"):
        Part.of(Own(broken))
    x, y = (torch.stack([broken(number)[i] for number in range(6)]) for i in range(2))
    with pytest.raises(NonFiniteError, match=f"got {value} in {name} of sample 4. Remove"):
        Part.of((x, y))


@pytest.mark.parametrize("dataset", [[], (torch.zeros(0, 3), torch.zeros(0)), Own(image, 0)])
def test_an_empty_data_set_is_refused(dataset):
    with pytest.raises(ArgumentError, match="`dataset` must have samples, got none"):
        Part.of(dataset)


def test_a_pair_of_unequal_length_is_refused():
    with pytest.raises(ArgumentError, match=r"each of its 4 targets, got shape \(3, 2\) in x"):
        Part.of((torch.zeros(3, 2), torch.zeros(4)))
    with pytest.raises(ArgumentTypeError, match="floating-point targets, got torch.int64. Amounts"):
        Part.of((torch.zeros(4, 2), torch.arange(4)))


@pytest.mark.parametrize("dataset", [Stream(), iter([]), 7, {"x": 1.0}, "text", None])
def test_what_is_no_map_style_data_set_is_refused(dataset):
    with pytest.raises(ArgumentTypeError, match="`dataset` must be a map-style data set"):
        Part.of(dataset)


def test_of_a_loader_the_data_set_is_asked_for():
    with pytest.raises(ArgumentTypeError, match=r"got DataLoader. Give its data set, loader"):
        Part.of(DataLoader(Own(image)))


def test_errors_of_the_data_set_itself_are_its_own():
    def broken(number):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Part.of(Own(broken))


def test_the_bound_of_memory_is_what_the_docstring_says():
    assert module.MOST_BYTES == 256 * 2**20

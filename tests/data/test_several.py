"""Inputs of several tensors: rows together, in their form, whole after a journey."""

import pickle
from collections import namedtuple
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch

from regaug.data import Part, Split
from regaug.data.lazy import Lazy, Subset
from regaug.data.several import Several, digest_inputs, in_memory, is_numeric, take_inputs
from regaug.exceptions import ArgumentError, ArgumentTypeError

Pair = namedtuple("Pair", ["drug", "protein"])


def make(n=6):
    numbers = torch.arange(float(n))
    return numbers[:, None].repeat(1, 3), numbers.long()[:, None, None].repeat(1, 2, 2), numbers


FORMS = {
    "tuple": tuple,
    "list": list,
    "dict": lambda tensors: dict(zip("abc", tensors, strict=True)),
    "named": lambda tensors: Pair(*tensors[:2]),
    "nested": lambda tensors: {"a": tensors[0], "rest": (tensors[1], [tensors[2]])},
}


def leaves(form):
    if isinstance(form, torch.Tensor):
        return [form]
    items = form.values() if isinstance(form, dict) else form
    return [leaf for item in items for leaf in leaves(item)]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("index", [slice(1, 4), [3, 1], np.array([5]), torch.tensor([0, 2]), 2])
def test_an_index_goes_to_every_tensor_and_the_form_stays(form, index):
    inputs = Several(form(make()))
    some = inputs[index]
    assert type(some) is type(inputs.form)
    for own, all_of_them in zip(leaves(some), leaves(inputs.form), strict=True):
        assert torch.equal(own, all_of_them[index])
        assert own.dtype == all_of_them.dtype


def test_the_shape_is_that_of_all_numbers_side_by_side():
    assert Several(make()).shape == (6, 3 + 4 + 1)
    assert Several(torch.zeros(4, 2, 3)).shape == (4, 2, 3)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("dumps", [pickle.dumps, ForkingPickler.dumps])
def test_it_travels_without_shared_files(form, dumps):
    inputs = Several(form(make()))
    packed = bytes(dumps(inputs))
    assert b"torch" not in packed
    sent = pickle.loads(packed)
    assert type(sent.form) is type(inputs.form)
    for own, other in zip(leaves(sent.form), leaves(inputs.form), strict=True):
        assert torch.equal(own, other)


def test_inputs_of_several_splits_travel_once():
    whole = Several(torch.zeros(1000, 100))
    parts = [Subset(whole, np.arange(10)) for _ in range(5)]
    assert len(pickle.dumps(parts)) < 1.1 * len(pickle.dumps(whole))
    assert len({id(part.inputs) for part in pickle.loads(pickle.dumps(parts))}) == 1


def test_what_has_no_row_for_every_sample_is_refused():
    with pytest.raises(ArgumentError, match=r"`x\['b'\]` must have a row .* got shapes \(4, 1\)"):
        Several({"a": torch.zeros(3), "b": torch.zeros(4, 1)})
    with pytest.raises(ArgumentError, match="at least one tensor, got none"):
        Several(())
    with pytest.raises(ArgumentTypeError, match=r"`x\[1\]` must be a torch.Tensor"):
        Several((torch.zeros(3), "text"))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_part_takes_several_tensors_and_some_of_their_rows(form):
    part = Part(form(make()), torch.arange(6.0), np.arange(10, 16))
    assert isinstance(part.x, Several)
    some = part.take([4, 1])
    assert isinstance(some.x, Several)
    assert some.rows.tolist() == [14, 11]
    for own in leaves(some.x[:]):
        assert own.reshape(2, -1)[:, 0].tolist() == [4, 1]
    x, y = part[3]
    assert [leaf.reshape(-1)[0].item() for leaf in leaves(x)] == [3] * len(leaves(x))
    assert y.item() == 3


def test_a_subsample_keeps_the_tensors_together():
    parts = [Part(make(20), torch.arange(20.0), np.arange(20)) for _ in range(3)]
    for part in Split(*parts).subsample(12).parts.values():
        a, b, c = part.x[:]
        assert a[:, 0].tolist() == b[:, 0, 0].tolist() == c.tolist() == part.y[:, 0].tolist()


class Ones(Lazy):
    def _read(self, place):
        return torch.ones(2)


def test_what_is_in_memory_is_found_and_what_is_read_is_not():
    tensor, several, rows = torch.arange(8.0)[:, None], Several(make(8)), np.array([7, 0])
    assert in_memory(tensor) is tensor
    assert in_memory(several) is several
    assert in_memory(Subset(Several(tensor), rows)).tolist() == [[7.0], [0.0]]
    assert in_memory(Subset(Subset(several, rows), np.array([1])))[:][2].tolist() == [0.0]
    assert in_memory(Ones(3, (2,))) is None
    assert in_memory(Subset(Ones(3, (2,)), rows)) is None
    assert isinstance(take_inputs(Ones(3, (2,)), rows), Subset)


def test_codes_are_told_from_numbers():
    assert is_numeric(torch.zeros(2, 1))
    assert is_numeric(Ones(3, (2,)))
    assert is_numeric(Several((torch.zeros(2), torch.ones(2, 3))))
    assert not is_numeric(Several((torch.zeros(2), torch.ones(2, 3).long())))
    assert not is_numeric(torch.zeros(2, 1).bool())


def test_a_digest_differs_for_another_number_in_any_tensor():
    def changed(place):
        tensors = [tensor.clone() for tensor in make()]
        if place is not None:
            tensors[place][2] += 1
        return digest_inputs(Several(tuple(tensors)))

    assert len({changed(place) for place in (None, 0, 1, 2)}) == 4
    assert changed(None) == digest_inputs(Several(list(make())))

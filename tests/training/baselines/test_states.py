"""States that nobody vouches for: refused in words, or a predictor that predicts."""

import random

import numpy as np
import pytest
import torch

from regaug.exceptions import DataError, RegaugError
from regaug.training.baselines import (
    PREDICTORS,
    Rows,
    boosting,
    fit_predictor,
    load_predictor,
    trees,
)
from regaug.training.state import pack, read_state, unpack, write_state

D, M = 3, 2
RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.standard_normal((30, D)))
Y = torch.stack([X[:, 0].sin(), 5.0 + X[:, 1] * X[:, 2]], dim=1)


@pytest.fixture(scope="module")
def predictors():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "TREES", 4)
        patch.setattr(trees, "FEWEST_TREES", 2)
        patch.setattr(boosting, "FIRST", 3)
        patch.setattr(boosting, "ROUND", 3)
        patch.setattr(boosting, "MOST_TREES", 3)
        rows = Rows(X[:20], Y[:20]), Rows(X[20:], Y[20:])
        return {name: fit_predictor(name, *rows).predictor for name in PREDICTORS}


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_predictor_comes_back_from_a_file_bit_by_bit(name, predictors, tmp_path):
    write_state(tmp_path / "state", predictors[name].to_state())
    back = load_predictor(name, read_state(tmp_path / "state"), inputs=D, outputs=M)
    assert type(back) is type(predictors[name])
    assert torch.equal(back(X), predictors[name](X))


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_state_of_other_sizes_is_refused(name, predictors):
    state = predictors[name].to_state()
    with pytest.raises(DataError, match="must"):
        load_predictor(name, state, inputs=D, outputs=M + 1)
    if name != "mean":  # which takes any inputs
        with pytest.raises(DataError, match="must"):
            load_predictor(name, state, inputs=1, outputs=M)


@pytest.mark.parametrize("name", PREDICTORS)
@pytest.mark.parametrize("state", [{}, {"mean": 1.0}, [], None, 3, "state"])
def test_what_is_no_state_is_refused(name, state):
    with pytest.raises(DataError, match="`(state|mean)` must"):
        load_predictor(name, state, inputs=D, outputs=M)


def numbers(draw, tensor):
    """Return a tensor like another with some wild numbers in it."""
    wild = (0, 1, -1, 2, D, 7, 10**6, 2**31 - 1, -(2**31))
    if tensor.is_floating_point():
        wild = (*wild, torch.nan, torch.inf, -torch.inf, 1e308, -1e308, 5e-324)
    flat = tensor.flatten().clone()
    for _ in range(draw.choice([1, 1, 2, 5]) if len(flat) else 0):
        flat[draw.randrange(len(flat))] = torch.tensor(draw.choice(wild), dtype=torch.float64)
    return flat.reshape(tensor.shape)


SHAPES = [
    lambda tensor: tensor[:-1],
    lambda tensor: tensor[:0],
    lambda tensor: torch.cat([tensor, tensor]),
    lambda tensor: tensor.flip(0),
    lambda tensor: tensor.reshape(-1),
    lambda tensor: tensor.T if tensor.ndim == 2 else tensor[:, None],
    lambda tensor: tensor[None],
    lambda tensor: tensor[..., :1],
    lambda tensor: tensor.sum(),
    lambda tensor: tensor.to(torch.float32),
    lambda tensor: tensor.to(torch.int64),
    lambda tensor: tensor.to(torch.bool),
    lambda tensor: tensor.to(torch.complex128),
    lambda tensor: tensor.to_sparse(),
    lambda tensor: tensor.to("meta"),
]


def reshaped(draw, tensor):
    return draw.choice(SHAPES)(tensor)


def flipped(draw, tensor):
    """Return a tensor like another with one bit of its memory flipped."""
    dense = tensor.contiguous().clone()
    memory = dense.reshape(-1).view(torch.uint8)
    if len(memory) and dense.dtype != torch.bool:
        memory[draw.randrange(len(memory))] ^= 1 << draw.randrange(8)
    return dense


def moved(draw, tensor):
    """Return a tensor like another with two of its rows exchanged, as leaves for inner nodes."""
    order = list(range(len(tensor)))
    if order:
        one, two = draw.choice(order), draw.choice(order)
        order[one], order[two] = two, one
    return tensor[order]


def other(draw, value):
    return draw.choice([None, 0, 1.5, "x", [], {}, [value], {"trees": value}, True, [value] * M])


def mutate(draw, value):
    """Return a nested state with one place of it changed."""
    if draw.random() < 0.1:
        return other(draw, value)
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        if draw.random() < 0.05:
            return {name: own for name, own in value.items() if name != key}
        if draw.random() < 0.05:
            return {**value, draw.choice(["more", 7, None]): value[key]}
        return {**value, key: mutate(draw, value[key])}
    if isinstance(value, list) and value:
        place = draw.randrange(len(value))
        return [*value[:place], mutate(draw, value[place]), *value[place + 1 :]]
    if isinstance(value, torch.Tensor):
        is_plain = value.layout is torch.strided and value.device.type == "cpu" and value.ndim > 0
        if not is_plain:  # it was changed before
            return value
        return draw.choice([numbers, numbers, flipped, moved, reshaped])(draw, value)
    return other(draw, value)


def test_ten_thousand_mutated_states_are_refused_in_words_or_predict(predictors):
    draw = random.Random(0)
    names = [*PREDICTORS, "trees", "boosting", "trees", "boosting"]  # these can go wrong most
    new = torch.cat([X, 1e30 * X, torch.zeros(1, D).double()])
    n_read, words = 0, []
    for round_ in range(10_000):
        name = names[round_ % len(names)]
        state = predictors[name].to_state()
        for _ in range(draw.choice([1, 1, 2, 3])):
            state = mutate(draw, state)
        try:
            predictor = load_predictor(name, state, inputs=D, outputs=M)
        except RegaugError as error:
            words.append(str(error))
        else:
            prediction = predictor(new)
            assert (prediction.shape, prediction.dtype) == ((len(new), M), torch.float64)
            assert bool(prediction.isfinite().all())
            n_read += 1
    # Neither everything nor nothing: a threshold may be any number, a column may not.
    assert n_read > 1000
    assert len(words) > 5000
    assert all(word.startswith("`") and word.endswith(".") for word in words)


def test_what_was_packed_and_changed_is_refused_in_words_or_predicts(predictors):
    # The way of a file: the tree of names and the tensors come apart, and one is another's.
    draw = random.Random(1)
    for name, predictor in predictors.items():
        for _ in range(20):
            tree, tensors = pack("state", predictor.to_state())
            keys = list(tensors)
            tensors[draw.choice(keys)] = tensors[draw.choice(keys)]
            try:
                back = load_predictor(name, unpack(tree, tensors), inputs=D, outputs=M)
            except RegaugError:
                continue
            assert back(X).shape == (30, M)

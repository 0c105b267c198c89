"""Draws that depend on a seed or generator alone."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import regaug
from regaug import _random
from regaug._random import Stream


@pytest.mark.parametrize("alpha", [0.02, 0.3, 1.0, 1.4, 20.0])
def test_beta_has_its_distribution(alpha):
    generator = _random.make_generator(1)
    draws = np.array([_random.beta(alpha, generator) for _ in range(4000)])
    assert draws.min() >= 0.0
    assert draws.max() <= 1.0
    for place in (1e-12, 1e-6, 1e-2, 0.3, 0.5, 0.9):
        share = stats.beta(alpha, alpha).cdf(place)
        error = np.sqrt(share * (1 - share) / len(draws))
        assert np.mean(draws <= place) == pytest.approx(share, abs=4 * error + 1e-12)


def test_a_beta_draw_takes_one_number_from_the_generator():
    one, two = _random.make_generator(3), _random.make_generator(3)
    _random.beta(1.4, one)
    _random.uniform(0.0, 1.0, two)
    assert torch.equal(one.get_state(), two.get_state())


def test_seeded_restores_the_global_generator():
    before = torch.get_rng_state()
    with _random.seeded(5):
        first = torch.rand(3)
    with _random.seeded(5):
        assert torch.equal(torch.rand(3), first)
    with _random.seeded(6):
        assert not torch.equal(torch.rand(3), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_seeded_restores_the_global_generator_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), _random.seeded(5):
        torch.rand(3)
        _ = 1 / 0
    assert torch.equal(torch.get_rng_state(), before)


KEYS = [
    (stream, seed, *numbers)
    for stream in Stream
    for seed in (0, 1, 5)
    for length in range(4)
    for numbers in np.ndindex(*(3,) * length)
]


def test_no_two_streams_coincide():
    assert len({stream.value for stream in Stream}) == len(Stream)
    seeds = [_random.derive(*key) for key in KEYS]
    assert all(0 <= seed < 2**62 for seed in seeds)
    firsts = [int(_random.numpy_generator(*key).integers(2**62)) for key in KEYS]
    assert len({*seeds, *firsts}) == 2 * len(KEYS)


def test_how_many_numbers_there_are_counts():
    """NumPy pads short seeds with zeros, so that 5 and (5, 0) would be the same."""
    keys = [(5, *(0,) * zeros) for zeros in range(6)]
    assert np.random.default_rng(keys[0]).random() == np.random.default_rng(keys[3]).random()
    assert len({_random.derive(Stream.SPLIT, *key) for key in keys}) == 6
    assert len({_random.numpy_generator(Stream.SPLIT, *key).random() for key in keys}) == 6


@pytest.mark.parametrize("seed", [0, 5, 2**32, 2**61 + 3, 2**64 - 1, 2**128 - 1])
@pytest.mark.parametrize("numbers", [(), (0,), (3, 0), (2**32 - 1, 7, 1)])
def test_a_stream_is_a_spawned_seed_sequence(seed, numbers):
    def slow():
        return np.random.SeedSequence(seed, spawn_key=(Stream.BATCHES, *numbers))

    found = _random.numpy_generator(Stream.BATCHES, seed, *numbers)
    assert np.array_equal(found.random(5), np.random.default_rng(slow()).random(5))
    expected = int(slow().generate_state(1, np.uint64)[0]) // 4
    assert _random.derive(Stream.BATCHES, seed, *numbers) == expected


@pytest.mark.parametrize("key", [(-1,), (2**128,), (0, -1), (0, 2**32)])
def test_a_number_that_might_be_mistaken_for_another_is_refused(key):
    with pytest.raises(OverflowError):
        _random.derive(Stream.SPLIT, *key)


def test_every_call_names_its_stream():
    root = Path(regaug.__file__).parent
    named = {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            if ast.unparse(node.func).split(".")[-1] not in ("numpy_generator", "derive"):
                continue
            stream = ast.unparse(node.args[0]) if node.args else ""
            place = f"{path.relative_to(root)}:{node.lineno}"
            assert re.fullmatch(r"(_random\.)?Stream\.\w+", stream), place
            named.setdefault(stream.split(".")[-1], []).append(place)
    assert set(named) == {stream.name for stream in Stream}

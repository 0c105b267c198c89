"""Mutual information, against a count by hand, closed forms and chance."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from regaug.exceptions import ArgumentError, NonFiniteError
from regaug.functional.information import mutual_information


def normals(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def one_hot(codes, levels):
    return torch.nn.functional.one_hot(codes, levels).double()


@given(st.integers(2, 4), st.integers(0, 999))
def test_of_a_category_it_is_the_count_of_pairs_less_chance(levels, seed):
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(levels, (200,), generator=generator)
    target = (codes + torch.randint(2, (200,), generator=generator)) % 2  # two bins
    found = mutual_information(
        one_hot(codes, levels), target[:, None].double(), blocks=torch.zeros(levels).long()
    )
    plain = mutual_info_score(codes.numpy(), target.numpy())
    degrees = (len(codes.unique()) - 1) * (len(target.unique()) - 1)
    assert found.item() == pytest.approx(max(0.0, plain - degrees / 400), abs=1e-12)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.8])
def test_of_normals_it_is_nearly_the_closed_form(correlation):
    x, noise = normals(20_000, 1), normals(20_000, 1, seed=1)
    y = correlation * x + math.sqrt(1 - correlation**2) * noise
    exact = -0.5 * math.log(1 - correlation**2)
    assert mutual_information(x, y).item() == pytest.approx(exact, rel=0.05, abs=0.003)


@pytest.mark.parametrize("n", [100, 300, 1000])
@pytest.mark.parametrize("levels", [1, 3, 10])
def test_what_tells_nothing_has_next_to_none(n, levels):
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        codes = torch.from_numpy(rng.integers(levels, size=n))
        x = torch.cat([one_hot(codes, levels), normals(n, 1, seed=seed)], dim=1)
        blocks = torch.tensor([0] * levels + [1])
        found.append(mutual_information(x, normals(n, 1, seed=1000 + seed), blocks=blocks))
    assert torch.stack(found).mean(dim=0).max() < 0.05


def test_it_does_not_depend_on_scale_order_or_direction():
    x = normals(300, 3)
    y = x[:, :1] ** 2 + 0.3 * normals(300, 1, seed=1)
    found = mutual_information(x, y)
    torch.testing.assert_close(mutual_information(1e-3 * x + 7.0, y), found)
    torch.testing.assert_close(mutual_information(x**3, y.exp()), found)
    torch.testing.assert_close(mutual_information(x.flip(0), y.flip(0)), found)
    torch.testing.assert_close(mutual_information(x.flip(1), y), found.flip(0))
    assert found[0] > 10 * found[1:].max()


def test_a_frequent_value_does_not_hide_the_others():
    for share in (0.05, 0.95):
        x = (torch.arange(1000) < 1000 * share).double()[:, None]
        entropy = -(share * math.log(share) + (1 - share) * math.log(1 - share))
        assert mutual_information(x, x).item() == pytest.approx(entropy, abs=1e-3)


def test_of_a_block_the_part_that_tells_most_counts():
    x = normals(500, 3)
    gaps = (normals(500, 1, seed=3) > 1).double()  # a number and the column of its gaps
    y = torch.stack([x[:, 1], gaps[:, 0] + 0.1 * x[:, 2]], dim=1)
    x = torch.cat([x, gaps], dim=1)
    alone = mutual_information(x, y)
    blocks = torch.tensor([0, 1, 1, 1])
    expected = torch.stack([alone[0], alone[1:].amax(dim=0)])
    torch.testing.assert_close(mutual_information(x, y, blocks=blocks), expected)


def test_every_target_has_its_own_and_half_precision_will_do():
    x = normals(400, 4)
    found = mutual_information(x.half(), x[:, :2].half())
    assert found.shape == (4, 2)
    assert found.dtype == torch.float64
    assert found.argmax(dim=0).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.ones(1, 2), torch.ones(1, 1)),
        (torch.ones(2, 1), torch.tensor([[0.0], [1.0]])),
        (torch.ones(50, 2), torch.randn(50, 1)),
        (torch.randn(50, 2), torch.ones(50, 1)),
        (torch.randn(1, 2).expand(50, 2), torch.randn(1, 1).expand(50, 1)),
    ],
)
def test_without_spread_there_is_none(x, y):
    assert torch.equal(mutual_information(x, y), torch.zeros(x.shape[1], 1, dtype=torch.float64))


def test_wide_inputs_are_looked_at_in_parts(monkeypatch):
    x, y = normals(60, 50), normals(60, 2, seed=1)
    whole = mutual_information(x, y)
    monkeypatch.setattr("regaug.functional.information._SOME", 60 * 7)
    torch.testing.assert_close(mutual_information(x, y), whole)


@pytest.mark.parametrize(
    ("x", "y", "blocks", "error", "words"),
    [
        (torch.ones(2, 3, 4), torch.ones(2, 3, 1), None, ArgumentError, r"`x` must be \(n, d\)"),
        (torch.ones(3, 4), torch.ones(2, 1), None, ArgumentError, "equal leading shapes"),
        (torch.ones(3, 4), torch.ones(3, 1), torch.zeros(3).long(), ArgumentError, "the 4 columns"),
        (torch.full((3, 4), torch.nan), torch.ones(3, 1), None, NonFiniteError, "`x` must be fin"),
        (torch.ones(3, 4), torch.full((3, 1), torch.inf), None, NonFiniteError, "`y` must be fin"),
    ],
)
def test_what_does_not_fit_is_refused(x, y, blocks, error, words):
    with pytest.raises(error, match=words):
        mutual_information(x, y, blocks=blocks)

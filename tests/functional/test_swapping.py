"""Swapping of columns between rows, against the formula, one number at a time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.swapping import feature_mix


def make_case(*leading, n=6, d=5, m=2, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*leading, n, d, generator=generator, dtype=torch.float64).to(dtype)
    y = torch.randn(*leading, n, m, generator=generator, dtype=torch.float64).to(dtype)
    codes = torch.randint(d, (d,), generator=generator)
    blocks = torch.unique(codes, return_inverse=True)[1]
    count = int(blocks.max()) + 1
    weights = torch.rand(*leading, count, m, generator=generator, dtype=torch.float64)
    return (
        x,
        y,
        {
            "partners": torch.randint(n, (*leading, n), generator=generator),
            "swapped": torch.rand(*leading, n, count, generator=generator) < 0.4,
            "blocks": blocks,
            "weights": weights / weights.sum(dim=-2, keepdim=True),
        },
    )


def swap_by_loop(x, y, partners, swapped, blocks, weights):
    new_x, new_y = x.clone(), y.clone()
    for i, j in enumerate(partners.tolist()):
        for column, block in enumerate(blocks.tolist()):
            if swapped[i, block]:
                new_x[i, column] = x[j, column]
        for target in range(y.shape[1]):
            share = sum(
                weights[block, target] for block in range(len(weights)) if swapped[i, block]
            )
            new_y[i, target] = (1 - share) * y[i, target] + share * y[j, target]
    return new_x, new_y


cases = st.builds(
    make_case,
    n=st.integers(1, 8),
    d=st.integers(1, 7),
    m=st.integers(1, 3),
    seed=st.integers(0, 999),
)


@given(cases)
def test_it_is_the_formula_one_number_at_a_time(case):
    x, y, options = case
    new_x, new_y = feature_mix(x, y, **options)
    expected_x, expected_y = swap_by_loop(x, y, **options)
    assert torch.equal(new_x, expected_x)
    torch.testing.assert_close(new_y, expected_y)


@given(cases)
def test_without_weights_every_block_counts_alike(case):
    x, y, options = case
    count = options["swapped"].shape[1]
    alike = torch.full((count, y.shape[1]), 1 / count, dtype=torch.float64)
    _, new_y = feature_mix(x, y, **{**options, "weights": None})
    torch.testing.assert_close(new_y, feature_mix(x, y, **{**options, "weights": alike})[1])
    share = options["swapped"].sum(dim=1, keepdim=True) / count
    torch.testing.assert_close(new_y, y + share.double() * (y[options["partners"]] - y))


@given(cases)
def test_weights_of_zero_keep_the_targets(case):
    x, y, options = case
    _, new_y = feature_mix(x, y, **{**options, "weights": 0 * options["weights"]})
    assert torch.equal(new_y, y)


@given(cases)
def test_all_blocks_are_the_partner_and_none_is_the_row(case):
    x, y, options = case
    every = torch.ones_like(options["swapped"])
    new_x, new_y = feature_mix(x, y, **{**options, "swapped": every})
    assert torch.equal(new_x, x[options["partners"]])
    torch.testing.assert_close(new_y, y[options["partners"]])
    new_x, new_y = feature_mix(x, y, **{**options, "swapped": ~every})
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_inputs_are_never_rounded_and_targets_once(dtype):
    x, y, options = make_case(dtype=dtype)
    new_x, new_y = feature_mix(x, y, **options)
    expected_x, expected_y = swap_by_loop(x, y.double(), **options)
    assert (new_x.dtype, new_y.dtype) == (dtype, dtype)
    assert torch.equal(new_x, expected_x)
    torch.testing.assert_close(new_y.double(), expected_y, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_the_largest_numbers_of_float16_stay_finite():
    x, y, options = make_case(dtype=torch.float16)
    largest = torch.finfo(torch.float16).max
    new = feature_mix(x.sign() * largest, y.sign() * largest, **options)
    assert all(tensor.isfinite().all() for tensor in new)


def test_a_stack_is_its_batches_one_by_one():
    x, y, options = make_case(2, 3)
    several = torch.stack([options["blocks"], options["blocks"].flip(0)])[:, None].expand(2, 3, 5)
    new_x, new_y = feature_mix(x, y, **{**options, "blocks": several})
    for i, j in ((i, j) for i in range(2) for j in range(3)):
        own = {name: options[name][i, j] for name in ("partners", "swapped", "weights")}
        one_x, one_y = feature_mix(x[i, j], y[i, j], **own, blocks=several[i, j])
        assert torch.equal(new_x[i, j], one_x)
        torch.testing.assert_close(new_y[i, j], one_y)


def test_the_gradient_matches_finite_differences():
    x, y, options = make_case()

    def call(x, y):
        return feature_mix(x, y, **options)

    assert gradcheck(call, (x.requires_grad_(), y.requires_grad_()))


def test_a_value_that_is_not_taken_does_not_matter():
    x, y, options = make_case()
    taken = options["swapped"][:, options["blocks"]]
    broken = x.clone().requires_grad_()
    with torch.no_grad():
        broken[0, taken[0]] = torch.nan  # overwritten in row 0
    options["partners"] = torch.tensor([1, 2, 3, 4, 5, 1])
    new_x, _ = feature_mix(broken, y, **options)
    assert new_x.isfinite().all()
    new_x.sum().backward()
    assert broken.grad.isfinite().all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"swapped": torch.ones(6, 4)}, ArgumentTypeError, "`swapped` must be .* torch.bool, got"),
        ({"swapped": [[True]]}, ArgumentTypeError, "`swapped` must be .* torch.bool, got list"),
        ({"swapped": torch.ones(5, 4) > 0}, ArgumentError, r"`swapped` must be \(..., n, blocks\)"),
        ({"blocks": None}, ArgumentError, "a flag for each of the 5 columns, got 4. Say which"),
        ({"blocks": torch.zeros(5)}, ArgumentTypeError, "`blocks` must be an int64 tensor"),
        ({"blocks": [0] * 5}, ArgumentTypeError, "`blocks` must be an int64 tensor .* got list"),
        ({"blocks": torch.zeros(4).long()}, ArgumentError, "each of the 5 columns, got shape"),
        ({"blocks": torch.tensor([0, 1, 2, 3, 4])}, ArgumentError, "from 0 to 3, got 4"),
        ({"blocks": torch.tensor([0, 1, -2, 3, 3])}, ArgumentError, "from 0 to 3, got -2"),
        ({"weights": torch.ones(4, 2)}, ArgumentError, "1 at most in sum, got .* a sum of 4"),
        ({"weights": -torch.ones(4, 2)}, ArgumentError, "at least 0 .* a smallest one of -1"),
        ({"weights": torch.full((4, 2), torch.nan)}, ArgumentError, "must be at least 0"),
        ({"weights": torch.ones(3, 2)}, ArgumentError, r"`weights` must be \(..., 4, 2\)"),
        ({"weights": torch.ones(4)}, ArgumentError, r"a row for each block, got \(4,\)"),
        ({"weights": torch.ones(4, 2).long()}, ArgumentTypeError, "`weights` must hold floating"),
        ({"partners": torch.arange(5)}, ArgumentError, "one for each of the 6 rows, got 5"),
        ({"partners": torch.arange(1, 7)}, ArgumentError, "rows of the batch, from 0 to 5, got 6"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(change, error, words):
    x, y, options = make_case()
    options["blocks"] = torch.tensor([0, 1, 1, 2, 3])
    options["swapped"] = torch.zeros(6, 4) > 0
    options["weights"] = torch.full((4, 2), 0.25)
    feature_mix(x, y, **options)
    with pytest.raises(error, match=words):
        feature_mix(x, y, **{**options, **change})

"""Partners by distance and shares by distance: against loops, closed forms and ugly rows."""

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.functional import assigned_partners, nearest_partners, warp_shares

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def make_rows(*leading, n=8, d=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*leading, n, d, generator=generator, dtype=torch.float64)


def make_order(*leading, n=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*leading, n, generator=generator).argsort(-1)


def make_draws(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def ugly_rows(n=6, d=3):
    x = make_rows(n=n, d=d)
    return {
        "constant": torch.ones_like(x),
        "zero": torch.zeros_like(x),
        "duplicated": x[[0, 0, 0, 1, 1, 2]],
        "a constant column": x.index_fill(1, torch.tensor([1]), 3.0),
        "huge": x * 1e300,
        "tiny": x * 1e-300,
        "an outlier": x.index_fill(0, torch.tensor([2]), 1e8),
    }


# The nearest


def slow_nearest(x, draws, neighbors):
    """For every row sort the others by their distance, and count."""
    partners = []
    for i, draw in enumerate(draws.tolist()):
        others = [j for j in range(len(x)) if j != i]
        others.sort(key=lambda j, i=i: float((x[i] - x[j]).square().sum()))
        near = others[:neighbors]
        partners.append(near[int(draw * len(near))])
    return torch.tensor(partners)


@given(n=st.integers(2, 12), neighbors=st.integers(1, 15), seed=st.integers(0, 99))
def test_partners_are_among_the_nearest_rows(n, neighbors, seed):
    x, draws = make_rows(n=n, seed=seed), make_draws(n, seed=seed)
    found = nearest_partners(x, draws=draws, neighbors=neighbors)
    assert torch.equal(found, slow_nearest(x, draws, neighbors))


def test_every_neighbor_is_chosen_as_often():
    x, draws = torch.arange(4.0)[:, None], (torch.arange(300) / 300)[:, None].repeat(1, 4)
    found = nearest_partners(x.expand(300, 4, 1), draws=draws, neighbors=3)
    for row in range(4):
        assert torch.bincount(found[:, row], minlength=4).tolist() == [
            0 if own == row else 100 for own in range(4)
        ]


def test_every_batch_of_a_stack_may_have_its_number_of_neighbors():
    x, draws = make_rows(3), make_draws(3, 8)
    found = nearest_partners(x, draws=draws, neighbors=torch.tensor([1, 3, 20]))
    for rows, own, neighbors, partners in zip(x, draws, (1, 3, 20), found, strict=True):
        alone = nearest_partners(rows, draws=own, neighbors=neighbors)
        assert torch.equal(partners, alone)


# An assignment


@pytest.mark.parametrize("half", range(1, 8))
@pytest.mark.parametrize("odd", [0, 1])
def test_an_assignment_is_the_best_of_all(half, odd):
    n = 2 * half + odd
    x, order = make_rows(n=n, seed=half), make_order(n=n, seed=half)
    first, second, rest = order[:half], order[half : 2 * half], order[2 * half :]
    apart = (x[first][:, None] - x[second]).square().sum(-1).numpy()
    ways = np.array(list(permutations(range(half))))
    best = ways[apart[np.arange(half), ways].sum(1).argmin()]
    expected = torch.arange(n)
    expected[first], expected[second[best]] = second[best], first
    found = assigned_partners(x, order=order)
    assert torch.equal(found, expected)
    assert torch.equal(found[rest], rest)  # alone
    assert torch.equal(found[found], torch.arange(n))  # each other's


def test_a_stack_is_assigned_batch_by_batch():
    x, order = make_rows(2, 3, n=9), make_order(2, 3, n=9)
    found = assigned_partners(x, order=order)
    for i, j in np.ndindex(2, 3):
        assert torch.equal(found[i, j], assigned_partners(x[i, j], order=order[i, j]))


def test_assigned_rows_are_closer_than_random_ones():
    x, order = make_rows(50, n=32), make_order(50, n=32)
    found = assigned_partners(x, order=order)
    apart = (x - x.gather(1, found[..., None].expand_as(x))).square().sum(-1).mean()
    assert apart < 0.6 * 2 * 3  # twice the variance, in three columns


# Shares


def slow_shares(rows, lam, partners, alpha, width):
    apart = [float((rows[i] - rows[j]).square().sum()) for i, j in enumerate(partners)]
    mean = sum(apart) / len(apart)
    strengths = [alpha * np.exp((1 - own / mean) / (2 * width**2)) for own in apart]
    return [beta.ppf(lam, tau, tau) for tau in strengths]


@given(
    seed=st.integers(0, 99),
    lam=st.floats(0.01, 0.99),
    alpha=st.floats(0.2, 5.0),
    width=st.floats(0.4, 5.0),
)
def test_shares_are_those_of_the_formula(seed, lam, alpha, width):
    rows, partners = make_rows(seed=seed), make_order(seed=seed)
    if torch.equal(partners, torch.arange(8)):
        return
    found = warp_shares(rows, lam=lam, partners=partners, alpha=alpha, width=width)
    expected = slow_shares(rows, lam, partners.tolist(), alpha, width)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_a_wide_kernel_gives_every_pair_the_share_of_mixup(alpha):
    rows, partners = make_rows(), make_order()
    found = warp_shares(rows, lam=0.3, partners=partners, alpha=alpha, width=1e6)
    np.testing.assert_allclose(found, beta.ppf(0.3, alpha, alpha), rtol=1e-8)


@pytest.mark.parametrize(("lam", "end"), [(0.3, 0.0), (0.7, 1.0)])
def test_a_narrow_kernel_leaves_far_pairs_and_halves_near_ones(lam, end):
    rows, partners = torch.tensor([[0.0], [1.0], [10.0]]), torch.tensor([1, 2, 0])
    found = warp_shares(rows, lam=lam, partners=partners, alpha=1.0, width=0.05)
    np.testing.assert_allclose(found, [0.5, end, end], atol=0.01)
    weak = warp_shares(rows, lam=lam, partners=partners, alpha=1e-9, width=1.0)
    np.testing.assert_allclose(weak, end, atol=1e-9)


def test_shares_fall_to_the_ends_with_the_distance():
    rows, partners = torch.tensor([[0.0], [1.0], [3.0], [6.0]]), torch.tensor([1, 2, 3, 0])
    found = warp_shares(rows, lam=0.2, partners=partners, alpha=1.0, width=0.5)
    assert found.tolist() == sorted(found.tolist(), reverse=True)
    above = warp_shares(rows, lam=0.8, partners=partners, alpha=1.0, width=0.5)
    torch.testing.assert_close(above, 1.0 - found)


def test_shares_of_a_stack_have_numbers_of_their_own():
    rows, partners = make_rows(2, 3), make_order(2, 3)
    lam, alpha, width = make_draws(3, 2, 3) + 1e-3
    lam = lam.clamp(max=1.0)
    found = warp_shares(rows, lam=lam, partners=partners, alpha=alpha, width=width)
    for at in np.ndindex(2, 3):
        alone = warp_shares(
            rows[at],
            lam=float(lam[at]),
            partners=partners[at],
            alpha=float(alpha[at]),
            width=float(width[at]),
        )
        torch.testing.assert_close(found[at], alone, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 7, 130])
def test_rows_that_are_equally_far_are_chosen_alike_in_every_stack(d, dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(3, (40, 16, d), generator=generator).to(dtype) / 3
    order, draws = make_order(40, n=16), torch.rand(40, 16, generator=generator)
    assigned = assigned_partners(x, order=order)
    nearest = nearest_partners(x, draws=draws, neighbors=3)
    for i in range(40):
        assert torch.equal(assigned[i], assigned_partners(x[i], order=order[i]))
        assert torch.equal(nearest[i], nearest_partners(x[i], draws=draws[i], neighbors=3))


# Rows that are ugly, in part not there, or wrong


@pytest.mark.parametrize("kind", ugly_rows())
def test_ugly_rows_have_partners_and_shares(kind):
    x, order, draws = ugly_rows()[kind], make_order(n=6), make_draws(6)
    assigned = assigned_partners(x, order=order)
    assert torch.equal(assigned[assigned], torch.arange(6))
    nearest = nearest_partners(x, draws=draws, neighbors=2)
    assert (nearest != torch.arange(6)).all()
    for width in (5e-324, 1e-9, 1.0, 1e300):
        shares = warp_shares(x, lam=0.3, partners=order, alpha=1.0, width=width)
        assert ((shares >= 0.0) & (shares <= 1.0)).all()
    if kind in ("constant", "zero"):
        assert (shares == 0.3).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_scale_and_precision_do_not_change_who_is_near(dtype):
    x, order, draws = make_rows(), make_order(), make_draws(8)
    x = x.to(dtype)
    scaled = x.double() * 1e200
    assert torch.equal(assigned_partners(x, order=order), assigned_partners(scaled, order=order))
    assert torch.equal(
        nearest_partners(x, draws=draws, neighbors=3),
        nearest_partners(scaled, draws=draws, neighbors=3),
    )


def test_one_row_is_its_own_partner():
    x, zero = torch.ones(2, 1, 3), torch.zeros(2, 1)
    assert nearest_partners(x, draws=zero, neighbors=3).tolist() == [[0], [0]]
    assert assigned_partners(x, order=zero.long()).tolist() == [[0], [0]]
    shares = warp_shares(x, lam=0.3, partners=zero.long(), alpha=2.0, width=1.0)
    np.testing.assert_allclose(shares, beta.ppf(0.3, 2.0, 2.0))


def test_values_that_are_not_there_count_as_the_mean_of_their_column():
    x, mask = make_rows(), make_draws(8, 3) < 0.7
    mask[:, 0], mask[:, 2] = True, False  # all have one value, and nobody has another
    filled = x.where(mask, ((x * mask).sum(0) / mask.sum(0).clamp(min=1)).expand_as(x))
    unknown = x.masked_fill(~mask, torch.nan)
    order, draws = make_order(), make_draws(8)
    assert torch.equal(
        assigned_partners(unknown, order=order, mask=mask), assigned_partners(filled, order=order)
    )
    assert torch.equal(
        nearest_partners(unknown, draws=draws, neighbors=3, mask=mask),
        nearest_partners(filled, draws=draws, neighbors=3),
    )
    numbers = {"lam": 0.3, "partners": order, "alpha": 1.0, "width": 0.5}
    torch.testing.assert_close(
        warp_shares(unknown, mask=mask, **numbers), warp_shares(filled, **numbers)
    )


def test_the_callers_tensors_are_not_modified_and_have_no_gradient():
    x, order, draws = make_rows().requires_grad_(), make_order(), make_draws(8)
    copies = x.clone(), order.clone(), draws.clone()
    assigned_partners(x, order=order)
    nearest_partners(x, draws=draws, neighbors=2)
    shares = warp_shares(x, lam=0.5, partners=order, alpha=1.0, width=1.0)
    assert not shares.requires_grad
    assert all(torch.equal(a, b) for a, b in zip((x, order, draws), copies, strict=True))


X, DRAWS, ORDER = make_rows(), make_draws(8), make_order()
WARP = {"lam": 0.5, "partners": ORDER, "alpha": 1.0, "width": 1.0}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nearest_partners(X, draws=DRAWS, neighbors=0),
            ArgumentError,
            "`neighbors` must be at least 1, got 0",
        ),
        (
            lambda: nearest_partners(X, draws=DRAWS, neighbors=1.5),
            ArgumentTypeError,
            "`neighbors` must be a whole number, got 1.5",
        ),
        (
            lambda: nearest_partners(X, draws=DRAWS, neighbors=torch.ones(2)),
            ArgumentError,
            "`neighbors` must be .* leading shape",
        ),
        (
            lambda: nearest_partners(X, draws=DRAWS[:4], neighbors=1),
            ArgumentError,
            r"`draws` must be a tensor with a number for each row, \(8,\), got \(4,\)",
        ),
        (
            lambda: nearest_partners(X[0], draws=DRAWS, neighbors=1),
            ArgumentError,
            r"`x` must be \(..., n, d\) and not empty, got \(3,\)",
        ),
        (
            lambda: nearest_partners(X.long(), draws=DRAWS, neighbors=1),
            ArgumentTypeError,
            "`x` must hold floating-point",
        ),
        (
            lambda: nearest_partners(X, draws=DRAWS, neighbors=1, mask=X[0] > 9),
            ArgumentError,
            "`mask` must be of torch.bool in the shape of `x`",
        ),
        (
            lambda: assigned_partners(X.index_fill(0, ORDER[:1], torch.nan), order=ORDER),
            NonFiniteError,
            "`x` must be finite, got nan",
        ),
        (
            lambda: assigned_partners(X, order=ORDER[:5]),
            ArgumentError,
            "`order` must be a tensor with a number for each row",
        ),
        (
            lambda: assigned_partners(X, order=ORDER % 4),
            ArgumentError,
            "`order` must have every row of a batch once",
        ),
        (
            lambda: assigned_partners(X, order=ORDER.float()),
            ArgumentTypeError,
            "`order` must be an int64 tensor",
        ),
        (
            lambda: warp_shares(X, **WARP | {"lam": 1.5}),
            ArgumentError,
            r"`lam` must be in \[0, 1\], got 1.5",
        ),
        (
            lambda: warp_shares(X, **WARP | {"alpha": 0.0}),
            ArgumentError,
            "`alpha` must be greater than 0, got 0.0",
        ),
        (
            lambda: warp_shares(X, **WARP | {"width": torch.tensor(-1.0)}),
            ArgumentError,
            "`width` must be finite and greater than 0",
        ),
        (
            lambda: warp_shares(X, **WARP | {"partners": ORDER + 1}),
            ArgumentError,
            "`partners` must be rows of the batch, from 0 to 7, got 8",
        ),
        (
            lambda: warp_shares(X * torch.inf, **WARP),
            NonFiniteError,
            "`rows` must be finite",
        ),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()

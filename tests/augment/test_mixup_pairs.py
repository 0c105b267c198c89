"""Mixup with assigned and near partners, and with the spread of the data: layers, masks."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from regaug import Compose, GaussianNoise, Mixup, SKMixup
from regaug._random import beta_at
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.functional import assigned_partners, mix, stretch

# What is new beside plain mixup.
KINDS = {
    "assignment": lambda **options: Mixup(pairs="assignment", **options),
    "neighbors": lambda **options: Mixup(pairs="neighbors", **options),
    "keep": lambda **options: Mixup(spread="keep", **options),
    "all": lambda **options: Mixup(0.5, pairs="assignment", spread="keep", **options),
    "sk": lambda **options: SKMixup(**options),
    "sk inputs": lambda **options: SKMixup(0.3, width=0.2, distance="inputs", **options),
    "sk two warps": lambda **options: SKMixup(alpha_y=0.2, width_y=3.0, **options),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_batch(n=12, d=4, seed=0, targets=(), dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator)
    return x.to(dtype), torch.randn(n, *targets, generator=generator).to(dtype)


def moments(rows):
    """Return the means and the covariances about them, of one batch or over all of several."""
    rows = rows.reshape(-1, rows.shape[-1])
    center = rows.mean(0)
    return center, (rows - center).T @ (rows - center) / len(rows)


# Partners


def test_assigned_partners_are_each_others_and_near():
    x, y = make_batch()
    augment = Mixup(pairs="assignment")
    new_x, new_y = augment(x, y)
    lam, partners = augment.params.lam, augment.params.partners
    assert torch.equal(partners[partners], torch.arange(12))
    assert (partners != torch.arange(12)).all()
    torch.testing.assert_close(new_x, lam * x + (1 - lam) * x[partners])
    torch.testing.assert_close(new_y, lam * y + (1 - lam) * y[partners])


def test_the_halves_are_random():
    x, y = make_batch(n=8)
    augment, met = Mixup(pairs="assignment"), torch.zeros(8, 8)
    for _ in range(300):
        met[torch.arange(8), augment.draw(x, y).partners] += 1
    assert ((met > 0).sum(1) > 2).all()  # the nearest one may be in the same half


def test_near_partners_are_the_nearest():
    x, y = make_batch()
    apart = torch.cdist(x, x).fill_diagonal_(torch.inf)
    for neighbors in (1, 3):
        augment = Mixup(pairs="neighbors", neighbors=neighbors)
        limits = apart.sort().values[:, neighbors - 1]
        for _ in range(20):
            partners = augment.draw(x, y).partners
            assert (apart[torch.arange(12), partners] <= limits).all()


def test_pairs_of_the_output_of_a_layer():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    x, y = make_batch(targets=(1,))
    at = Mixup(pairs="assignment").at(net, "1")
    prediction, new_y = at(x, y)
    lam, partners, hidden = at.params.lam, at.params.partners, net[:2](x)
    order = torch.rand(13, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = assigned_partners(hidden, order=order[1:].argsort())
    assert torch.equal(partners, expected)
    torch.testing.assert_close(prediction, net[2](lam * hidden + (1 - lam) * hidden[partners]))
    torch.testing.assert_close(new_y, lam * y + (1 - lam) * y[partners])


def test_groups_have_partners_of_their_own():
    groups, y = torch.arange(12) % 2, make_batch()[1]
    x = groups[:, None].double().expand(12, 4)  # whoever is mixed across groups is neither
    for pairs in ("assignment", "neighbors"):
        new_x, new_y = Mixup(pairs=pairs)(x, y, groups=groups)
        assert torch.equal(new_x, x)
        assert not torch.equal(new_y, y)


@pytest.mark.parametrize("kind", ["assignment", "neighbors", "sk", "sk inputs"])
def test_nothing_depends_on_values_that_are_not_there(kind):
    x, y = make_batch()
    mask = torch.rand(12, 4, generator=torch.Generator().manual_seed(1)) < 0.7
    results = []
    for value in (torch.nan, 0.0, 1e9):
        new_x, new_y = KINDS[kind]()(x.masked_fill(~mask, value), y, mask=mask)
        results.append((new_x.masked_fill(~mask, 0.0), new_y))
    for new_x, new_y in results:
        assert torch.equal(new_x, results[0][0])
        assert torch.equal(new_y, results[0][1])
        assert new_x.isfinite().all()
    chain = Compose(KINDS[kind](), GaussianNoise(0.0))
    new_x, _ = chain(x.masked_fill(~mask, torch.nan), y, mask=mask)
    assert torch.equal(new_x.masked_fill(~mask, 0.0), results[0][0])


# Spread


@pytest.mark.parametrize("pairs", ["random", "assignment"])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_the_spread_of_the_data_is_kept(pairs, alpha):
    x, y = make_batch(n=8, d=2, targets=(1,))
    x = x + 3.0 * y  # what is correlated must stay so
    center, spread = moments(torch.cat([x, y], 1))
    runs = [
        Mixup(alpha, pairs=pairs, spread="keep", generator=torch.Generator().manual_seed(seed))
        for seed in range(500)
    ]
    stack = x.expand(500, 8, 2), y.expand(500, 8, 1)
    made = torch.stack([torch.cat(Mixup.across_runs(runs, *stack), 2) for _ in range(8)])
    found_center, found_spread = moments(made)
    torch.testing.assert_close(found_center, center)  # of every batch, exactly
    torch.testing.assert_close(found_spread, spread, atol=0.06 * float(spread.max()), rtol=0.0)


def test_plain_mixup_shrinks_the_spread_by_a_third():
    x, y = make_batch(n=8, d=2, targets=(1,))
    augment = Mixup(1.0)
    made = torch.stack([augment(x, y)[0] for _ in range(2000)])
    torch.testing.assert_close(moments(made)[1], moments(x)[1] * 2 / 3, atol=0.05, rtol=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_the_spread_is_kept_over_a_million_draws(alpha):
    x, y = make_batch(n=8, d=3, targets=(1,))
    rows = torch.cat([x, 2.0 * x[:, :1] + y], 1)
    rng, seconds = np.random.default_rng(0), torch.zeros(4, 4, dtype=torch.float64)
    center = torch.zeros(4, dtype=torch.float64)
    for _ in range(100):
        lam = stretch(beta_at(np.array(alpha), rng.random(10_000)), alpha=alpha)
        partners = torch.from_numpy(rng.random((10_000, 8)).argsort(1))
        stack = rows.expand(10_000, 8, 4)
        new, _ = mix(stack, stack, lam=torch.from_numpy(lam), partners=partners)
        center += new.mean((0, 1)) / 100
        seconds += torch.einsum("bni,bnj->ij", new, new) / 8e6
    expected_center, expected = moments(rows)
    torch.testing.assert_close(center, expected_center)
    found = seconds - center[:, None] * center
    torch.testing.assert_close(found, expected, atol=0.004 * float(expected.max()), rtol=0.0)


# All of them


@every_kind
def test_the_gradient_at_a_layer_matches_finite_differences(kind):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    x, y = make_batch(n=6, targets=(1,))
    augment = KINDS[kind]()
    params = augment.draw(net[:2](x), y)
    augment.draw = lambda x, y: params  # shares and partners are constants to the gradient
    at = augment.at(net, "1")
    x.requires_grad_(), y.requires_grad_()
    assert gradcheck(lambda x, y: at(x, y), (x, y))


@every_kind
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shape_and_dtype_are_kept(kind, dtype):
    x, y = torch.randn(7, 3, 2).to(dtype), torch.randn(7, 2, 2)
    copies = x.clone(), y.clone()
    new_x, new_y = KINDS[kind]()(x, y)
    assert (new_x.shape, new_x.dtype) == (x.shape, x.dtype)
    assert (new_y.shape, new_y.dtype) == (y.shape, y.dtype)
    assert torch.equal(x, copies[0])
    assert torch.equal(y, copies[1])


@every_kind
@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_rows_stay_as_they_are(kind, n):
    x, y = make_batch(n=n)
    new_x, new_y = KINDS[kind]()(x[:1].expand(n, 4), y[:1].expand(n))
    torch.testing.assert_close(new_x, x[:1].expand(n, 4))
    torch.testing.assert_close(new_y, y[:1].expand(n))


@every_kind
def test_duplicated_rows_go_through(kind):
    x, y = make_batch()
    x = x[torch.arange(12) // 4]
    new_x, new_y = KINDS[kind]()(x, y)
    assert new_x.isfinite().all()
    assert new_y.isfinite().all()


def make_random_stack(rng, runs):
    """Return batches of any size, scale and precision, with equal rows and columns in many."""
    n, d, m = int(rng.integers(1, 12)), int(rng.integers(1, 7)), int(rng.integers(1, 3))
    rows = rng.standard_normal((runs, n, d + m))
    rows *= 10.0 ** rng.integers(-12, 13, size=(runs, 1, d + m))
    for own in rows:
        if rng.random() < 0.2:
            own[:] = own[rng.integers(n, size=n)]
        if rng.random() < 0.2:
            own[:, rng.integers(d + m)] = rng.choice([0.0, 1.0, 1e9])
    dtype = (torch.float16, torch.bfloat16, torch.float32, torch.float64)[int(rng.integers(4))]
    if dtype == torch.float16:
        rows = rows.clip(-6e4, 6e4)
    stack = torch.from_numpy(rows).to(dtype)
    return stack[..., :d], stack[..., d:]


def make_random_run(kind, rng):
    augment = KINDS[kind](generator=torch.Generator().manual_seed(int(rng.integers(2**31))))
    augment.alpha = 10.0 ** rng.uniform(-3, 3)
    if isinstance(augment, SKMixup):
        augment.width = 10.0 ** rng.uniform(-3, 3)
    return augment


@every_kind
def test_random_batches_stay_finite(kind):
    rng = np.random.default_rng(0)
    for _ in range(300):
        x, y = make_random_stack(rng, 1)
        new_x, new_y = make_random_run(kind, rng)(x[0], y[0])
        assert new_x.isfinite().all()
        assert new_y.isfinite().all()


@pytest.mark.slow
@every_kind
def test_many_random_batches_stay_finite(kind):
    rng = np.random.default_rng(0)
    for _ in range(500):
        runs = [make_random_run(kind, rng) for _ in range(200)]
        new_x, new_y = type(runs[0]).across_runs(runs, *make_random_stack(rng, 200))
        assert new_x.isfinite().all()
        assert new_y.isfinite().all()


@pytest.mark.parametrize("pairs", ["assignment", "neighbors"])
def test_inputs_that_are_not_finite_have_no_distances(pairs):
    x, y = make_batch()
    x[3, 1] = torch.inf
    with pytest.raises(NonFiniteError, match=r"`x` must be finite, got inf at index \(3, 1\)"):
        Mixup(pairs=pairs)(x, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pairs": "near"}, ArgumentError, "`pairs` must be one of 'random', .*got 'near'"),
        ({"spread": "wide"}, ArgumentError, "`spread` must be one of 'shrink', 'keep', got 'wide'"),
        ({"neighbors": 0}, ArgumentError, "`neighbors` must be at least 1, got 0"),
        ({"neighbors": 2.5}, ArgumentTypeError, "`neighbors` must be a whole number, got 2.5"),
        (
            {"pairs": "assignment", "paired": True},
            ArgumentError,
            "`pairs` must be 'random' for `paired=True`.*got 'assignment'. Leave out one",
        ),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        Mixup(**options)


def test_repr_shows_the_choices():
    assert repr(Mixup(pairs="assignment", spread="keep")) == (
        "Mixup(alpha=1.0, pairs='assignment', spread='keep', paired=False, p=1.0, anneal=None)"
    )

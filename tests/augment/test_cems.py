"""CEMS's own options: the step, the dimension, the neighbors, layers, and what must not fail."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regaug.augment.across import RunBatches
from regaug.augment.cems import CEMS, CEMSParams
from regaug.exceptions import ArgumentError, ArgumentTypeError, NotFittedError, PlaceError
from regaug.functional.curvature import cems


def make_batch(n=16, d=4, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=dtype)
    return x, torch.randn(n, generator=generator, dtype=dtype)


def make_plane(n, d=6, seed=0):
    """Points on a plane in d + 1 joint dimensions."""
    generator = torch.Generator().manual_seed(seed)
    t = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    joint = t @ torch.randn(2, d + 1, generator=generator, dtype=torch.float64)
    return joint[:, :-1], joint[:, -1]


# The step.


@given(
    n=st.integers(1, 12),
    features=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    targets=st.lists(st.integers(1, 2), max_size=2),
    seed=st.integers(0, 99),
)
def test_any_shape_is_flattened_and_restored(n, features, targets, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, *features, generator=generator)
    y = torch.randn(n, *targets, generator=generator, dtype=torch.float64)
    augment = CEMS(0.3, d=2)
    new_x, new_y = augment(x, y)
    assert (new_x.shape, new_x.dtype) == (x.shape, x.dtype)
    assert (new_y.shape, new_y.dtype) == (y.shape, y.dtype)
    rows = x.reshape(n, -1), y.reshape(n, -1)
    expected = cems(*rows, eta=augment.params.eta)
    torch.testing.assert_close(new_x, expected[0].reshape(x.shape))
    torch.testing.assert_close(new_y, expected[1].reshape(y.shape))


def test_steps_are_normal_with_the_given_deviation():
    x, y = make_batch(n=4000, d=3)
    eta = CEMS(0.25, d=2).draw(x, y).eta
    assert eta.shape == (4000, 2)
    torch.testing.assert_close(eta.std(0), torch.full((2,), 0.25).double(), rtol=0.05, atol=0)
    torch.testing.assert_close(eta.mean(0), torch.zeros(2).double(), rtol=0, atol=0.02)


def test_sigma_zero_is_the_identity():
    x, y = make_batch()
    augment = CEMS(0.0, d=2)
    new_x, new_y = augment(x, y)
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)
    assert not augment.params.eta.any()


def test_the_neutral_parameters_return_the_batch():
    x, y = make_batch()
    assert CEMS().transform(x, y, CEMS.neutral) == (x, y)
    assert CEMS().eval()(x, y) == (x, y)


def test_same_seed_same_result_whatever_ran_before():
    x, y = make_batch()
    first = CEMS(generator=torch.Generator().manual_seed(5))(x, y)
    torch.rand(3)
    state = torch.get_rng_state()
    augment = CEMS(generator=torch.Generator().manual_seed(5))
    again, later = augment(x, y), augment(x, y)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(again[0], later[0])
    assert torch.equal(torch.get_rng_state(), state)


def test_append_puts_the_originals_first():
    x, y = make_batch()
    new_x, new_y = CEMS(append=True)(x, y)
    assert torch.equal(new_x[:16], x)
    assert torch.equal(new_y[:16], y)
    assert len(new_x) == len(new_y) == 32
    assert not torch.equal(new_x[16:], x)


def test_ridge_reaches_the_fit():
    x, y = make_batch(dtype=torch.float64)
    params = CEMSParams(torch.ones(16, 2))
    stiff = torch.column_stack(CEMS(ridge=1e9).transform(x, y, params))
    flat = torch.column_stack([x, y])
    moved = (stiff - flat).norm(dim=1)  # a stiff sheet is flat, so the step is eta alone
    torch.testing.assert_close(moved, torch.full((16,), 2.0**0.5).double(), rtol=1e-6, atol=0)


# The dimension.


def test_two_nn_per_batch_finds_the_plane():
    x, y = make_plane(200)
    augment = CEMS()
    new_x, new_y = augment(x, y)
    assert augment.params.eta.shape in {(200, 2), (200, 3)}  # rounded up
    rows, new = torch.column_stack([x, y]), torch.column_stack([new_x, new_y])
    assert not torch.allclose(new, rows, atol=1e-3)
    normal = torch.linalg.svd(rows).Vh[2:]
    torch.testing.assert_close(new @ normal.mT, torch.zeros(200, 5).double(), rtol=0, atol=1e-9)


def test_a_regular_grid_has_fewer_tangent_directions_than_columns():
    x = torch.cartesian_prod(torch.arange(5.0), torch.arange(5.0))  # two_nn is infinite here
    augment = CEMS()
    augment(x, torch.zeros(25))
    assert augment.params.eta.shape == (25, 2)


@pytest.mark.parametrize("rows", [1, 2, 8])
def test_too_few_different_rows_for_two_nn_are_left_unchanged(rows):
    x, y = make_batch(2)
    x, y = x.repeat(4, 1)[:rows], y.repeat(4)[:rows]
    augment = CEMS()
    assert augment(x, y) == (x, y)
    assert augment.params is CEMS.neutral


def test_a_fixed_d_is_clamped_to_the_columns():
    augment = CEMS(d=30)
    for n in (1, 2, 16):
        x, y = make_batch(n)
        new_x, _ = augment(x, y)
        assert augment.params.eta.shape == (n, 5)
        assert new_x.isfinite().all()


def test_two_nn_data_is_estimated_by_fit_and_saved():
    x, y = make_plane(500)
    augment = CEMS(d="two_nn_data")
    with pytest.raises(NotFittedError, match=r"CEMS\(d='two_nn_data'\).*call `.fit\(x, y\)`"):
        augment(x, y)
    assert augment.fit(x, y) is augment
    assert augment.draw(x[:4], y[:4]).eta.shape[1] in (2, 3)
    fresh = CEMS(d="two_nn_data")
    fresh.load_state_dict(augment.state_dict())
    assert torch.equal(fresh.draw(x, y).eta, augment.draw(x, y).eta)  # the generator's state too


# Stored neighbors.


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_stored_neighbors_are_the_nearest_rows(tree, offset, monkeypatch):
    monkeypatch.setattr(CEMS, "tree_points", 0 if tree else 10**9)
    x, y = make_batch(300, 3, dtype=torch.float64)
    x = x + offset
    augment = CEMS(d=2, neighbors=7).fit(x, y)
    z = torch.column_stack([x, y]).numpy()
    distances = np.linalg.norm(z[:40, None] - z, axis=-1)
    expected = z[np.argsort(distances, axis=1)[:, :7]]
    np.testing.assert_array_equal(augment._neighborhoods(torch.from_numpy(z[:40])), expected)
    new_x, new_y = augment(x[:40], y[:40])
    by_hand = cems(
        x[:40], y[:40, None], eta=augment.params.eta, neighborhoods=torch.from_numpy(expected)
    )
    torch.testing.assert_close(new_x, by_hand[0])
    torch.testing.assert_close(new_y, by_hand[1][:, 0])


def test_lookups_in_blocks_find_the_same_rows():
    x, y = make_batch(50, 3)
    augment = CEMS(neighbors=5).fit(x, y)
    rows = torch.column_stack([x, y]).double()
    whole = augment._neighborhoods(rows)
    augment.block = 50 * 7
    assert torch.equal(augment._neighborhoods(rows), whole)


def test_stored_neighbors_must_be_fitted_first():
    x, y = make_batch()
    with pytest.raises(NotFittedError, match=r"CEMS\(neighbors=5\).*call `.fit\(x, y\)`"):
        CEMS(neighbors=5)(x, y)


@pytest.mark.parametrize("tree", [False, True])
def test_a_fresh_instance_takes_the_stored_rows_from_a_state_dict(tree, monkeypatch):
    monkeypatch.setattr(CEMS, "tree_points", 0 if tree else 10**9)
    x, y = make_batch(60)
    augment = CEMS(neighbors=9).fit(x, y)
    fresh = nn.ModuleDict({"cems": CEMS(neighbors=9).fit(x[:20] + 5, y[:20])})
    fresh["cems"](x, y)  # builds what it needs of the rows that are about to be replaced
    fresh.load_state_dict({f"cems.{name}": value for name, value in augment.state_dict().items()})
    for one, other in zip(augment(x, y), fresh["cems"](x, y), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("tree", [False, True])
def test_fitting_again_replaces_the_stored_rows(tree, monkeypatch):
    monkeypatch.setattr(CEMS, "tree_points", 0 if tree else 10**9)
    x, y = make_batch(60)
    augment = CEMS(neighbors=9).fit(x + 3, y)
    augment(x, y)
    augment.fit(x, y)
    rows = torch.column_stack([x, y]).double()
    assert torch.equal(augment._neighborhoods(rows)[:, 0], rows)


def test_copies_and_pickles_have_the_stored_rows_too(monkeypatch):
    monkeypatch.setattr(CEMS, "tree_points", 0)
    x, y = make_batch(60)
    augment = CEMS(neighbors=9).fit(x, y)
    augment(x, y)
    twins = copy.deepcopy(augment), pickle.loads(pickle.dumps(augment))
    expected = augment(x, y)
    for twin in twins:
        assert torch.equal(twin(x, y)[0], expected[0])


def test_more_neighbors_than_rows_means_all_of_them():
    x, y = make_batch(6)
    rows = torch.column_stack([x, y]).double()
    assert CEMS(neighbors=50).fit(x, y)._neighborhoods(rows).shape == (6, 6, 5)


def test_stored_rows_keep_no_history_and_are_a_copy():
    x, y = make_batch()
    augment = CEMS(neighbors=3).fit(x.requires_grad_(), y)
    stored = augment.state_dict()["_stored"]
    assert not stored.requires_grad
    before = stored.clone()
    y += 1
    assert torch.equal(augment.state_dict()["_stored"], before)


def test_other_columns_than_in_fit_are_named():
    augment = CEMS(neighbors=3).fit(*make_batch(d=4))
    with pytest.raises(ArgumentError, match=r"5 columns together, as in `fit`, got 9.*'batch'"):
        augment(*make_batch(d=8))


# Layers.


def test_at_a_layer_the_gradient_is_finite_with_dead_units():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        net[0].bias[:4] = -100.0
    x, y = make_batch()
    augment = CEMS(0.5)
    loss = nn.functional.mse_loss(*augment.at(net, "1")(x, y[:, None]))
    loss.backward()
    assert augment.params.eta is not None
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    assert net[0].weight.grad.any()


def test_stored_neighbors_are_refused_at_a_layer_and_work_at_the_input():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))  # as wide as the inputs
    x, y = make_batch()
    augment = CEMS(neighbors=5).fit(x, y)
    for place in ("0", ["0"], ["input", "0"]):
        with pytest.raises(PlaceError, match=r"'0'. Use neighbors='batch' there"):
            augment.at(net, place)
    output, new_y = augment.at(net, "input")(x, y)
    assert not torch.equal(new_y, y)
    assert output.shape == (16, 1)


# What must not fail.


@pytest.mark.parametrize("neighbors", ["batch", 4])
@pytest.mark.parametrize("d", ["two_nn", 1, 9])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_ugly_batches_give_finite_samples(neighbors, d, scale):
    x, y = make_batch(9, 3)
    for rows in (x, x[:1].expand(9, 3), 0 * x, x * torch.tensor([1.0, 0.0, 0.0])):
        for n in (1, 2, 9):
            batch = scale * rows[:n], scale * y[:n]
            augment = CEMS(d=d, neighbors=neighbors).fit(*batch)
            assert all(new.isfinite().all() for new in augment(*batch))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("neighbors", ["batch", 8])
def test_every_precision_is_kept(dtype, neighbors):
    x, y = make_batch(dtype=dtype)
    augment = CEMS(neighbors=neighbors).fit(x, y)
    before = x.clone(), y.clone()
    new_x, new_y = augment(x, y)
    assert new_x.dtype == new_y.dtype == dtype
    assert not torch.equal(new_x, x)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])
    new_x, _ = augment.half()(x, y)  # the stored rows are then in half precision too
    assert new_x.dtype == dtype


# Errors.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sigma": -0.1}, ArgumentError, "`sigma` must be at least 0, got -0.1"),
        ({"sigma": "big"}, ArgumentTypeError, "`sigma` must be a number"),
        ({"d": 0}, ArgumentError, "`d` must be at least 1, got 0"),
        ({"d": "three"}, ArgumentError, "`d` must be one of 'two_nn', 'two_nn_data', got 'three'"),
        ({"neighbors": 1}, ArgumentError, "`neighbors` must be at least 2, got 1"),
        ({"neighbors": "all"}, ArgumentError, "`neighbors` must be 'batch' or a whole number"),
        ({"neighbors": 2.5}, ArgumentTypeError, "`neighbors` must be a whole number"),
        ({"ridge": 0}, ArgumentError, "`ridge` must be at least 1e-09, got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        CEMS(**arguments)


def test_the_settings_are_shown():
    assert "sigma=0.2, d=3, neighbors='batch'" in repr(CEMS(0.2, d=3))


@pytest.mark.parametrize("neighbors", [4, 9])  # the two forms of ridge regression
@pytest.mark.parametrize("columns", [2, 12])
def test_sheets_that_are_known_give_what_each_batch_would_find(columns, neighbors, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, columns, generator=generator)
    y = x[:, :1] ** 2
    augment = CEMS(0.2, d=2, neighbors=neighbors).fit(x, y)
    params = augment.draw(x[:16], y[:16])
    known = augment.transform(x[:16], y[:16], params)
    assert augment._sheets is not None
    others = augment.transform(x[:16] + 0.25, y[:16], params)  # rows that are not stored
    monkeypatch.setattr(CEMS, "most_known", 0)
    plain = CEMS(0.2, d=2, neighbors=neighbors).fit(x, y)
    for found, shift in ((known, 0.0), (others, 0.25)):
        expected = plain.transform(x[:16] + shift, y[:16], params)
        for part, wanted in zip(found, expected, strict=True):
            assert torch.allclose(part, wanted, atol=1e-6)
    assert plain._sheets is None


def test_sheets_are_fitted_anew_after_another_fit():
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    augment = CEMS(0.2, d=2, neighbors=9).fit(x, x[:, :1])
    augment(x[:8], x[:8, :1])
    first = augment._sheets
    augment(x[8:16], x[8:16, :1])
    assert augment._sheets is first
    augment.fit(2 * x, x[:, 1:2])
    augment(2 * x[:8], x[:8, 1:2])
    assert augment._sheets is not first


def make_runs():
    """Runs on two sets of rows that differ in all that runs of one stack may differ in."""
    generator = torch.Generator().manual_seed(0)
    sets = [torch.randn(n, 4, generator=generator) for n in (40, 30)]
    options = [
        (0, {"d": 2, "neighbors": 8}),
        (1, {"d": 3, "neighbors": 5}),
        (0, {"d": 2, "neighbors": 8, "sigma": 0.3}),  # the same sheets as the first
        (0, {"d": 2, "neighbors": 8, "ridge": 0.1}),
        (1, {"d": "two_nn_data", "neighbors": 20}),
        (1, {"d": 1, "neighbors": 20}),
        (0, {"d": 9, "neighbors": 8}),  # more than there are columns
    ]
    parts = [
        CEMS(generator=torch.Generator().manual_seed(run), **own).fit(
            sets[number][:, :3], sets[number][:, 3:]
        )
        for run, (number, own) in enumerate(options)
    ]
    rows = torch.stack([torch.randperm(30, generator=generator)[:9] for _ in parts])
    joint = torch.stack([sets[n][own] for (n, _), own in zip(options, rows, strict=True)])
    return parts, rows, joint


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_sheets_of_many_runs_in_one_table_are_those_of_each(dtype, tolerance):
    parts, rows, joint = make_runs()
    alike, joint = copy.deepcopy(parts), joint.to(dtype)
    x, y = joint[..., :3], joint[..., 3:]
    across = CEMS.across(parts)
    for runs in (np.arange(7), np.array([5, 1, 2])):
        found = across.act(RunBatches(runs, x[runs], y[runs], rows[runs]))
        expected = [alike[run](x[run], y[run]) for run in runs]
        for new, wanted in zip(found, zip(*expected, strict=True), strict=True):
            assert new.dtype == dtype
            torch.testing.assert_close(new, torch.stack(wanted), rtol=0, atol=tolerance)


def test_runs_with_the_same_rows_and_settings_share_their_sheets():
    parts, rows, joint = make_runs()
    CEMS.across(parts).act(RunBatches(np.arange(7), joint[..., :3], joint[..., 3:], rows))
    known = [part._sheets.of(part._stored) for part in parts]
    assert known[2] is known[0]
    assert len({id(one) for one in known}) == 6


@pytest.mark.filterwarnings("ignore")  # torch's own, about what it does not trace
def test_known_sheets_are_found_in_a_compiled_call_too():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 4, generator=generator), torch.randn(64, 1, generator=generator)
    plain, other = (CEMS(neighbors=8, d=2).fit(x, y) for _ in range(2))
    compiled = torch.compile(other, backend="eager")
    for expected, found in zip(plain(x[:16], y[:16]), compiled(x[:16], y[:16]), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("neighbors", ["batch", 12])
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e-10, 1e-3, 1e-2, 1.0, 1e10, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_new_rows_stay_within_the_neighborhood_s_size_whatever_the_units(neighbors, scale, dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    y = x.square().sum(dim=1) / 3
    joint = torch.cat([x, y[:, None]], dim=1)
    widest = float(torch.cdist(joint, joint).max())
    x, y = (scale * x).to(dtype), (scale * y).to(dtype)
    for d in ("two_nn", 2):
        augment = CEMS(0.1, neighbors=neighbors, d=d).fit(x, y)
        new_x, new_y = augment(x, y)
        moved = torch.cat([new_x - x, (new_y - y)[:, None]], dim=1).double() / scale
        # Steps of a few sizes are taken as the paper has them, and its parabolas lead further.
        assert moved.norm(dim=1).max() < (10.0 if scale == 1e-2 else 2.0) * widest
        if scale <= 1.0:
            assert moved.abs().max() > 0.0


def test_nearly_equal_neighbors_throw_no_row_out_of_the_data():
    x = torch.cat([torch.randn(40, 2), torch.zeros(20, 2) + 1e-7 * torch.randn(20, 2)]).double()
    y = x.sum(dim=1)
    new_x, new_y = CEMS(0.3, neighbors=8, d=2).fit(x, y)(x, y)
    assert torch.cat([new_x, new_y[:, None]], dim=1).abs().max() < 20.0

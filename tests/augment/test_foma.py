"""FOMA's own options: the cut, the factor, shapes, and the batches that must not fail."""

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regaug import FOMA, Compose, two_nn
from regaug.augment.foma import count_cuts, go_on_counting, list_cuts
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import ArgumentError, ArgumentTypeError, NotFittedError
from regaug.functional import foma, rank_at_share
from regaug.models import MLP
from regaug.training import Settings, fit, fit_many


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


@given(rho=st.floats(0.0, 1.0), n=st.integers(1, 9), seed=st.integers(0, 99), center=st.booleans())
def test_rho_sets_the_cut_of_each_batch(rho, n, seed, center):
    x, y = make_batch(n, 3, seed, torch.float64)
    augmentation = FOMA(rho=rho, center=center)
    new_x, new_y = augmentation(x, y)
    params = augmentation.params
    rows = torch.column_stack([x, y])
    rows = rows - rows.mean(0) if center else rows
    values = torch.linalg.svdvals(rows)
    near = values.cumsum(0) / values.sum() - rho
    if near.abs().min() > 1e-6 and not (center and n == 1):
        assert params.k == rank_at_share(values, rho)
    expected = foma(x, y[:, None], lam=params.lam, k=params.k, center=center)
    torch.testing.assert_close(new_x, expected[0])
    torch.testing.assert_close(new_y, expected[1][:, 0])


def test_neither_rho_nor_k_means_rho_090():
    assert FOMA().rho == 0.9
    assert FOMA(k=3).rho is None


def test_k_is_clamped_to_the_batch():
    augmentation = FOMA(k=30)
    for n in (1, 2, 3, 16):
        x, y = make_batch(n)
        new_x, _ = augmentation(x, y)
        assert augmentation.params.k == min(n, 5)
        torch.testing.assert_close(new_x, x)


def test_two_nn_per_batch_finds_the_plane():
    x, y = make_plane(256)
    augmentation = FOMA(k="two_nn")
    augmentation(x, y)
    expected = math.ceil(two_nn(torch.column_stack([x, y])).dimension)
    assert augmentation.params.k == expected
    assert expected in (2, 3)


def test_two_nn_of_the_data_needs_fit_and_returns_self():
    x, y = make_plane(500)
    augmentation = FOMA(k="two_nn_data")
    with pytest.raises(NotFittedError, match=r"call `.fit\(x, y\)`"):
        augmentation(x, y)
    assert augmentation.fit(x, y) is augmentation
    augmentation(x[:8], y[:8])
    assert augmentation.params.k in (2, 3)
    restored = FOMA(k="two_nn_data")
    restored.load_state_dict(augmentation.state_dict())
    restored(x[:8], y[:8])
    assert restored.params.k == augmentation.params.k


def test_the_dimension_is_less_than_the_columns():
    x, y = make_batch(200, 1)  # a full cloud in two joint columns
    augmentation = FOMA(k="two_nn")
    augmentation(x, y)
    assert augmentation.params.k == 1


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_too_few_different_rows_for_two_nn_are_left_unchanged(rows):
    x, y = make_batch(rows)
    x, y = (x[:1].expand(rows, -1), y[:1].expand(rows)) if rows == 5 else (x, y)
    augmentation = FOMA(k="two_nn", append=True)
    new_x, new_y = augmentation(x, y)
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)
    assert augmentation.params.weight == 1.0


@pytest.mark.parametrize("options", [{"k": 3}, {"rho": 0.9}, {"rho": 0.0}, {"rho": 1.0}, {"k": 0}])
@pytest.mark.parametrize("center", [False, True])
def test_small_and_flat_batches_are_fine(options, center):
    augmentation = FOMA(center=center, **options)
    x, y = make_batch()
    flat = torch.outer(y, torch.arange(4.0))
    for batch in [
        (x[:1], y[:1]),
        (x[:2], y[:2]),
        (flat, y),
        (x * 0, y * 0),
        (x * 0 + 1, y * 0 + 1),
    ]:
        assert all(tensor.isfinite().all() for tensor in augmentation(*batch))


@pytest.mark.parametrize("x_shape", [(6, 3), (6, 1), (6, 2, 5), (6, 3, 4, 4)])
@pytest.mark.parametrize("y_shape", [(6,), (6, 1), (6, 3), (6, 2, 2)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shapes_and_dtypes_are_kept(x_shape, y_shape, dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(x_shape, generator=generator).to(dtype)
    y = torch.randn(y_shape, generator=generator)
    new_x, new_y = FOMA()(x, y)
    assert (new_x.shape, new_x.dtype) == (x.shape, x.dtype)
    assert (new_y.shape, new_y.dtype) == (y.shape, y.dtype)


def test_joint_is_the_papers_and_keep_the_released_scripts_way():
    x, y = make_batch()
    assert torch.equal(FOMA(targets="keep")(x, y)[1], y)
    assert not torch.allclose(FOMA(targets="joint")(x, y)[1], y)


@pytest.mark.parametrize(("weight", "exponent"), [("one", 0), ("lam", 1), ("lam2", 2)])
def test_weight_is_a_power_of_lam(weight, exponent):
    augmentation = FOMA(weight=weight)
    augmentation(*make_batch())
    assert augmentation.params.weight == pytest.approx(augmentation.params.lam**exponent)


def test_lam_range_draws_uniformly():
    augmentation = FOMA(lam_range=(1.0, 3.0))
    draws = torch.tensor([augmentation.draw(*make_batch()).lam for _ in range(400)])
    assert draws.min() >= 1.0
    assert draws.max() <= 3.0
    assert draws.mean() == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 0.5, 1.0, 2.0, 100.0])
def test_lam_has_the_moments_of_the_beta_distribution(alpha):
    augmentation = FOMA(alpha=alpha, k=0)
    batch = make_batch(2, 1)
    draws = torch.tensor([augmentation.draw(*batch).lam for _ in range(2000)])
    variance = 1 / (4 * (2 * alpha + 1))
    assert draws.mean() == pytest.approx(0.5, abs=4 * math.sqrt(variance / 2000))
    assert draws.var() == pytest.approx(variance, rel=0.15)


def test_a_draw_serves_another_batch_too():
    # The cut is part of the draw; the decomposition belongs to the batch it was made for.
    augmentation = FOMA(rho=0.5)
    params = augmentation.draw(*make_batch(seed=0))
    x, y = make_batch(seed=1)
    new_x, _ = augmentation.transform(x, y, params)
    expected, _ = foma(x, y[:, None], lam=params.lam, k=params.k)
    torch.testing.assert_close(new_x, expected)


def test_a_batch_changed_in_place_after_the_draw_is_decomposed_again():
    augmentation = FOMA(rho=0.5)
    x, y = make_batch()
    params = augmentation.draw(x, y)
    x.add_(1.0)
    new_x, _ = augmentation.transform(x, y, params)
    torch.testing.assert_close(new_x, foma(x, y[:, None], lam=params.lam, k=params.k)[0])


def test_params_do_not_keep_the_batch_in_memory():
    augmentation = FOMA()
    augmentation(*make_batch())
    assert augmentation.params._known is None
    assert repr(augmentation.params).startswith("FOMAParams(lam=")


@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
def test_a_compiled_training_step_equals_the_plain_one():
    x, y = make_batch()
    results = []
    for compiled in (False, True):
        torch.manual_seed(0)
        net, augmentation = torch.nn.Linear(4, 1), FOMA()

        def step(x, y, net=net, augmentation=augmentation):
            new_x, new_y = augmentation(torch.relu(x), y)
            return (net(new_x)[:, 0] - new_y).square().mean()

        loss = (torch.compile(step, backend="aot_eager") if compiled else step)(x, y)
        loss.backward()
        results.append((loss.detach(), net.weight.grad))
    torch.testing.assert_close(results[1], results[0])


BAD_OPTIONS = {
    "alpha zero": ({"alpha": 0.0}, ArgumentError, "`alpha` must be greater than 0, got 0.0"),
    "alpha negative": ({"alpha": -1}, ArgumentError, "`alpha` must be greater than 0, got -1"),
    "alpha infinite": ({"alpha": math.inf}, ArgumentError, "`alpha` must be greater than 0"),
    "rho above": ({"rho": 1.5}, ArgumentError, r"`rho` must be in \[0, 1\], got 1.5"),
    "rho below": ({"rho": -0.1}, ArgumentError, r"`rho` must be in \[0, 1\], got -0.1"),
    "both": ({"rho": 0.9, "k": 3}, ArgumentError, "`rho` and `k` both choose the cut"),
    "k negative": ({"k": -1}, ArgumentError, "`k` must be at least 0, got -1"),
    "k fraction": ({"k": 2.5}, ArgumentTypeError, "`k` must be a whole number, got 2.5"),
    "k name": ({"k": "twonn"}, ArgumentError, "`k` must be one of 'two_nn', 'two_nn_data'"),
    "scale": ({"scale": "small"}, ArgumentError, "`scale` must be one of 'trailing', 'leading'"),
    "targets": ({"targets": "old"}, ArgumentError, "`targets` must be one of 'joint', 'keep'"),
    "gradient": ({"gradient": "none"}, ArgumentError, "`gradient` must be one of"),
    "weight": ({"weight": "mu"}, ArgumentError, "`weight` must be one of 'one', 'lam', 'lam2'"),
    "range order": (
        {"lam_range": (1.0, 0.5)},
        ArgumentError,
        r"`lam_range\[1\]` must be at least 1",
    ),
    "range sign": (
        {"lam_range": (-1.0, 0.5)},
        ArgumentError,
        r"`lam_range\[0\]` must be at least 0",
    ),
    "range form": ({"lam_range": 0.5}, ArgumentTypeError, r"`lam_range` must be \(low, high\)"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_named(case):
    options, error, message = BAD_OPTIONS[case]
    with pytest.raises(error, match=message):
        FOMA(**options)


def test_at_a_layer_the_dimension_of_the_data_is_that_of_each_batch():
    x, y = make_plane(200)
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1)).to(x.dtype)
    augmentation = FOMA(k="two_nn_data").fit(x, y)
    at_inputs = augmentation(x[:40], y[:40]) and augmentation.params.k
    augmentation.at(net, "1")(x[:40], y[:40])
    layer = net[:2](x[:40]).detach()
    rows = torch.column_stack([layer, y[:40]]).double()
    assert augmentation.params.k == math.ceil(min(two_nn(rows).dimension, 5))
    augmentation(x[:40], y[:40])
    assert augmentation.params.k == at_inputs


def test_cuts_are_counted_if_they_are_asked_for():
    x, y = make_batch(8, 3)
    augmentation = FOMA(rho=0.5)
    augmentation(x, y)
    assert list_cuts(augmentation) == ()
    count_cuts(augmentation)
    for rows in (8, 8, 2):
        augmentation(x[:rows], y[:rows])
    expected = Counter()
    for rows in (8, 8, 2):
        joint = torch.column_stack([x[:rows], y[:rows]])
        expected[int(rank_at_share(torch.linalg.svdvals(joint), 0.5)), min(rows, 4)] += 1
    assert {(k, most): count for k, most, count in list_cuts(augmentation)} == expected
    go_on_counting(augmentation, [(1, 4, 10)])
    augmentation(x[:1], y[:1])
    assert sum(count for *_, count in list_cuts(augmentation)) == 11


def test_a_batch_without_a_dimension_is_counted_as_such():
    chain = Compose(FOMA(k="two_nn"))
    count_cuts(chain)
    chain(*make_batch(2, 3))
    assert list_cuts(chain) == ((-1, 2, 1),)


def test_stacked_and_single_trainings_count_the_same_cuts():
    split = make_manifold("sine", n=80).split(seed=0)
    own = {"place": "layer", "rho": 0.7, "anneal": None}
    settings = Settings(epochs=2, batch_size=8, method_settings=own)
    (stacked,) = fit_many(split, "foma-rho", [settings])
    single = fit(MLP(1, hidden=(128, 128), seed=0), split, "foma-rho", settings)
    assert stacked.cuts
    assert sum(count for *_, count in stacked.cuts) == 2 * (len(split.train) // 8)
    assert stacked.cuts == single.cuts


def test_a_training_that_goes_on_goes_on_counting(tmp_path):
    split = make_manifold("sine", n=40).split(seed=0)
    settings = Settings(epochs=3, batch_size=8, method_settings={"anneal": None})
    whole = fit(MLP(1), split, "foma-rho", settings)
    fit(MLP(1), split, "foma-rho", replace(settings, stop_after=1), checkpoint=tmp_path)
    again = fit(MLP(1), split, "foma-rho", settings, checkpoint=tmp_path)
    assert again.cuts == whole.cuts != ()

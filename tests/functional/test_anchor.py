"""ADA as a function: the paper's formula written out slowly, properties, gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.functional.anchor import ada, group_means


def make_batch(n, d, seed, targets=1, labels=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=dtype) + 3.0
    y = torch.randn(n, targets, generator=generator, dtype=dtype) - 2.0
    return x, y, torch.randint(labels, (n,), generator=generator)


def slow_ada(x, clusters, gamma):
    """The formula for any projection P on anchor columns, of which one-hot ones are a case."""
    x, clusters = x.double().numpy(), clusters.numpy()
    anchors = (clusters[:, None] == np.unique(clusters)).astype(float)
    projection = anchors @ np.linalg.pinv(anchors)
    s, mean = np.sqrt(gamma) - 1.0, x.mean(axis=0)
    moved = (np.eye(len(x)) + s * projection) @ (x - mean)
    return torch.from_numpy(mean + moved / (1.0 + s * projection.sum(axis=1, keepdims=True)))


batches = st.builds(
    make_batch,
    n=st.integers(1, 12),
    d=st.integers(1, 6),
    seed=st.integers(0, 999),
    targets=st.integers(1, 3),
    labels=st.integers(1, 8),
)
gammas = st.floats(0.05, 20.0)


@given(batches, gammas)
def test_agrees_with_the_formula_for_a_general_projection(batch, gamma):
    x, y, clusters = batch
    new = ada(x, y, clusters=clusters, gamma=gamma)
    for moved, original in zip(new, (x, y), strict=True):
        expected = slow_ada(original, clusters, gamma)
        torch.testing.assert_close(moved, expected, rtol=1e-10, atol=1e-10)


@given(batches)
def test_gamma_one_is_the_identity(batch):
    x, y, clusters = batch
    new_x, new_y = ada(x, y, clusters=clusters, gamma=1)
    assert new_x is x
    assert new_y is y
    new_x, new_y = ada(x, y, clusters=clusters, gamma=torch.tensor(1.0))
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)


@given(batches)
def test_the_projection_is_idempotent(batch):
    x, _, clusters = batch
    once = group_means(x, clusters, 8)[clusters]
    torch.testing.assert_close(group_means(once, clusters, 8)[clusters], once)


@given(batches, gammas, gammas)
def test_two_strengths_in_turn_are_their_product(batch, first, second):
    x, y, clusters = batch
    in_turn = ada(*ada(x, y, clusters=clusters, gamma=first), clusters=clusters, gamma=second)
    at_once = ada(x, y, clusters=clusters, gamma=first * second)
    for one, other in zip(in_turn, at_once, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@given(batches, gammas)
def test_the_mean_of_every_cluster_and_so_of_the_batch_stays(batch, gamma):
    x, y, clusters = batch
    new_x, new_y = ada(x, y, clusters=clusters, gamma=gamma)
    torch.testing.assert_close(new_x.mean(0), x.mean(0))
    torch.testing.assert_close(new_y.mean(0), y.mean(0))
    torch.testing.assert_close(group_means(new_x, clusters, 8), group_means(x, clusters, 8))


@given(batches, gammas)
def test_order_of_samples_does_not_matter(batch, gamma):
    x, y, clusters = batch
    new = ada(x, y, clusters=clusters, gamma=gamma)
    flipped = ada(x.flip(0), y.flip(0), clusters=clusters.flip(0), gamma=gamma)
    for one, other in zip(new, flipped, strict=True):
        torch.testing.assert_close(other.flip(0), one)


@given(batches, gammas)
def test_only_which_rows_share_a_cluster_matters_not_its_number(batch, gamma):
    x, y, clusters = batch
    renamed = torch.tensor([70, -5, 2**40, 3, 0, 9, 11, 12])[clusters]
    new = ada(x, y, clusters=clusters, gamma=gamma)
    for one, other in zip(new, ada(x, y, clusters=renamed, gamma=gamma), strict=True):
        torch.testing.assert_close(one, other)


@given(batches)
def test_inputs_are_not_changed(batch):
    before = [tensor.clone() for tensor in batch]
    ada(batch[0], batch[1], clusters=batch[2], gamma=3.0)
    assert all(torch.equal(old, new) for old, new in zip(before, batch, strict=True))


def test_a_row_alone_in_its_cluster_stays_exactly():
    x, y, _ = make_batch(7, 3, seed=0, dtype=torch.float32)
    new_x, new_y = ada(x, y, clusters=torch.arange(7), gamma=3.7)
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)


def test_a_batch_of_one_row_stays_exactly():
    x, y, clusters = make_batch(1, 4, seed=0)
    assert torch.equal(ada(x, y, clusters=clusters, gamma=0.3)[0], x)


def test_rows_of_one_cluster_move_along_the_line_to_the_mean_of_the_batch():
    x, y, _ = make_batch(9, 3, seed=1)
    new_x, _ = ada(x, y, clusters=torch.full((9,), 5), gamma=4.0)
    torch.testing.assert_close(new_x, x.mean(0) + (x - x.mean(0)) / 2.0)


def test_a_huge_gamma_leaves_the_means_of_the_clusters():
    x, y, clusters = make_batch(12, 3, seed=2)
    new_x, _ = ada(x, y, clusters=clusters, gamma=1e30)
    torch.testing.assert_close(new_x, group_means(x, clusters, 3)[clusters])


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 7), st.integers(0, 999))
def test_a_stack_equals_its_batches_one_by_one(outer, inner, n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(outer, inner, n, 3, generator=generator, dtype=torch.float64)
    y = torch.randn(outer, inner, n, 2, generator=generator, dtype=torch.float64)
    clusters = torch.randint(-2, 3, (outer, inner, n), generator=generator)
    gamma = torch.rand(outer, inner, generator=generator, dtype=torch.float64) + 0.5
    stacks = ada(x, y, clusters=clusters, gamma=gamma), ada(x, y, clusters=clusters, gamma=1.7)
    for stack, strengths in zip(stacks, (gamma, torch.full_like(gamma, 1.7)), strict=True):
        for i in range(outer):
            for j in range(inner):
                strength = strengths[i, j].item()
                alone = ada(x[i, j], y[i, j], clusters=clusters[i, j], gamma=strength)
                for one, other in zip(stack, alone, strict=True):
                    torch.testing.assert_close(one[i, j], other)


def test_gradient_matches_finite_differences():
    x, y, clusters = make_batch(6, 3, seed=0)
    x, y = x.requires_grad_(), y.requires_grad_()
    for gamma in (0.4, torch.tensor(2.5)):
        assert gradcheck(lambda x, y, g=gamma: ada(x, y, clusters=clusters, gamma=g), (x, y))


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1.0, 1e12])
def test_ugly_batches_have_finite_results_and_gradients(scale):
    x = scale * torch.ones(5, 9).index_fill(1, torch.tensor([2]), 0.0)  # equal rows, a zero column
    x.requires_grad_()
    new_x, new_y = ada(x, x[:, :2], clusters=torch.tensor([4, 4, 4, 1, 1]), gamma=0.5)
    (new_x.sum() + new_y.square().sum() / max(scale, 1.0)).backward()
    torch.testing.assert_close(new_x, x)
    assert bool(x.grad.isfinite().all())
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32_and_keeps_its_dtype(dtype):
    x, y, clusters = make_batch(40, 3, seed=3, dtype=torch.float32)
    x, y = x.to(dtype), y.double()
    new_x, new_y = ada(x, y, clusters=clusters, gamma=0.5)
    assert (new_x.dtype, new_y.dtype) == (dtype, torch.float64)
    expected = ada(x.float(), y, clusters=clusters, gamma=0.5)[0]
    assert torch.equal(new_x, expected.to(dtype))


def test_a_float16_row_that_grows_stops_at_the_end_of_its_range():
    x = torch.tensor([[-6e4], [6e4]], dtype=torch.float16)
    new_x, _ = ada(x, x, clusters=torch.tensor([0, 0]), gamma=0.01)
    assert new_x.flatten().tolist() == [-65504.0, 65504.0]


def test_many_float32_rows_do_not_lose_digits():
    x, y, clusters = make_batch(100_000, 1, seed=4, dtype=torch.float32)
    x = x + 1000.0
    new_x, _ = ada(x, y, clusters=clusters, gamma=4.0)
    expected, _ = ada(x.double(), y, clusters=clusters, gamma=4.0)
    assert (new_x - expected).abs().max() < 1.3e-4  # two units in the last place of 1000


def test_autocast_does_not_lower_the_precision():
    x, y, clusters = make_batch(16, 3, seed=5, dtype=torch.float32)
    plain, _ = ada(x, y, clusters=clusters, gamma=2.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(ada(x, y, clusters=clusters, gamma=2.0)[0], plain)


X, Y, CLUSTERS = make_batch(4, 2, seed=0)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"gamma": 0.0}, ArgumentError, r"`gamma` must be greater than 0, got 0\.0"),
        ({"gamma": "2"}, ArgumentTypeError, "`gamma` must be a number"),
        ({"gamma": torch.tensor(-1.0)}, ArgumentError, r"`gamma` must be finite .* got -1\.0"),
        ({"gamma": torch.ones(4)}, ArgumentError, r"`gamma` must be .* got shape \(4,\)"),
        ({"clusters": [0, 1, 0, 1]}, ArgumentTypeError, "`clusters` must be a torch.Tensor"),
        ({"clusters": CLUSTERS.double()}, ArgumentTypeError, "`clusters` must hold whole numbers"),
        ({"clusters": CLUSTERS > 0}, ArgumentTypeError, "`clusters` must hold whole numbers"),
        ({"clusters": CLUSTERS[1:]}, ArgumentError, r"`clusters` must have .* got shape \(3,\)"),
        ({"y": Y[1:]}, ArgumentError, r"`x` and `y` must be .* got \(4, 2\) and \(3, 1\)"),
        ({"x": X.long()}, ArgumentTypeError, "`x` must hold floating-point numbers"),
        ({"y": Y / 0.0}, NonFiniteError, "`y` must be finite"),
    ],
)
def test_bad_arguments_are_named(changed, error, message):
    arguments = {"x": X, "y": Y, "clusters": CLUSTERS, "gamma": 2.0} | changed
    with pytest.raises(error, match=message):
        ada(arguments.pop("x"), arguments.pop("y"), **arguments)


def test_a_cluster_without_a_row_in_one_batch_of_a_stack_changes_nothing():
    x = torch.tensor([[[0.0], [4.0]], [[1.0], [3.0]]], requires_grad=True)
    clusters = torch.tensor([[5, 5], [5, 8]])
    new_x, _ = ada(x, x.detach(), clusters=clusters, gamma=4.0)
    assert new_x.flatten().tolist() == [1.0, 3.0, 1.0, 3.0]
    (gradient,) = torch.autograd.grad(new_x[:, 0].sum(), x)
    assert gradient.flatten().tolist() == [0.75, 0.25, 1.0, 0.0]

"""ADA as an augmentation: anchors, draws, acting at a layer, saving."""

import copy
import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regaug.augment.ada import ADA, ADAParams
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    NonFiniteError,
    NotFittedError,
    PlaceError,
)
from regaug.functional.anchor import ada


def make_data(n=60, d=3, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=dtype)
    return x, x.sum(1) + 0.1 * torch.randn(n, generator=generator, dtype=dtype)


def make_blobs(per_blob, seed=0):
    """Four groups far apart, in x and y; which one each row is from."""
    generator = torch.Generator().manual_seed(seed)
    blob = torch.arange(4).repeat_interleave(per_blob)
    blob = blob[torch.randperm(len(blob), generator=generator)]
    x = torch.stack([blob // 2, blob % 2], dim=1) + 0.01 * torch.randn(
        len(blob), 2, generator=generator
    )
    return x, blob.float(), blob


def generator(seed):
    return torch.Generator().manual_seed(seed)


def same_partition(one, other):
    return torch.equal(one[:, None] == one, other[:, None] == other)


# Anchors


@pytest.mark.parametrize("per_blob", [10, 3_000])  # full k-means, and that in small batches
def test_groups_that_lie_far_apart_are_the_clusters(per_blob):
    x, y, blob = make_blobs(per_blob)
    augment = ADA(clusters=4).fit(x, y)
    first = slice(200)
    assert same_partition(augment.draw(x[first], y[first]).clusters, blob[first])


@settings(max_examples=20)
@given(st.integers(0, 999), st.integers(1, 12))
def test_a_row_belongs_to_the_nearest_centroid_in_standardized_columns(seed, clusters):
    x, y = make_data(n=12, seed=seed)
    augment = ADA(clusters=clusters).fit(x * 100.0, y)
    rows = np.column_stack([100.0 * x.numpy(), y.numpy()])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    distances = np.linalg.norm(rows[:, None] - augment.centroids.numpy(), axis=2)
    found = augment.draw(x * 100.0, y).clusters
    assert augment.centroids.shape == (clusters, 4)
    assert found.tolist() == distances.argmin(axis=1).tolist()


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_the_unit_of_a_column_does_not_matter(factor):
    x, y = make_data()
    scaled = x * torch.tensor([1.0, factor, 1.0], dtype=x.dtype)
    clusters = ADA().fit(x, y).draw(x, y).clusters
    assert torch.equal(ADA().fit(scaled, y).draw(scaled, y).clusters, clusters)


def test_constant_columns_do_not_matter():
    x, y = make_data(dtype=torch.float32)
    wider = torch.column_stack([x, torch.full((60,), 0.1), torch.full((60,), 1e12)])
    augment = ADA().fit(wider, y)
    assert torch.equal(augment.draw(wider, y).clusters, ADA().fit(x, y).draw(x, y).clusters)
    assert augment.std[3:5].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("copies", [2, 2_001])  # the second is enough for k-means in small batches
def test_there_are_no_more_clusters_than_different_rows(copies):
    x, y = make_data(n=5, dtype=torch.float32)
    x, y = x.repeat(copies, 1), y.repeat(copies)
    augment = ADA(clusters=8).fit(x, y)  # a warning would be an error here
    assert len(augment.centroids) == 5
    new_x, new_y = augment(x[:10], y[:10])
    torch.testing.assert_close(new_x, x[:10])  # every row is the mean of its cluster
    torch.testing.assert_close(new_y, y[:10])


def test_one_training_row_is_enough_for_one_cluster():
    x, y = make_data(n=1)
    new_x, new_y = ADA(clusters=1).fit(x, y)(x, y)
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)


def test_the_seed_decides_the_anchors_whatever_was_drawn_before():
    x, y = make_data(n=300)
    first = ADA(generator=generator(5)).fit(x, y)
    later = ADA(generator=generator(5)).fit(x, y)
    for _ in range(3):
        later(x, y)
    later.fit(x, y)
    other = ADA(generator=generator(6)).fit(x, y)
    assert torch.equal(first.centroids, later.centroids)
    assert not torch.equal(first.centroids, other.centroids)


def test_the_global_generators_are_neither_read_nor_moved():
    x, y = make_data()
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    expected = ADA().fit(x, y)(x, y)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(77)
        again = ADA().fit(x, y)(x, y)
    assert torch.equal(again[0], expected[0])
    assert torch.equal(again[1], expected[1])


# Draws


def test_gamma_takes_each_of_its_values_equally_often():
    x, y = make_data()
    augment = ADA(alpha=3.0, levels=4, generator=generator(1)).fit(x, y)
    n = 4_000
    counts = Counter(augment.draw(x, y).gamma for _ in range(n))
    betas = [1.5, 2.0, 2.5, 3.0]
    assert set(counts) == {*betas, *(1.0 / beta for beta in betas)}
    spread = math.sqrt(n * (1 / 8) * (7 / 8))
    assert all(abs(count - n / 8) < 4.5 * spread for count in counts.values())


def test_transform_is_the_function_at_the_drawn_parameters():
    x, y = make_data()
    augment = ADA().fit(x, y)
    new_x, new_y = augment(x, y)
    drawn = augment.params
    expected = ada(x, y[:, None], clusters=drawn.clusters, gamma=drawn.gamma)
    assert torch.equal(new_x, expected[0])
    assert torch.equal(new_y, expected[1][:, 0])
    assert not torch.equal(new_x, x)
    assert torch.equal(augment.transform(x, y, ADAParams(drawn.gamma))[0], new_x)


def test_same_seed_gives_the_same_batches():
    x, y = make_data()
    one, other = (ADA(generator=generator(3)).fit(x, y) for _ in range(2))
    for _ in range(4):
        assert torch.equal(one(x, y)[0], other(x, y)[0])


def test_parameters_compare_and_print_by_their_strength():
    assert ADAParams(2.0, torch.arange(3)) == ADAParams(2.0, torch.arange(4))
    assert repr(ADAParams(2.0, torch.arange(3))) == "ADAParams(gamma=2.0)"
    assert ADA.neutral == ADAParams(gamma=1.0, clusters=None)


def test_alpha_one_is_off():
    x, y = make_data()
    augment = ADA(alpha=1, append=True).fit(x, y)
    new_x, new_y = augment(x, y)
    assert new_x is x
    assert new_y is y
    assert augment.params is ADA.neutral


def test_evaluation_and_zero_probability_leave_the_batch_alone():
    x, y = make_data()
    assert ADA().fit(x, y).eval()(x, y)[0] is x
    assert ADA(p=0.0).fit(x, y)(x, y)[0] is x


def test_append_puts_the_new_samples_behind_the_originals():
    x, y = make_data()
    new_x, new_y = ADA(append=True).fit(x, y)(x, y)
    assert (new_x.shape, new_y.shape) == ((120, 3), (120,))
    assert torch.equal(new_x[:60], x)
    assert not torch.equal(new_x[60:], x)


@settings(max_examples=25)
@given(
    st.integers(1, 9),
    st.sampled_from([(3,), (2, 2), (1, 2, 3)]),
    st.sampled_from([(), (1,), (2,), (2, 2)]),
    st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
    st.sampled_from([torch.float16, torch.float64]),
)
def test_shapes_and_dtypes_are_kept(n, features, targets, dtype, target_dtype):
    source = generator(n)
    x = torch.randn(9, *features, generator=source).to(dtype)
    y = torch.randn(9, *targets, generator=source).to(target_dtype)
    augment = ADA(clusters=2).fit(x, y)
    before = x.clone(), y.clone()
    new_x, new_y = augment(x[:n], y[:n])
    assert (new_x.shape, new_x.dtype) == ((n, *features), dtype)
    assert (new_y.shape, new_y.dtype) == ((n, *targets), target_dtype)
    assert bool(new_x.isfinite().all())
    assert bool(new_y.isfinite().all())
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])


# At a layer


def expected_at_layer(augment, z, x, y):
    """What ADA makes of a layer's output, with the clusters of the inputs."""
    rows = (torch.column_stack([x, y]) - augment.mean) / augment.std
    clusters = torch.cdist(rows, augment.centroids).argmin(1)
    return ada(z, y, clusters=clusters, gamma=augment.params.gamma)


@pytest.mark.parametrize("width", [3, 7])  # as wide as the inputs, and wider
def test_at_a_layer_the_clusters_are_those_of_the_inputs(width):
    x, y = make_data(dtype=torch.float32)
    y = y[:, None]
    net = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))
    augment = ADA(clusters=5).fit(x, y)
    output, new_y = augment.at(net, "1")(x, y)
    loss = (output - new_y).square().mean()
    loss.backward()
    new_z, expected_y = expected_at_layer(augment, net[:2](x), x, y)
    torch.testing.assert_close(new_y, expected_y)
    torch.testing.assert_close(loss, (net[2](new_z) - expected_y).square().mean())
    assert all(bool(weight.grad.isfinite().all()) for weight in net.parameters())
    assert net[0].weight.grad.abs().sum() > 0


def test_a_model_that_overwrites_its_inputs_does_not_change_the_clusters():
    x, y = make_data(dtype=torch.float32)
    augment = ADA(clusters=5).fit(x, y)
    clusters = augment.draw(x, y).clusters
    net = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 1))
    augment.at(net, "1")(x.clone(), y)
    assert torch.equal(augment.params.clusters, clusters)


def test_the_clusters_of_a_forward_pass_do_not_outlive_it():
    x, y = make_data(dtype=torch.float32)
    untouched = ADA(p=0.0).fit(x, y)
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    untouched.at(net, "0")(x, y)
    expected = untouched.draw(x.flip(0), y.flip(0)).clusters
    assert torch.equal(expected.flip(0), untouched.draw(x, y).clusters)

    failing = nn.Sequential(nn.Linear(3, 2), nn.Linear(5, 1))
    with pytest.raises(RuntimeError, match="shapes"):
        untouched.at(failing, "1")(x, y)
    assert torch.equal(untouched.draw(x.flip(0), y.flip(0)).clusters, expected)


def test_the_place_input_acts_on_the_inputs():
    x, y = make_data(dtype=torch.float32)
    augment = ADA().fit(x, y)
    net = nn.Linear(3, 1)
    output, new_y = augment.at(net, "input")(x, y)
    new_x, expected_y = augment.transform(x, y, augment.params)
    torch.testing.assert_close(new_y, expected_y)
    torch.testing.assert_close(output, net(new_x))


class TakesMapping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, inputs):
        return self.layer(inputs["x"])


def test_the_inputs_of_a_model_may_be_several_tensors():
    x, y = make_data(dtype=torch.float32)
    net = TakesMapping()
    found = []
    for inputs in ({"x": x}, {"x": x, "more": 2 * x[:, :1]}):
        augment = ADA().fit(inputs, y)
        _, new_y = augment.at(net, "layer")(inputs, y)
        rows = torch.cat(list(inputs.values()), dim=1)
        clusters = ADA().fit(rows, y)._nearest(rows, y)
        assert torch.equal(augment.params.clusters, clusters)
        found.append(new_y)
    assert not torch.equal(*found)


def test_a_model_whose_input_is_no_tensor_is_refused():
    x, y = make_data(dtype=torch.float32)
    with pytest.raises(PlaceError, match="first positional argument: `x` must be .* got str"):
        ADA().fit(x, y).at(TakesMapping(), "layer")("x", y)
    with pytest.raises(PlaceError, match="a row for each of the 60 targets, got"):
        ADA().fit(x, y).at(TakesMapping(), "layer")({"x": x[:5]}, y)


# Saving and copying


def test_a_fresh_instance_takes_the_anchors_from_a_state_dict():
    x, y = make_data()
    fitted = nn.Sequential(ADA(clusters=5, generator=generator(9)).fit(x, y))
    fresh = nn.Sequential(ADA())
    fresh.load_state_dict(fitted.state_dict())
    for name in ("centroids", "mean", "std"):
        assert torch.equal(getattr(fresh[0], name), getattr(fitted[0], name))
    assert torch.equal(fresh[0](x, y)[0], fitted[0](x, y)[0])
    fresh.load_state_dict(nn.Sequential(ADA()).state_dict())
    with pytest.raises(NotFittedError):
        fresh[0](x, y)


def test_loading_does_not_tie_two_instances_together():
    x, y = make_data()
    fitted, fresh = ADA().fit(x, y), ADA()
    fresh.load_state_dict(fitted.state_dict())
    fresh.centroids.zero_()
    assert fitted.centroids.abs().sum() > 0


def test_a_deep_copy_does_the_same_and_is_independent():
    x, y = make_data()
    augment = ADA().fit(x, y)
    twin = copy.deepcopy(augment)
    assert torch.equal(twin(x, y)[0], augment(x, y)[0])
    twin.fit(x[:20] + 50.0, y[:20])
    assert not torch.equal(twin.mean, augment.mean)


def test_a_change_of_dtype_takes_the_anchors_along():
    x, y = make_data(dtype=torch.float32)
    augment = ADA().fit(x, y)
    clusters = augment.draw(x, y).clusters
    augment.to(torch.float64)
    assert augment.centroids.dtype == torch.float64
    assert torch.equal(augment.draw(x.double(), y.double()).clusters, clusters)
    assert torch.equal(augment.draw(x, y).clusters, clusters)


def test_it_can_be_fitted_again_on_other_columns():
    x, y = make_data()
    augment = ADA().fit(x, y)
    augment.fit(x[:, :2], y)
    assert augment(x[:, :2], y)[0].shape == (60, 2)


# Errors


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 0.9}, ArgumentError, r"`alpha` must be at least 1, got 0\.9"),
        ({"alpha": math.inf}, ArgumentError, "`alpha` must be at least 1, got inf"),
        ({"levels": 0}, ArgumentError, "`levels` must be at least 1, got 0"),
        ({"levels": 2.5}, ArgumentTypeError, "`levels` must be a whole number"),
        ({"clusters": 0}, ArgumentError, "`clusters` must be at least 1, got 0"),
        ({"p": 2.0}, ArgumentError, "`p` must be in"),
    ],
)
def test_bad_settings_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        ADA(**arguments)


def test_more_clusters_than_training_rows_are_refused():
    x, y = make_data(n=7)
    with pytest.raises(ArgumentError, match="`clusters` must be from 1 to 7, got 8.*training rows"):
        ADA(clusters=8).fit(x, y)


def test_missing_training_values_are_refused():
    x, y = make_data()
    x[3, 1] = torch.nan
    with pytest.raises(NonFiniteError, match=r"`x` must be finite, got nan at index \(3, 1\)"):
        ADA().fit(x, y)


def test_without_fit_the_way_out_is_told():
    x, y = make_data()
    with pytest.raises(NotFittedError, match=r"call `\.fit\(x, y\)`"):
        ADA()(x, y)


def test_other_columns_than_in_fit_are_refused():
    x, y = make_data()
    with pytest.raises(ArgumentError, match="must have 4 columns together, as in `fit`, got 3"):
        ADA().fit(x, y)(x[:, :2], y)


def test_clusters_of_the_targets_alone_do_not_know_the_inputs():
    x, y = torch.randn(60, 2, 3), torch.randn(60, 1)
    augment = ADA(clusters=3, cluster_by="targets").fit(x, y)
    assert augment.centroids.shape == (3, 1)
    distance = (y - augment.centroids.T).abs()
    assert torch.equal(augment._nearest(torch.zeros(60, 2, 3), y), distance.argmin(dim=1))


def test_raw_clusters_are_those_of_the_column_with_the_largest_numbers():
    x, y = torch.rand(60, 3), 100 * torch.randn(60, 1)
    raw, targets = (ADA(clusters=4, cluster_by=by).fit(x, y) for by in ("raw", "targets"))
    assert raw.mean.abs().sum() == 0
    assert (raw.std == 1).all()
    joined = [tuple(a._nearest(x, y).tolist()) for a in (raw, targets)]
    pairs = set(zip(*joined, strict=True))
    assert len(pairs) == 4  # the same clusters, perhaps by other numbers


def test_runs_with_other_clusters_do_not_share_a_stack():
    assert ADA(cluster_by="raw").structure != ADA(cluster_by="joint").structure
    with pytest.raises(ArgumentError, match="`cluster_by` must be one of 'joint', 'raw'"):
        ADA(cluster_by="inputs")

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from regaug.data.base import Part, Split
from regaug.data.scaling import Scaler, StandardizedSplit, min_max, standardize
from regaug.exceptions import ArgumentError, NonFiniteError

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(1, 5)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False),
)


class Lazy:
    """Inputs that cannot be had as one tensor."""

    def __init__(self, x):
        self.x, self.shape = x, tuple(x.shape)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index]


def make_split(seed=0, *, lazy=False, shift=0.0):
    """Three parts; ``shift`` moves all but the training part."""
    rng = np.random.default_rng(seed)
    parts = []
    for k, n in enumerate((30, 10, 12)):
        x = torch.from_numpy(rng.normal(5, 3, (n, 4)) + shift * (k > 0)).float()
        y = torch.from_numpy(rng.normal(-2, 9, (n, 2)) + shift * (k > 0)).float()
        parts.append(Part(Lazy(x) if lazy else x, y, np.arange(n), np.arange(n) % 3))
    return Split(*parts, more={"extra": parts[2]})


@given(tables)
def test_the_scale_is_that_of_scikit_learn(table):
    scaler, reference = Scaler.fit(torch.from_numpy(table)), StandardScaler().fit(table)
    np.testing.assert_allclose(scaler.mean, reference.mean_, rtol=1e-9, atol=1e-9)
    differs = table.min(axis=0) < table.max(axis=0)
    # Squares of the smallest numbers are zero, and scikit-learn takes them for equal.
    size = np.abs(table).max(axis=0)
    unit = np.where((size > 0) & (size <= 1e-100), size, 1.0)
    spread = np.where(differs, (table / unit).std(axis=0) * unit, 1.0)
    np.testing.assert_allclose(scaler.std, np.where(spread > 0, spread, 1.0), rtol=1e-12)


@given(tables)
def test_inverse_is_the_way_back(table):
    x = torch.from_numpy(table)
    scaler = Scaler.fit(x)
    size = max(float(np.abs(table).max()), 1.0)
    torch.testing.assert_close(scaler.inverse(scaler.transform(x)), x, rtol=1e-9, atol=1e-9 * size)


def test_training_rows_get_mean_zero_and_deviation_one():
    x = make_split().train.x
    new = Scaler.fit(x).transform(x)
    torch.testing.assert_close(new.mean(0), torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(new.std(0, correction=0), torch.ones(4))


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e12, -3e-20])
def test_a_constant_column_is_only_moved(constant):
    x = torch.full((7, 1), constant, dtype=torch.float64)
    scaler = Scaler.fit(x)
    assert scaler.std.tolist() == [1.0]
    np.testing.assert_allclose(scaler.transform(x + 2.0).numpy(), 2.0, rtol=1e-3)


@pytest.mark.parametrize("size", [1e-140, 1e140, 1e153, 1e154, 1e200, 1e306])
def test_squares_that_leave_the_range_of_numbers_do_no_harm(size):
    x = torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5
    x[:, 2] = 1.0  # a constant one among them
    expected, scaler = Scaler.fit(x), Scaler.fit(size * x)
    np.testing.assert_allclose(scaler.mean / size, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(scaler.std[:2] / size, expected.std[:2], rtol=1e-9)
    assert scaler.std[2] == 1.0
    scaled = scaler.transform(size * x)
    torch.testing.assert_close(scaled[:, :2], expected.transform(x)[:, :2], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(scaler.inverse(scaled), size * x, rtol=1e-9, atol=1e-9 * size)


def test_columns_of_other_columns_scale_are_scaled_by_themselves():
    x = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = Scaler.fit(x)
    scaler = Scaler.fit(x * torch.tensor([1e200, 1.0], dtype=torch.float64))
    assert scaler.mean[1] == expected.mean[1]
    assert scaler.std[1] == expected.std[1]


def test_numbers_whose_differences_are_infinite_are_refused():
    x = torch.tensor([[1.0, 1.7e308], [2.0, -1.7e308]], dtype=torch.float64)
    with pytest.raises(ArgumentError, match=r"at most 1e\+307 in size.*got 1.7e\+308 in column 1"):
        Scaler.fit(x)


def test_windows_of_a_series_are_scaled_per_channel():
    x = torch.randn(6, 9, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 50])
    scaler = Scaler.fit(x)
    np.testing.assert_allclose(scaler.std, x.double().std((0, 1), correction=0).numpy())
    assert scaler.transform(x).shape == x.shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_dtype_and_the_caller_s_tensor_are_kept(dtype):
    x = make_split().train.x.to(dtype)
    before = x.clone()
    scaler = Scaler.fit(x)
    assert scaler.transform(x).dtype == scaler.inverse(x).dtype == dtype
    assert torch.equal(x, before)


def test_a_scaler_survives_json():
    scaler = Scaler.fit(make_split().train.x)
    again = Scaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    assert np.array_equal(again.mean, scaler.mean)
    assert np.array_equal(again.std, scaler.std)


@pytest.mark.parametrize(
    "numbers",
    [{"mean": [1.0], "std": [1.0, 2.0]}, {"mean": [1.0], "std": [0.0]}, {"mean": 1.0, "std": 1.0}],
)
def test_numbers_that_are_no_scale_are_refused(numbers):
    with pytest.raises(ArgumentError, match="`numbers` must hold a mean and a positive std"):
        Scaler.from_dict(numbers)


def test_missing_values_are_refused():
    with pytest.raises(NonFiniteError, match="`x` must be finite, got nan at index"):
        Scaler.fit(torch.tensor([[1.0], [float("nan")]]))


def test_another_number_of_columns_is_refused():
    scaler = Scaler.fit(torch.rand(5, 3, generator=torch.Generator().manual_seed(0)))
    with pytest.raises(ArgumentError, match="`x` must have 3 columns in its last axis"):
        scaler.transform(torch.ones(5, 1))


def test_standardize_looks_at_the_training_part_only():
    near, far = standardize(make_split()), standardize(make_split(shift=1000.0))
    assert torch.equal(near.train.x, far.train.x)
    assert near.y_scaler.to_dict() == far.y_scaler.to_dict()
    assert near.x_scaler.to_dict() == far.x_scaler.to_dict()
    assert far.test.x.min() > 100


def test_standardize_scales_every_part_with_the_way_back():
    split = make_split()
    new = standardize(split)
    assert isinstance(new, StandardizedSplit)
    for name in ("train", "validation", "test"):
        old_part, new_part = getattr(split, name), getattr(new, name)
        torch.testing.assert_close(new.restore(new_part.y), old_part.y)
        torch.testing.assert_close(new.x_scaler.inverse(new_part.x), old_part.x)
        assert np.array_equal(new_part.rows, old_part.rows)
        assert np.array_equal(new_part.groups, old_part.groups)
    assert torch.equal(new.more["extra"].x, new.test.x)
    torch.testing.assert_close(new.train.y.std(0, correction=0), torch.ones(2))


def make_random(*shape):
    return 5 + 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def split_of(x):
    """Three parts of the same inputs, a tensor or several."""
    n = len(x if isinstance(x, torch.Tensor) else next(iter(x.values())))
    return Split(*(Part(x, torch.arange(float(n)), np.arange(n)) for _ in range(3)))


@pytest.mark.parametrize("shape", [(20, 3, 4, 5), (20, 3, 2, 4, 5)])
def test_images_and_videos_are_scaled_by_channel(shape):
    x = make_random(*shape)
    x[:, 1] *= 100
    new = standardize(split_of(x))
    by_channel = new.train.x.movedim(1, 0).flatten(1)
    torch.testing.assert_close(by_channel.mean(1), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(by_channel.std(1, correction=0), torch.ones(3))
    # Within a channel nothing is moved against anything else.
    ratio = (x[:, 1] - x[:, 1].mean()) / new.train.x[:, 1]
    torch.testing.assert_close(
        ratio, torch.full_like(ratio, ratio.mean().item()), rtol=1e-3, atol=0
    )
    torch.testing.assert_close(new.x_scaler.inverse(new.test.x), x, rtol=1e-4, atol=1e-3)
    with pytest.raises(ArgumentError, match="must have 3 columns in axis 1"):
        new.x_scaler.transform(x[:, :2])


def test_series_are_scaled_by_column_of_the_last_axis():
    new = standardize(split_of(make_random(20, 7, 2)))
    assert new.x_scaler.mean.shape == (2,)


def test_codes_stay_codes():
    codes = torch.arange(20).reshape(10, 2)
    new = standardize(split_of(codes))
    assert new.x_scaler is None
    assert torch.equal(new.train.x, codes)
    assert new.y_scaler.mean.tolist() == [4.5]


def test_of_several_tensors_each_has_its_own_scale_and_codes_and_masks_have_none():
    x = {
        "image": make_random(12, 2, 3, 3),
        "row": make_random(12, 4),
        "age": make_random(12),
        "ids": torch.arange(24).reshape(12, 2),
        "mask": (make_random(12, 5) > 5).float(),
        "flags": make_random(12, 5) > 5,
    }
    split = split_of(x)
    new = standardize(split)
    scaled = new.validation.x[:]
    assert list(scaled) == list(x)
    for name in ("ids", "mask", "flags"):
        assert torch.equal(scaled[name], x[name])
        assert scaled[name].dtype == x[name].dtype
    assert torch.equal(scaled["row"], Scaler.fit(x["row"]).transform(x["row"]))
    assert torch.equal(scaled["image"], Scaler.fit(x["image"], axis=1).transform(x["image"]))
    assert scaled["age"].shape == (12,)
    torch.testing.assert_close(scaled["age"].mean(), torch.tensor(0.0), atol=1e-6, rtol=0)
    back = new.x_scaler.inverse(scaled)
    for name, values in x.items():
        torch.testing.assert_close(back[name], values)
    assert torch.equal(split.train.x[:]["row"], x["row"])


def test_a_part_that_is_read_keeps_all_parts_as_they_are():
    split, lazy = make_split(), make_split(lazy=True)
    mixed = standardize(Split(split.train, split.validation, lazy.test))
    assert mixed.x_scaler is None
    assert torch.equal(mixed.train.x, split.train.x)


def test_inputs_that_are_read_when_asked_for_stay_as_they_are():
    split = make_split(lazy=True)
    new = standardize(split)
    assert new.x_scaler is None
    assert new.test.x is split.test.x
    torch.testing.assert_close(new.restore(new.test.y), split.test.y)


def test_standardizing_twice_changes_nothing():
    once = standardize(make_split())
    assert standardize(once) is once


@given(tables)
def test_min_max_is_that_of_scikit_learn(table):
    width = table.max(axis=0) - table.min(axis=0)
    # scikit-learn takes a range below the rounding error for none.
    if ((width > 0) & (width < 1e-9)).any():
        return
    np.testing.assert_allclose(min_max(table), MinMaxScaler().fit_transform(table), atol=1e-9)


def test_a_scale_is_that_of_the_values_that_are_there():
    x = torch.tensor([[1.0, 99.0, 5.0], [3.0, 7.0, 99.0], [99.0, 7.0, 99.0], [99.0, 99.0, 99.0]])
    mask = x != 99.0
    scaler = Scaler.fit(x.masked_fill(~mask, torch.nan), mask=mask)
    assert scaler.mean.tolist() == [2.0, 7.0, 5.0]
    assert scaler.std.tolist() == [1.0, 1.0, 1.0]
    nothing = Scaler.fit(x, mask=torch.zeros_like(mask))
    assert (nothing.mean.tolist(), nothing.std.tolist()) == ([0.0] * 3, [1.0] * 3)
    everything = Scaler.fit(x, mask=torch.ones_like(mask))
    np.testing.assert_allclose(everything.std, Scaler.fit(x).std)
    np.testing.assert_allclose(everything.mean, Scaler.fit(x).mean)


def is_known(x):
    return x[:, :1] != -99.0


def test_what_a_mask_leaves_out_stays_as_it_is():
    split = make_split()
    far = split.train.x.clone()
    far[::3] = -99.0  # these rows have no values
    gaps = replace(split, train=replace(split.train, x=far), mask=is_known)
    new = standardize(gaps)
    assert torch.equal(new.train.x == -99.0, far == -99.0)
    there = new.train.x[far != -99.0].reshape(-1, far.shape[1])
    torch.testing.assert_close(there.mean(0), torch.zeros(far.shape[1]), rtol=0, atol=1e-6)
    torch.testing.assert_close(new.x_scaler.inverse(new.test.x), split.test.x)
    assert new.mask is gaps.mask
    assert torch.equal(new.train.take([3, 1]).unscaled, far[[3, 1]])
    sent = pickle.loads(pickle.dumps(new.train))
    assert torch.equal(sent.unscaled, far)
    assert new.test.unscaled is None


def test_inputs_that_are_read_are_what_a_mask_looks_at():
    split = replace(make_split(lazy=True), mask=torch.isfinite)
    assert standardize(split).train.unscaled is None
    assert standardize(split).train.x is split.train.x

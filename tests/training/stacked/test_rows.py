from dataclasses import replace

import numpy as np
import pytest
import torch

from regaug.data import standardize
from regaug.data.base import Part, Split
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.metrics import METRICS
from regaug.training.scores import MOST_TRAINING_ROWS, own_targets, own_units
from regaug.training.stacked.rows import StackedRows

NAMES = ("train", "validation", "test")


def make_part(n, seed, columns=3, targets=2):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, columns, generator=generator)
    y = 5.0 * torch.randn(n, targets, generator=generator) + 1.0
    y[0] = 0.0  # a target that MAPE must leave out
    return Part(x=x, y=y, rows=np.arange(n))


def make_split(sizes, seed=0):
    return Split(*(make_part(n, 10 * seed + i) for i, n in enumerate(sizes)))


@pytest.fixture
def splits():
    plain = [make_split(sizes, i) for i, sizes in enumerate([(9, 4, 5), (12, 6, 5), (7, 1, 3)])]
    return [standardize(plain[0]), plain[1], standardize(plain[2])]


def test_the_rows_of_every_part_are_found(splits):
    rows = StackedRows(splits, torch.float64)
    for number, split in enumerate(splits):
        start = rows.first_row[number]
        assert torch.equal(rows.x[start : start + len(split.train)], split.train.x.double())
        for name in NAMES:
            part, stacked = getattr(split, name), rows.parts[name]
            places = stacked.places[number][: len(part)]
            assert torch.equal(rows.x[places], part.x.double())
            assert torch.equal(rows.y[places], part.y.double())
            torch.testing.assert_close(
                stacked.targets[number][: len(part)], own_targets(split, part).double()
            )


def test_rows_that_fill_up_do_not_count_and_exist(splits):
    rows = StackedRows(splits, torch.float32)
    for name in NAMES:
        stacked = rows.parts[name]
        sizes = [len(getattr(split, name)) for split in splits]
        assert stacked.is_row.sum(dim=1).tolist() == sizes
        assert 0 <= stacked.places.min() <= stacked.places.max() < len(rows.x)


def test_parts_of_equal_sizes_need_no_mask(splits):
    assert StackedRows([splits[0]], torch.float32).parts["test"].is_row is None


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_those_of_each_run_in_its_own_units(splits, metric, name):
    rows = StackedRows(splits, torch.float64)
    split_of_run = [2, 0, 1, 0]  # runs in any order, two of one split
    places = rows.parts[name].places[split_of_run]
    generator = torch.Generator().manual_seed(5)
    predictions = torch.randn(*places.shape, 2, generator=generator).double()
    errors = rows.errors(name, predictions, split_of_run, metric)
    for error, prediction, number in zip(errors, predictions, split_of_run, strict=True):
        split = splits[number]
        part = getattr(split, name)
        expected = METRICS[metric](
            own_units(split, prediction[: len(part)]), own_targets(split, part).double()
        )
        assert error == pytest.approx(expected.item(), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
def test_a_run_without_finite_predictions_does_not_touch_the_others(splits, metric):
    rows = StackedRows(splits, torch.float32)
    predictions = torch.randn(3, 12, 2, generator=torch.Generator().manual_seed(0))
    before = rows.errors("train", predictions, [0, 1, 2], metric)
    predictions[1] = torch.nan
    errors = rows.errors("train", predictions, [0, 1, 2], metric)
    assert np.isnan(errors[1])
    assert errors[::2] == before[::2]


def test_a_history_looks_at_some_of_many_training_rows():
    big = make_split((MOST_TRAINING_ROWS + 700, 4, 5))
    rows = StackedRows([make_split((30, 4, 5), 1), big], torch.float32)
    stacked = rows.parts["train"]
    assert stacked.places.shape == (2, MOST_TRAINING_ROWS)
    torch.testing.assert_close(rows.y[stacked.places[1]].double(), stacked.targets[1])
    assert stacked.places[1].unique().numel() == MOST_TRAINING_ROWS


def test_inputs_with_more_axes_are_flattened():
    split = make_split((9, 4, 5))
    boxes = {
        name: replace(getattr(split, name), x=getattr(split, name).x[:, None]) for name in NAMES
    }
    assert torch.equal(StackedRows([Split(**boxes)], torch.float32).x[:9], split.train.x)


def test_other_columns_in_a_part_are_refused():
    split = make_split((9, 4, 5))
    wider = replace(split, test=make_part(5, 0, columns=4))
    with pytest.raises(ArgumentError, match=r"same numbers of columns.*\(3, 2\), \(4, 2\)"):
        StackedRows([wider], torch.float32)
    with pytest.raises(ArgumentError, match="same numbers of columns"):
        StackedRows([replace(split, test=make_part(5, 0, targets=1))], torch.float32)


def test_inputs_that_are_not_in_memory_are_refused():
    split = make_split((9, 4, 5))
    lazy = replace(split, test=replace(split.test, x=split.test.x.numpy()))
    with pytest.raises(ArgumentTypeError, match="in memory"):
        StackedRows([lazy], torch.float32)

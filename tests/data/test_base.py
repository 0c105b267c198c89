"""Parts and splits: some of their rows, whole."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.data import Part, Split, load, standardize
from regaug.data.lazy import Lazy, Subset
from regaug.exceptions import ArgumentError


class Numbers(Lazy):
    """Inputs that know how often they were read."""

    def __init__(self, values):
        super().__init__(len(values), (1,))
        self.values, self.reads = values, 0

    def _read(self, place):
        self.reads += 1
        return self.values[place]


def make_part(rows, *, lazy=False, groups=True):
    """Samples that tell from which row they are, in every member."""
    x = torch.from_numpy(rows[:, None].astype(np.float32))
    return Part(Numbers(x) if lazy else x, 2 * x, rows, rows % 7 if groups else None)


def make_split(sizes, further=(), **options):
    ends = np.cumsum([*sizes, *further])
    starts = [0, *ends[:-1]]
    parts = [make_part(np.arange(*span), **options) for span in zip(starts, ends, strict=True)]
    return Split(*parts[:3], {f"more {i}": part for i, part in enumerate(parts[3:])})


def assert_whole(part):
    assert np.array_equal(part.x[:][:, 0].numpy(), part.rows.astype(np.float32))
    assert torch.equal(part.y, 2 * part.x[:])
    if part.groups is not None:
        assert np.array_equal(part.groups, part.rows % 7)


@pytest.mark.parametrize("lazy", [False, True])
@given(st.data())
def test_take_keeps_inputs_targets_rows_and_groups_together(lazy, data):
    n = data.draw(st.integers(1, 20))
    rows = np.random.default_rng(n).permutation(100)[:n]
    index = data.draw(st.lists(st.integers(-n, n - 1), max_size=30))
    taken = make_part(rows, lazy=lazy).take(index)
    assert taken.rows.tolist() == [rows[i] for i in index]
    assert_whole(taken)
    again = taken.take(np.arange(len(taken))[::-1])
    assert again.rows.tolist() == taken.rows.tolist()[::-1]
    assert_whole(again)


@pytest.mark.parametrize(
    "rows", [slice(1, 4), [1, 2, 3], np.array([False, True, True, True, False])]
)
def test_rows_to_take_may_be_numbers_flags_or_a_slice(rows):
    taken = make_part(np.arange(10, 15)).take(rows)
    assert taken.rows.tolist() == [11, 12, 13]
    assert_whole(taken)


def test_take_reads_nothing_that_is_read_when_it_is_asked_for():
    part = make_part(np.arange(9), lazy=True)
    taken = part.take([8, 2])
    assert isinstance(taken.x, Subset)
    assert part.x.reads == 0
    assert taken[0][0].item() == 8.0
    assert part.x.reads == 1


def test_rows_that_are_not_there_cannot_be_taken():
    with pytest.raises(IndexError, match="out of bounds"):
        make_part(np.arange(5)).take([5])


def test_without_groups_there_are_none_to_take():
    assert make_part(np.arange(5), groups=False).take([0]).groups is None


def test_the_parts_of_a_split_have_names_in_order():
    split = make_split((5, 2, 2), further=(3, 3))
    assert list(split.parts) == ["train", "validation", "test", "more 0", "more 1"]
    assert split.parts["train"] is split.train
    assert split.parts["validation"] is split.validation
    assert split.parts["test"] is split.test
    assert split.parts["more 1"] is split.more["more 1"]


@given(
    sizes=st.tuples(*[st.integers(1, 300)] * 3),
    further=st.lists(st.integers(1, 50), max_size=2),
    n=st.integers(3, 400),
    lazy=st.booleans(),
)
def test_a_subsample_has_whole_rows_of_every_part_in_proportion(sizes, further, n, lazy):
    split = make_split(sizes, further, lazy=lazy)
    few = split.subsample(n, seed=1)
    assert sum(map(len, (few.train, few.validation, few.test))) <= n
    assert list(few.parts) == list(split.parts)
    for old, new in zip(split.parts.values(), few.parts.values(), strict=True):
        expected = len(old) * min(1, n / sum(sizes))
        assert max(1, expected - 2) <= len(new) <= max(1, expected)
        assert np.isin(new.rows, old.rows).all()
        assert (np.diff(new.rows) > 0).all()
        assert_whole(new)


def test_a_split_that_is_small_enough_is_its_own_subsample():
    split = make_split((5, 2, 2))
    assert split.subsample(9) is split


def test_the_seed_decides_on_a_subsample():
    split = make_split((300, 100, 100))
    some, same, others = (split.subsample(50, seed=seed).train.rows for seed in (0, 0, 1))
    assert np.array_equal(some, same)
    assert not np.array_equal(some, others)


def test_every_row_is_as_likely_in_a_subsample():
    split = make_split((20, 5, 5))
    counts = np.bincount(
        np.concatenate([split.subsample(15, seed=seed).train.rows for seed in range(400)])
    )
    # Half of 400 draws, with a standard deviation of 10.
    assert len(counts) == 20
    assert np.abs(counts - 200).max() < 50


def test_a_subsample_of_a_standardized_split_has_its_scale():
    split = standardize(make_split((60, 20, 20)))
    few = split.subsample(50, seed=0)
    assert type(few) is type(split)
    assert few.y_scaler is split.y_scaler
    rows = torch.from_numpy(few.test.rows.astype(np.float32))
    torch.testing.assert_close(few.restore(few.test.y)[:, 0], 2 * rows)


def test_parts_without_rows_stay_so():
    split = make_split((60, 20, 20))
    split = replace(split, test=split.test.take([]))
    assert [len(part) for part in split.subsample(40).parts.values()] == [30, 10, 0]


@pytest.mark.parametrize("n", [2, 2.5, -1])
def test_a_subsample_needs_a_row_for_each_part(n):
    with pytest.raises((ArgumentError, TypeError), match="`n` must be"):
        load("synthetic-line", n=20).split().subsample(n)


def test_targets_that_are_windows_become_columns():
    part = Part(torch.zeros(4, 2), torch.arange(24.0).reshape(4, 3, 2), np.arange(4))
    assert part.y.shape == (4, 6)
    assert part.y[1].tolist() == [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]


def test_rows_must_have_groups_to_be_kept_within_them():
    split = make_split((6, 2, 2))
    assert replace(split, pairs_within="group").subsample(8).pairs_within == "group"
    with pytest.raises(ArgumentError, match="`groups` must be given for pairs_within='group'"):
        replace(make_split((6, 2, 2), groups=False), pairs_within="group")
    with pytest.raises(ArgumentError, match="`pairs_within` must be one of None, 'group'"):
        replace(split, pairs_within="row")

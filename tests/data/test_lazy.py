import numpy as np
import pytest
import torch

from regaug.data.lazy import Lazy, Subset


class Counting(Lazy):
    """Samples that are their own place, and write down which of them were read."""

    def __init__(self, n):
        super().__init__(n, (2,))
        self.read, self.epoch = [], None

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _read(self, place):
        self.read.append(place)
        return torch.full((2,), float(place))


@pytest.mark.parametrize(
    "index", [slice(None), slice(1, 3), [2, 0], 1, -1, [], [True, False, True]]
)
def test_a_subset_is_indexed_like_the_rows_themselves(index):
    rows = np.array([4, 0, 3])
    index = np.array(index) if isinstance(index, list) and index else index
    expected = torch.from_numpy(rows.astype(np.float32))[:, None].expand(3, 2)[index]
    torch.testing.assert_close(Subset(Counting(5), rows)[index], expected)


def test_a_subset_reads_only_what_is_asked_for():
    inputs = Counting(1000)
    some = Subset(inputs, np.arange(0, 1000, 10))
    assert (len(some), some.shape, inputs.read) == (100, (100, 2), [])
    some[[3, 1]]
    assert inputs.read == [30, 10]


def test_a_subset_of_a_subset_counts_in_the_first():
    inner = Subset(Counting(9), np.array([8, 6, 4, 2]))
    assert Subset(inner, np.array([3, 0]))[:].tolist() == [[2.0, 2.0], [8.0, 8.0]]


def test_a_subset_passes_the_epoch_on_to_inputs_that_have_one():
    inputs = Counting(5)
    Subset(Subset(inputs, np.arange(4)), np.arange(2)).set_epoch(7)
    assert inputs.epoch == 7
    Subset(torch.zeros(3, 1), np.arange(2)).set_epoch(7)  # nothing to tell a tensor


@pytest.mark.parametrize("index", [3, [0, 3], -4])
def test_a_row_that_is_not_in_the_subset_is_refused(index):
    with pytest.raises(IndexError, match="there are 3 samples"):
        Subset(Counting(5), np.arange(3))[index]

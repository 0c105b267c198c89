import csv
import gzip
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from regaug.data.base import Info
from regaug.data.datasets import series
from regaug.data.datasets.series import SeriesData, Windows
from regaug.data.scaling import standardize
from regaug.exceptions import ArgumentError, DataError, DataNotFoundError, NonFiniteError

INFO = Info(name="made", task="series", metric="rmse", split="By time.")


@pytest.fixture(autouse=True)
def _data_folder(monkeypatch, real_data):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))


@pytest.fixture
def without_whole_file(monkeypatch):
    """As on a machine without the whole electricity file and without a network."""
    original = series.locate

    def locate(relative, **options):
        if relative == "electricity/electricity.txt.gz":
            raise DataNotFoundError("electricity/electricity.txt.gz is not here.")
        return original(relative, **options)

    monkeypatch.setattr(series, "locate", locate)


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    """A file in the layout and size of the whole electricity data, and its numbers."""
    rows = np.random.default_rng(0).integers(0, 120_000, (64, 321))
    # The same 64 hours again and again are quick to write; a running number tells them apart.
    lines = [",".join(map(str, row[1:])) for row in rows.tolist()]
    text = "\n".join(f"{hour},{lines[hour % 64]}" for hour in range(26304))
    numbers = np.tile(rows, (411, 1))
    numbers[:, 0] = np.arange(26304)
    folder = tmp_path_factory.mktemp("data")
    (folder / "electricity").mkdir()
    path = folder / "electricity/electricity.txt.gz"
    path.write_bytes(gzip.compress(text.encode(), compresslevel=1))
    return folder, numbers


def parts_of(split):
    return [split.train, split.validation, split.test]


def read_plainly(path):
    """Numbers of a file by the csv module, without header and date."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        lines = list(csv.reader(file))
    if lines[0][0] == "date":
        return [[float(cell) for cell in line[1:]] for line in lines[1:]]
    return [[float(cell) for cell in line] for line in lines]


def largest(rows):
    return [max(abs(row[column]) for row in rows) for column in range(len(rows[0]))]


def assert_samples_of(split, rows, *, window, horizon, protocol):
    """Compare parts with the rule of the paper's scripts, written index by index."""
    total = len(rows)
    borders = [window + horizon - 1, int(0.6 * total), int(0.8 * total), total]
    divisor = largest(rows if protocol == "paper" else rows[: borders[1]])
    scaled = np.array(rows) / np.array(divisor)
    np.testing.assert_allclose(split.y_scaler.std, divisor, rtol=1e-7)
    for part, low, high in zip(parts_of(split), borders[:-1], borders[1:], strict=True):
        assert len(part) == len(part.x) == high - low
        np.testing.assert_allclose(part.y, scaled[low:high], rtol=1e-6)
        for k in (0, 1, (high - low) // 2, high - low - 1):
            i = low + k
            expected = scaled[i - horizon + 1 - window : i - horizon + 1]
            np.testing.assert_allclose(part.x[k], expected, rtol=1e-6)
            np.testing.assert_allclose(part[k][1], scaled[i], rtol=1e-6)
            assert part.rows[k] == i - (window + horizon - 1)
        np.testing.assert_allclose(split.restore(part.y), np.array(rows)[low:high], rtol=1e-6)


@pytest.mark.parametrize("protocol", ["tuned", "paper"])
@pytest.mark.parametrize(
    ("load", "file", "horizon", "sizes"),
    [
        (
            series.load_exchange_rate,
            "exchange_rate/exchange_rate.txt.gz",
            12,
            [(4373, 168, 8), (1518, 168, 8), (1518, 168, 8)],
        ),
        (
            series.load_etth1,
            "etth1/ETTh1.csv",
            24,
            [(10261, 168, 7), (3484, 168, 7), (3484, 168, 7)],
        ),
    ],
)
def test_the_samples_are_those_of_the_file(real_data, load, file, horizon, sizes, protocol):
    data = load()
    split = data.split(protocol=protocol)
    assert [part.x.shape for part in parts_of(split)] == sizes
    assert len(data) == sum(size[0] for size in sizes)
    rows = read_plainly(real_data / file)
    assert_samples_of(split, rows, window=168, horizon=horizon, protocol=protocol)


def test_exchange_rate_has_the_documented_range():
    data = series.load_exchange_rate()
    assert data.series.min() == pytest.approx(0.006254)
    assert data.series.max() == pytest.approx(2.109)


def test_electricity_falls_back_to_two_clients_and_says_so(real_data, without_whole_file):
    with pytest.warns(UserWarning, match="2 of the 321 clients"):
        data = series.load_electricity()
    assert "excerpt: 2 of 321 clients" in data.info.origin
    split = data.split(protocol="paper")
    assert [part.x.shape for part in parts_of(split)] == [
        (15591, 168, 2),
        (5261, 168, 2),
        (5261, 168, 2),
    ]
    rows = read_plainly(real_data / "electricity/electricity_26304rows_2of321.csv")
    assert_samples_of(split, rows, window=168, horizon=24, protocol="paper")


def test_without_any_electricity_the_whole_file_is_what_is_missing(
    tmp_path, monkeypatch, without_whole_file
):
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    monkeypatch.setenv("REGAUG_CACHE", str(tmp_path))
    with pytest.raises(DataNotFoundError, match="electricity.txt.gz is not here"):
        series.load_electricity()


def test_electricity_reads_the_excerpt_of_many_clients_too(real_data):
    path = real_data / "electricity/electricity_first1000rows_203of321.csv"
    data = series.load_electricity(path)
    assert data.series.shape == (1000, 203)
    assert data.series.max() == 111584
    split = data.split()
    assert [len(part) for part in parts_of(split)] == [409, 200, 200]
    assert_samples_of(split, read_plainly(path), window=168, horizon=24, protocol="tuned")


def test_electricity_reads_the_whole_file(whole_file, monkeypatch):
    folder, numbers = whole_file
    monkeypatch.setenv("REGAUG_DATA", str(folder))
    data = series.load_electricity()
    np.testing.assert_array_equal(data.series, numbers)
    split = data.split()
    assert [len(part) for part in parts_of(split)] == [15591, 5261, 5261]
    assert "excerpt" not in data.info.origin


@pytest.mark.parametrize("header", ["date,0,1", "date,0,OT"])
def test_names_of_columns_are_not_read_as_numbers(tmp_path, header):
    lines = [f"2016-07-01 {hour},{hour},{2 * hour}" for hour in range(400)]
    (tmp_path / "clients.csv").write_text("\n".join([header, *lines]))
    data = series.load_electricity(tmp_path / "clients.csv")
    np.testing.assert_array_equal(data.series, np.outer(np.arange(400), [1, 2]))


def test_windows_of_a_large_series_cost_no_memory():
    data = SeriesData(np.ones((26304, 321), dtype=np.float32), info=INFO, horizon=24)
    raw = data.series.nbytes
    tracemalloc.start()
    split = data.split()
    batch = split.train.x[torch.arange(32)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert batch.shape == (32, 168, 321)
    assert peak < 1.1 * raw
    tensors = [tensor for part in parts_of(split) for tensor in (part.x._runs, part.y)]
    held = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    assert sum(held.values()) == raw


def test_a_series_of_floats_is_not_copied_when_it_is_taken():
    values = np.ones((100, 2), dtype=np.float32)
    assert SeriesData(values, info=INFO, window=5, horizon=1).series is values


@given(
    st.integers(1, 6), st.integers(1, 3), st.integers(0, 4), st.integers(1, 9), st.integers(0, 3)
)
def test_windows_are_slices(window, columns, first, n, rest):
    values = torch.arange(float((first + n + window - 1 + rest) * columns)).reshape(-1, columns)
    windows = Windows(values, window, first=first, n=n)
    expected = torch.stack([values[first + k : first + k + window] for k in range(n)])
    assert windows.shape == tuple(expected.shape)
    assert torch.equal(windows[:], expected)
    assert torch.equal(windows[-1], expected[-1])


@pytest.mark.parametrize(
    "index",
    [
        0,
        -2,
        np.int64(3),
        slice(1, 4),
        slice(None, None, 2),
        slice(9, 12),
        [2, 0, 0, -1],
        [],
        np.array([1, 4]),
        np.arange(5) > 2,
        torch.tensor([3, -1]),
        torch.tensor([True, False, True, False, False]),
        torch.tensor(2),
        torch.tensor([], dtype=torch.int64),
    ],
)
def test_windows_are_indexed_like_a_tensor(index):
    values = torch.randn(9, 2, generator=torch.Generator().manual_seed(0))
    whole = torch.stack([values[k + 1 : k + 4] for k in range(5)])
    windows = Windows(values, 3, first=1, n=5)
    assert torch.equal(windows[index], whole[index])


@pytest.mark.parametrize("index", [5, -6, [0, 5], torch.tensor([5])])
def test_a_window_that_is_not_there_is_an_error(index):
    with pytest.raises(IndexError):
        Windows(torch.ones(9, 2), 3, first=1, n=5)[index]


@pytest.mark.parametrize("index", [0, slice(None), [0, 1], torch.tensor([1])])
def test_what_an_index_returns_may_be_changed(index):
    values = torch.ones(6, 1)
    Windows(values, 2, first=0, n=5)[index].zero_()
    assert bool(values.all())


def test_windows_beyond_the_series_are_refused():
    with pytest.raises(ArgumentError, match="inside the 6 of the series, got 1 and 5"):
        Windows(torch.ones(6, 1), 2, first=1, n=5)


def test_a_series_in_another_order_of_memory_gives_the_same_windows():
    values = torch.arange(12.0).reshape(2, 6).T
    assert torch.equal(Windows(values, 2, first=1, n=2)[0], values[1:3])


def test_a_loader_batches_windows():
    split = SeriesData(np.arange(1.0, 61.0)[:, None], info=INFO, window=4, horizon=2).split()
    batches = list(DataLoader(split.train, batch_size=8))
    assert batches[0][0].shape == (8, 4, 1)
    assert torch.equal(torch.cat([y for _, y in batches]), split.train.y)


def test_the_tuned_protocol_knows_training_rows_only():
    values = np.ones((50, 2))
    values[30:, 0] = 7.0  # row int(0.6 * 50) is the first that is not for training
    data = SeriesData(values, info=INFO, window=5, horizon=1)
    assert data.split().y_scaler.std.tolist() == [1.0, 1.0]
    assert data.split(protocol="paper").y_scaler.std.tolist() == [7.0, 1.0]


def test_the_divisor_is_the_largest_absolute_value_and_never_zero():
    values = np.zeros((50, 3))
    values[3] = (-4.0, 0.0, 2.0)
    split = SeriesData(values, info=INFO, window=5, horizon=1).split()
    assert split.y_scaler.std.tolist() == [4.0, 1.0, 2.0]
    assert all(bool(part.y.isfinite().all()) for part in parts_of(split))


def test_targets_of_the_parts_do_not_overlap_and_the_seed_has_no_effect():
    data = series.load_exchange_rate()
    split, other = data.split(seed=0), data.split(seed=1)
    rows = np.concatenate([part.rows for part in parts_of(split)])
    np.testing.assert_array_equal(rows, np.arange(len(data)))
    assert torch.equal(split.train.y, other.train.y)


def test_a_split_of_a_series_has_its_scale_already():
    split = SeriesData(np.arange(60.0)[:, None], info=INFO, window=4, horizon=2).split()
    assert standardize(split) is split


def test_a_split_does_not_touch_the_series():
    values = np.arange(1.0, 61.0, dtype=np.float32)[:, None]
    before = values.copy()
    SeriesData(values, info=INFO, window=4, horizon=2).split().train.y.zero_()
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3,4,5,6,7,8\n" * 7587, "must have 7588 rows of 8 columns, got 7587 rows of 8"),
        ("1,2,3,4,5,6,7\n" * 7588, "must have 7588 rows of 8 columns, got 7588 rows of 7"),
        ("1,2,3,4,5,6,7,8\n" * 7587 + "1,2,3,4,5,6,7,x\n", "comma-separated table of numbers"),
        ("1,2,3,4,5,6,7,8\n" * 7587 + "1,2,3\n", "comma-separated table of numbers"),
        ("1,2,3,4,5,6,7,8\n" * 7587 + "1,2,3,4,5,6,7,8,9\n", "comma-separated table of numbers"),
    ],
)
def test_another_file_is_refused(tmp_path, monkeypatch, text, message):
    (tmp_path / "exchange_rate").mkdir()
    path = tmp_path / "exchange_rate/exchange_rate.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    with pytest.raises(DataError, match=message):
        series.load_exchange_rate()


@pytest.mark.parametrize(
    "raw", [b"", b"\x1f\x8b", b"no gzip", gzip.compress(b"1,2\n" * 99, mtime=0)[:-9]], ids=str
)
def test_a_damaged_archive_is_refused(tmp_path, raw):
    path = tmp_path / "electricity.txt.gz"
    path.write_bytes(raw)
    with pytest.raises(DataError, match="must be a comma-separated table of numbers"):
        series.load_electricity(path)


@pytest.mark.parametrize("text", ["date,a,b\n", "date,a,b\n2016,1,2\n2016,1,2,3\n", "a,b\n1,x\n"])
def test_a_table_with_a_header_must_have_equal_lines_of_numbers(tmp_path, text):
    (tmp_path / "electricity.csv").write_text(text)
    with pytest.raises(DataError, match="must be a comma-separated table of numbers"):
        series.load_electricity(tmp_path / "electricity.csv")


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataNotFoundError, match="nowhere.csv"):
        series.load_electricity(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.ones(40), ArgumentError, "`series` must be \\(time, columns\\) and not empty"),
        (np.ones((8, 1)), ArgumentError, "a sample for each part, got 8 rows, of which the first"),
        (np.full((40, 1), np.nan), NonFiniteError, "got nan in row 0, column 0. Fill gaps first"),
    ],
)
def test_a_series_that_cannot_be_used_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        SeriesData(values, info=INFO, window=5, horizon=1)

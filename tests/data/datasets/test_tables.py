import gzip
import math
import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes as sklearn_diabetes

from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.datasets import tables
from regaug.data.splits import random_split
from regaug.exceptions import ArgumentError, DataError, NonFiniteError

LOADERS = [
    tables.load_diabetes,
    tables.load_airfoil,
    tables.load_no2,
    tables.load_crimes,
    tables.load_skillcraft,
]


@pytest.fixture(autouse=True)
def _data_folder(monkeypatch, real_data):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))


def parts_of(split):
    return [split.train, split.validation, split.test]


def plain_number(cell):
    cell = cell.strip('"')
    return None if cell == "?" else float(cell)


def read_plainly(path, separator, *, skip=0):
    """The cells of a file by str.split, as text."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    return [line.split(separator) for line in text.splitlines()[skip:]]


def as_rows(numbers):
    """Rows in float32, as a multiset."""
    return Counter(tuple(row) for row in np.array(numbers, dtype=np.float32).tolist())


def joint_rows(split):
    return sum(
        (as_rows(torch.cat([part.x, part.y], dim=1).numpy()) for part in parts_of(split)), Counter()
    )


@pytest.mark.parametrize(
    ("load", "file", "skip", "sizes"),
    [
        (tables.load_airfoil, "airfoil/airfoil_self_noise.dat", 0, [1003, 300, 200]),
        (tables.load_no2, "no2/547_no2.tsv.gz", 1, [200, 200, 100]),
    ],
)
def test_the_parts_together_are_the_file(real_data, load, file, skip, sizes):
    rows = [
        [float(cell) for cell in line] for line in read_plainly(real_data / file, "\t", skip=skip)
    ]
    split = load().split(seed=3)
    assert joint_rows(split) == as_rows(rows)
    assert [len(part) for part in parts_of(split)] == sizes
    for part in parts_of(split):
        np.testing.assert_array_equal(part.y[:, 0], np.float32([rows[i][-1] for i in part.rows]))
        np.testing.assert_array_equal(part.x, np.float32([rows[i][:-1] for i in part.rows]))


def test_airfoil_has_the_documented_figures():
    data = tables.load_airfoil()
    assert data.x.min(axis=0).tolist() == [200, 0, 0.0254, 31.7, 0.000400682]
    assert data.x.max(axis=0).tolist() == [20000, 22.2, 0.3048, 71.3, 0.0584113]
    assert data.y.mean() == pytest.approx(124.836, abs=5e-4)


def test_no2_is_that_of_statlib_to_five_decimals():
    data = tables.load_no2()
    np.testing.assert_allclose(data.x, np.round(data.x, 5), atol=2e-7 * np.abs(data.x).max())
    assert data.y.min() == pytest.approx(1.22378, abs=1e-6)  # not the copy cut to whole numbers
    assert data.y.max() == pytest.approx(6.39509, abs=1e-6)


def test_diabetes_has_the_columns_in_their_own_units():
    x, y = sklearn_diabetes(return_X_y=True, scaled=False)
    data = tables.load_diabetes()
    split = data.split(seed=0)
    assert [len(part) for part in parts_of(split)] == [265, 89, 88]
    assert joint_rows(split) == as_rows(np.column_stack([x, y]))
    assert data.x[:, 0].max() == 79  # years


@pytest.mark.parametrize(
    ("load", "file", "skip", "group", "target", "inputs"),
    [
        (tables.load_crimes, "crimes/communities.data", 0, 0, 127, list(range(5, 127))),
        (
            tables.load_skillcraft,
            "skillcraft/SkillCraft1_Dataset.csv",
            1,
            1,
            13,
            [*range(2, 13), *range(14, 20)],
        ),
    ],
)
@pytest.mark.parametrize("protocol", ["tuned", "paper"])
def test_missing_values_and_scale_follow_the_protocol(
    real_data, load, file, skip, group, target, inputs, protocol
):
    lines = read_plainly(real_data / file, ",", skip=skip)
    split = load().split(protocol=protocol)
    seen = range(len(lines)) if protocol == "paper" else split.train.rows.tolist()
    x = np.empty((len(lines), len(inputs)))
    for k, column in enumerate(inputs):
        cells = [plain_number(line[column]) for line in lines]
        present = [cells[i] for i in seen if cells[i] is not None]
        mean = math.fsum(present) / len(present)
        filled = [mean if cell is None else cell for cell in cells]
        low, width = (min(filled), max(filled) - min(filled)) if protocol == "paper" else (0, 1)
        x[:, k] = [(cell - low) / width for cell in filled]
    for part in parts_of(split):
        np.testing.assert_allclose(part.x, x[part.rows], rtol=1e-6, atol=1e-7)
        assert part.y[:, 0].tolist() == [
            float(np.float32(lines[i][target])) for i in part.rows.tolist()
        ]
        assert part.groups.tolist() == [int(lines[i][group]) for i in part.rows.tolist()]
    held = sorted(np.concatenate([part.rows for part in parts_of(split)]).tolist())
    assert held == list(range(len(lines)))


def test_crimes_is_split_by_states_as_in_the_paper():
    split = tables.load_crimes().split()
    states = [sorted(set(part.groups.tolist())) for part in parts_of(split)]
    assert [len(part) for part in parts_of(split)] == [1390, 231, 373]
    assert len(states[0]) == 31
    assert states[1] == [40, 41, 42, 44, 45, 46]
    assert states[2] == [47, 48, 49, 50, 51, 53, 54, 55, 56]


def test_crimes_has_the_documented_gaps_and_mean():
    data = tables.load_crimes()
    gaps = np.isnan(data.x).sum(axis=0)
    lemas = [column - 5 for column in (*range(101, 118), *range(121, 125), 126)]
    assert set(gaps[lemas]) == {1675}
    assert gaps[30 - 5] == 1
    assert gaps.sum() == 22 * 1675 + 1
    assert data.y.mean() == pytest.approx(0.23798, abs=5e-6)


def test_skillcraft_is_split_by_leagues_as_in_the_scripts():
    data = tables.load_skillcraft()
    split = data.split()
    assert [len(part) for part in parts_of(split)] == [1878, 806, 711]
    leagues = [sorted(set(part.groups.tolist())) for part in parts_of(split)]
    assert leagues == [[1, 2, 3, 4], [5], [6, 7, 8]]
    assert np.isnan(data.x).sum(axis=0).tolist() == [55, 56, 57] + [0] * 14


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("protocol", ["tuned", "paper"])
def test_every_table_gives_finite_float32_parts(load, protocol):
    data = load()
    split = data.split(seed=1, protocol=protocol)
    assert sum(len(part) for part in parts_of(split)) == len(data)
    for part in parts_of(split):
        assert part.x.dtype == part.y.dtype == torch.float32
        assert part.y.shape == (len(part), 1)
        assert bool(part.x.isfinite().all())
        assert part.x[0].equal(part[0][0])
    if protocol == "paper":
        x = torch.cat([part.x for part in parts_of(split)])
        assert torch.equal(x.amin(0), torch.zeros(x.shape[1]))
        assert torch.equal(x.amax(0), torch.ones(x.shape[1]))


@pytest.mark.parametrize("load", LOADERS)
def test_the_seed_matters_exactly_where_the_info_says_so(load):
    data = load()
    first, again, other = (data.split(seed=seed).train.rows for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert np.array_equal(first, other) == ("seed has no effect" in data.info.split)
    assert (data.groups is None) == (data.info.groups is None)


@pytest.mark.parametrize("load", LOADERS)
def test_a_table_can_be_sent_to_another_process(load):
    data = load()
    again = pickle.loads(pickle.dumps(data))
    assert np.array_equal(again.split(seed=5).test.rows, data.split(seed=5).test.rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\t2\t3\t4\t5\t6\n" * 1502, "must have 1503 rows of 6 columns, got 1502 rows of 6 col"),
        ("1\t2\t3\t4\t5\n" * 1503, "must have 1503 rows of 6 columns, got 1503 rows of 5 col"),
        ("1\t2\t3\t4\t5\t6\n" * 1502 + "1\t2\n", "got 1503 rows of 2 or 6 columns"),
        ("", "got 0 rows of no columns"),
        ("1\t2\t3\t4\t5\t6\n" * 1502 + "1\t2\tx\t4\t5\t6\n", "row 1502, column 2 .*got 'x'"),
        ("1\t2\t3\t4\t5\t6\n" * 1502 + "1\t2\t?\t4\t5\t6\n", "row 1502, column 2 .*got '\\?'"),
        ("1\t2\t3\t4\t5\t6\n" * 1502 + "1\t2\tnan\t4\t5\t6\n", "row 1502, column 2 .*got 'nan'"),
    ],
)
def test_another_file_is_refused(tmp_path, monkeypatch, text, message):
    (tmp_path / "airfoil").mkdir()
    (tmp_path / "airfoil/airfoil_self_noise.dat").write_text(text)
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    with pytest.raises(DataError, match=message):
        tables.load_airfoil()


@pytest.mark.parametrize("damage", [lambda raw: raw[:9000], lambda raw: b"no gzip" + raw])
def test_a_damaged_archive_is_refused(tmp_path, monkeypatch, real_data, damage):
    (tmp_path / "no2").mkdir()
    raw = (real_data / "no2/547_no2.tsv.gz").read_bytes()
    (tmp_path / "no2/547_no2.tsv.gz").write_bytes(damage(raw))
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    with pytest.raises(DataError, match="must be a text table, got a damaged file"):
        tables.load_no2()


def test_other_names_of_columns_are_refused(tmp_path, monkeypatch, real_data):
    text = (real_data / "skillcraft/SkillCraft1_Dataset.csv").read_text()
    (tmp_path / "skillcraft").mkdir()
    (tmp_path / "skillcraft/SkillCraft1_Dataset.csv").write_text(text.replace("APM", "PAM", 1))
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    with pytest.raises(DataError, match="must begin with the names GameID, LeagueIndex"):
        tables.load_skillcraft()


INFO = Info(name="made", task="table", metric="rmse", split="At random.")


def made(x, y, **options):
    return ArrayData(x, y, info=INFO, rule=lambda seed: random_split(6, seed=seed), **options)


def test_a_column_without_any_value_becomes_zero():
    x = np.column_stack([np.arange(6.0), np.full(6, np.nan)])
    for protocol in ("tuned", "paper"):
        split = made(x, np.arange(6.0)).split(protocol=protocol)
        assert all(not part.x[:, 1].any() for part in parts_of(split))


def test_inputs_may_have_any_shape():
    split = made(np.ones((6, 2, 3)), np.ones((6, 4))).split()
    assert split.train.x.shape[1:] == (2, 3)
    assert split.train.y.shape[1:] == (4,)


def test_a_split_does_not_touch_the_arrays():
    x = np.arange(12.0).reshape(6, 2)
    x[0, 0] = np.nan
    before = x.copy()
    split = made(x, np.arange(6.0)).split(protocol="paper")
    split.train.x.zero_()
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: made(np.ones((6, 2)), np.ones(5)), ArgumentError, "with equal n, not empty, got"),
        (lambda: made(np.ones(6), np.ones(6)), ArgumentError, "`x` and `y` must be"),
        (lambda: made(np.ones((6, 1)), [1, 2, np.nan, 4, 5, 6]), NonFiniteError, "row 2 first"),
        (lambda: made(np.full((6, 1), np.inf), np.ones(6)), NonFiniteError, "not be infinite"),
        (lambda: made(np.ones((6, 1)), np.ones(6), groups=[1]), ArgumentError, "must be \\(6,\\)"),
        (
            lambda: made(np.ones((6, 1)), np.ones(6)).split(protocol="papre"),
            ArgumentError,
            "`protocol` must be one of 'tuned', 'paper', got 'papre'",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()

import json
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.datasets.pairs import (
    DRUG_SYMBOLS,
    PROTEIN_SYMBOLS,
    encode,
    load_davis,
    load_dti,
    load_kiba,
)
from regaug.exceptions import DataError, DataNotFoundError

DAVIS_FILE = "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt"


def decode(sample):
    """Return the two strings of a sample, read from its ones."""
    drug = sample[:6300].reshape(63, 100).argmax(0)
    protein = sample[6300:].reshape(26, 1000).argmax(0)
    return "".join(DRUG_SYMBOLS[i] for i in drug), "".join(PROTEIN_SYMBOLS[i] for i in protein)


# Symbols


def test_there_are_63_and_26_symbols_in_sorted_order():
    for symbols, n in ((DRUG_SYMBOLS, 63), (PROTEIN_SYMBOLS, 26)):
        assert len(set(symbols)) == len(symbols) == n
        assert list(symbols) == sorted(symbols)
        assert "?" in symbols


@given(st.lists(st.text(max_size=12), max_size=5), st.integers(1, 9))
def test_encoding_agrees_with_the_slow_way(strings, length):
    codes = encode(strings, DRUG_SYMBOLS, length)
    assert codes.shape == (len(strings), length)
    for text, row in zip(strings, codes, strict=True):
        known = [c if c in DRUG_SYMBOLS else "?" for c in text[:length]]
        assert "".join(DRUG_SYMBOLS[i] for i in row) == "".join(known).ljust(length, "?")


# Davis and KIBA, made here


def write_folded(folder, *, name, matrix, drugs, proteins, test, train):
    (folder / "folds").mkdir()
    (folder / "ligands_can.txt").write_text(json.dumps(drugs))
    (folder / "proteins.txt").write_text(json.dumps(proteins))
    (folder / name).write_text("\n".join("\t".join(map(str, row)) for row in matrix) + "\n")
    (folder / "folds/test_fold_setting1.txt").write_text(json.dumps(test))
    (folder / "folds/train_fold_setting1.txt").write_text(json.dumps(train))
    return folder


@pytest.fixture
def davis(tmp_path):
    return write_folded(
        tmp_path,
        name=DAVIS_FILE,
        matrix=[[10000.0, 1.0, 100.0], [0.1, 10.0, 1000.0]],
        drugs={"9": "CC(=O)/N", "1": "C" * 120},  # in the order of the file, not of the keys
        proteins={"b": "MKV", "a": "J*" + "A" * 2000, "c": ""},
        test=[5],
        train=[[4], [3], [2], [1], [0]],
    )


@pytest.fixture
def kiba(tmp_path):
    return write_folded(
        tmp_path,
        name="kiba_binding_affinity_v2.txt",
        matrix=[["nan", 11.5, 12.0], [0.0, "nan", 13.0]],
        drugs={"d": "C", "e": "N"},
        proteins={"p": "A", "q": "C", "r": "D"},
        test=[3, 1],
        train=[[2], [0]],
    )


def test_davis_targets_are_pkd_in_row_major_order(davis):
    split = load_davis(path=davis).split(seed=0)
    assert len(load_davis(path=davis)) == 6
    assert split.test.y.tolist() == [[6.0]]
    assert split.validation.y.tolist() == [[8.0]]  # training fold 0 is place 4
    assert split.train.y[:, 0].tolist() == [10.0, 7.0, 9.0, 5.0]
    assert split.train.groups.tolist() == [0, 2, 1, 0]
    assert split.train.rows.tolist() == [3, 2, 1, 0]


def test_missing_kiba_pairs_are_left_out(kiba):
    split = load_kiba(path=kiba).split(seed=1)
    assert split.test.y[:, 0].tolist() == [13.0, 12.0]
    assert split.test.groups.tolist() == [2, 2]
    assert split.validation.y[:, 0].tolist() == [11.5]
    assert split.train.y[:, 0].tolist() == [0.0]
    assert decode(split.train.x[0])[0].rstrip("?") == "N"


def test_the_validation_fold_is_the_seed_modulo_five(davis):
    data = load_davis(path=davis)
    assert [data.split(seed).validation.rows.tolist() for seed in range(6)] == [
        [4], [3], [2], [1], [0], [4],
    ]  # fmt: skip


def test_a_sample_is_both_strings_in_one_hot_code(davis):
    train = load_davis(path=davis).split().train
    assert train.x.shape == (4, 32_300)
    x = train.x[:]
    assert x.dtype == torch.float32
    assert set(x.unique().tolist()) == {0.0, 1.0}
    assert x[:, :6300].reshape(4, 63, 100).sum(1).eq(1).all()
    assert x[:, 6300:].reshape(4, 26, 1000).sum(1).eq(1).all()
    drugs, proteins = zip(*(decode(sample) for sample in x), strict=True)
    assert drugs[0] == "C" * 100
    assert drugs[1].rstrip("?") == "CC(=O)?N"
    assert proteins[0].rstrip("?") == "MKV"
    assert proteins[1] == "?" * 1000
    assert proteins[2] == "??" + "A" * 998
    torch.testing.assert_close(train.x[2], x[2])


def test_pickled_pairs_are_equal(davis):
    train = pickle.loads(pickle.dumps(load_davis(path=davis).split().train))
    torch.testing.assert_close(train.x[:], load_davis(path=davis).split().train.x[:])


@pytest.mark.parametrize("name", ["ligands_can.txt", DAVIS_FILE, "folds/train_fold_setting1.txt"])
def test_a_missing_file_is_named(davis, name):
    (davis / name).unlink()
    with pytest.raises(DataNotFoundError, match=name.split("/")[-1]):
        load_davis(path=davis)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (DAVIS_FILE, "1 2 3\n", r"2 x 3 by its JSON files, got \(1, 3\)"),
        (DAVIS_FILE, "1 2 3\n4 0 6\n", "positive numbers .* got 0.0"),
        (DAVIS_FILE, "1 2 3\n4 nan 6\n", "no missing"),
        (DAVIS_FILE, "1 2 3\n4 x 6\n", "matrix of numbers"),
        ("proteins.txt", "{", "JSON"),
        ("folds/test_fold_setting1.txt", "[4]", "each of the 6 present pairs once"),
    ],
)
def test_a_wrong_file_is_refused(davis, name, text, message):
    (davis / name).write_text(text)
    with pytest.raises(DataError, match=message):
        load_davis(path=davis)


# Davis and KIBA, the real files


def test_the_real_davis_agrees_with_an_independent_reading(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    data = load_davis()
    folder = real_data / "dti_davis"
    lines = [line.split() for line in (folder / DAVIS_FILE).read_text().splitlines()]
    drugs = list(json.loads((folder / "ligands_can.txt").read_text()).values())
    proteins = list(json.loads((folder / "proteins.txt").read_text()).values())
    split = data.split(seed=2)
    assert (len(data), len(split.train), len(split.validation)) == (30_056, 20_037, 5009)
    assert len(split.test) == 5010
    for i in (0, 1234, 5009):
        drug, protein = divmod(int(split.test.rows[i]), 442)
        assert split.test.y[i].item() == pytest.approx(9 - math.log10(float(lines[drug][protein])))
        assert split.test.groups[i] == protein
        texts = decode(split.test.x[i])
        assert texts[0].rstrip("?") == drugs[drug]
        assert texts[1].rstrip("?") == proteins[protein][:1000]


def test_the_real_kiba_agrees_with_an_independent_reading(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    data = load_kiba()
    folder = real_data / "dti_kiba"
    present = [
        (i, j, float(cell))
        for i, line in enumerate((folder / "kiba_binding_affinity_v2.txt").read_text().splitlines())
        for j, cell in enumerate(line.split())
        if cell != "nan"
    ]
    drugs = list(json.loads((folder / "ligands_can.txt").read_text()).values())
    split = data.split(seed=4)
    assert len(data) == len(present) == 118_254
    sizes = [len(p) for p in (split.train, split.validation, split.test)]
    assert sizes == [78_836, 19_709, 19_709]
    for i in (0, 7000, 19_708):
        drug, protein, value = present[split.validation.rows[i]]
        assert split.validation.y[i].item() == pytest.approx(value)
        assert split.validation.groups[i] == protein
        assert decode(split.validation.x[i])[0].rstrip("?") == drugs[drug][:100]


def test_every_symbol_of_the_real_drugs_is_known(real_data):
    for name in ("dti_davis", "dti_kiba"):
        drugs = json.loads((real_data / name / "ligands_can.txt").read_text()).values()
        assert set("".join(drugs)) <= set(DRUG_SYMBOLS)


# BindingDB patents by year


@pytest.fixture
def patents(tmp_path):
    def write(name, years, per_year):
        lines = ["Unnamed: 0,Drug_ID,Drug,Target_ID,Target,Y,Year"]
        for year in years:
            drugs = ("C" * (i % 3 + 1) + "N" for i in range(per_year(year)))
            target = "mkv" + "A" * (year % 4)
            lines += [f"0,1,{drug},2,{target},{i + 0.5},{year}" for i, drug in enumerate(drugs)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    write("train_val.csv", range(2013, 2019), lambda year: year - 2003)
    write("test.csv", (2021, 2019, 2020), lambda year: 3)
    return tmp_path


def test_every_early_year_is_cut_80_to_20(patents):
    split = load_dti(path=patents).split(seed=0)
    for year in range(2013, 2019):
        n = year - 2003
        assert (split.train.groups == year).sum() == int(0.8 * n)
        assert (split.validation.groups == year).sum() == n - int(0.8 * n)
    rows = np.concatenate([split.train.rows, split.validation.rows])
    np.testing.assert_array_equal(np.sort(rows), np.arange(75))


def test_the_test_years_are_2019_and_2020(patents):
    split = load_dti(path=patents).split()
    assert split.test.groups.tolist() == [2019] * 3 + [2020] * 3
    assert split.test.rows.tolist() == list(range(78, 84))
    assert split.test.y[:, 0].tolist() == [0.5, 1.5, 2.5] * 2
    drug, protein = decode(split.test.x[1])
    assert (drug.rstrip("?"), protein.rstrip("?")) == ("CCN", "MKVAAA")


def test_the_seed_chooses_the_cut_and_nothing_else(patents):
    data = load_dti(path=patents)
    a, b, again = data.split(0), data.split(1), data.split(0)
    assert not np.array_equal(np.sort(a.validation.rows), np.sort(b.validation.rows))
    np.testing.assert_array_equal(a.train.rows, again.train.rows)
    np.testing.assert_array_equal(a.test.rows, b.test.rows)


def test_dti_is_found_in_the_layout_of_tdc(patents, tmp_path, monkeypatch):
    folder = tmp_path / "root/dti_dg_group/bindingdb_patent"
    folder.mkdir(parents=True)
    for name in ("train_val.csv", "test.csv"):
        (patents / name).rename(folder / name)
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path / "root"))
    assert len(load_dti()) == 84


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Drug,Target,Y\nC,M,1\n", "must have the columns Drug, Target, Y, Year"),
        ("Drug,Target,Y,Year\nC,M,1,2013\n", "`Year` in .*test.csv must be from 2019 to 2021"),
        ("Drug,Target,Y,Year\n,M,1,2019\n", "got none: 1 in Drug"),
        ("Drug,Target,Y,Year\nC,M,high,2019\n", "got none: 1 in Y"),
    ],
)
def test_a_wrong_table_of_patents_is_refused(patents, text, message):
    (patents / "test.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_dti(path=patents)


def test_a_missing_table_of_patents_is_named(patents):
    (patents / "test.csv").unlink()
    with pytest.raises(DataNotFoundError, match="test.csv"):
        load_dti(path=patents)

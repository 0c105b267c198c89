"""Folders of studies whose files are sealed and say something else: file and key are named."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from tests.fuzz import corpus

from regaug import _files, _tensors
from regaug.data import read_table
from regaug.ensemble.diagnosis import DIAGNOSIS, read_diagnosis
from regaug.exceptions import CheckpointError, DataError, RegaugError, StoreError
from regaug.runs.run import run_key
from regaug.runs.store import Store
from regaug.studies.facts import ABOUT, read_facts
from regaug.studies.study import Study
from regaug.studies.targets import read_targets
from regaug.training.checkpoint import Checkpoints


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    corpus.write_study(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(sound, tmp_path):
    for name, content in sound.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def rewrite(path, change):
    document = json.loads(path.read_text())
    change(document)
    if "configuration" in document:
        document["key"] = run_key(document["configuration"])
    path.write_text(json.dumps(document) + "\n")


def test_the_study_is_sound(folder):
    assert Study.open(folder).comparison.n_splits == 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("problem", 3), ("methods", "erm"), ("methods", [1]), ("baselines", True)],
        *[("trials", 2.5), ("trials", None), ("splits", "2"), ("metric", 7), ("test_share", "x")],
        *[("independent", 0), ("hidden", [4.5]), ("rows", []), ("target_names", {"a": 1})],
        *[("seed", True), ("reference", None), ("kind", "else"), ("search", ["random"])],
    ],
)
def test_a_configuration_of_another_type_names_file_and_key(folder, key, value):
    file = folder / "study.json"
    rewrite(file, lambda document: document["configuration"].update({key: value}))
    with pytest.raises(StoreError, match=rf"study\.json: `{key}` .*--out"):
        Study.open(folder)


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (lambda record: record["sample"]["true"].pop(), 9),
        (lambda record: record["sample"]["predicted"].append([]), 9),
        (lambda record: record["run"].update(split="0"), 9),
        (lambda record: record.pop("sizes"), 9),
    ],
)
def test_a_record_of_another_form_is_left_out_and_said(folder, change, kept):
    (file,) = folder.glob("runs-*.jsonl")
    first, *lines = file.read_bytes().splitlines(keepends=True)
    document = json.loads(first)
    document.pop("crc32")
    change(document["record"])
    document["key"] = run_key(document["record"]["run"])
    file.write_bytes(b"".join([_files.seal(document), *lines]))
    store = Store.open(folder)
    assert len(store.records()) == kept
    assert store.damaged == [f"{file.name}, line 1 is damaged; its run is done again"]


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own["true"].pop(),
        lambda own: own["predicted"][0].append(1.0),
        lambda own: own["groups"].append("a"),
        lambda own: own["coverage"].append({"level": 0.9, "rows": 3, "inside": []}),
        lambda own: own.update(targets=[]),
        lambda own: own.update(columns={"a": {"numbers": [1.0], "texts": []}}),
        lambda own: own.update(scores=[0] * 5000),
    ],
)
def test_a_diagnosis_whose_rows_do_not_belong_together_is_refused_in_a_few_words(folder, change):
    rewrite(folder / DIAGNOSIS, change)
    with pytest.raises(StoreError, match=r"diagnosis\.json: .* Delete it") as caught:
        read_diagnosis(folder)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("name", "read"), [(ABOUT, read_facts), (DIAGNOSIS, read_diagnosis), ("study.json", Study.open)]
)
def test_a_newer_file_is_refused_with_the_version_that_wrote_it(folder, name, read):
    rewrite(folder / name, lambda document: document.update(format=99, regaug="7.1"))
    with pytest.raises(StoreError, match=rf"{name}|store.*format 99, written by regaug 7\.1"):
        read(folder)


def test_newer_tensors_are_refused_with_the_version_that_wrote_them(tmp_path):
    newer = {"format": 99, "regaug": "7.1"}  # which take the place of our own
    content, _ = _tensors.dump_tensors({"a": torch.ones(1)}, newer)
    words = r"format 99, written by regaug 7\.1"
    (tmp_path / "targets.safetensors").write_bytes(content)
    with pytest.raises(StoreError, match=words):
        read_targets(tmp_path)
    (tmp_path / "epoch-00001.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=words):
        Checkpoints(tmp_path).latest()


def test_a_checkpoint_of_another_training_is_refused_in_a_few_words(tmp_path):
    corpus.train(tmp_path)
    newest = max(tmp_path.iterdir())
    tensors, document = _tensors.read_tensors(newest)
    document["state"]["configuration"]["method"] = "a" * 100_000
    del document["crc32"]
    newest.write_bytes(_tensors.dump_tensors(tensors, document)[0])
    with pytest.raises(CheckpointError, match="belongs to another training") as caught:
        corpus.train(tmp_path, epochs=4)
    assert len(str(caught.value)) < 1000


def test_arrow_files_whose_notes_for_pandas_are_damaged_are_refused_by_name(tmp_path):
    table = pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0]})
    table = table.replace_schema_metadata({b"pandas": b'{"index_columns": [}'})
    with pa.ipc.new_file(tmp_path / "a.feather", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match=r"a\.feather cannot be read as a Feather or Arrow file"):
        read_table(tmp_path / "a.feather", target="y")


def test_a_parquet_file_that_claims_to_be_huge_is_refused(tmp_path, monkeypatch):
    pd.DataFrame({"y": np.arange(9.0)}).to_parquet(tmp_path / "a.parquet")

    def fail(path):
        raise pa.ArrowMemoryError("malloc of size 720575940379279680 failed")

    monkeypatch.setattr("pyarrow.parquet.read_table", fail)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parquet: malloc"):
        read_table(tmp_path / "a.parquet", target="y")


def test_a_study_without_its_targets_says_so(folder):
    (folder / "targets.safetensors").unlink()
    with pytest.raises(RegaugError, match="lacks targets"):
        Study.open(folder)

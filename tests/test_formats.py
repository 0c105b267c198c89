"""The page on file formats lists the files and the keys that are written."""

import json
import re
import zlib
from pathlib import Path

import pytest
from safetensors import safe_open

import regaug
from regaug import _tensors
from regaug.ensemble import diagnosis
from regaug.ensemble import folder as model_folder
from regaug.models import MLP
from regaug.runs import nets, store, unfinished
from regaug.runs.run import Run
from regaug.studies import facts
from regaug.training import Settings, fit

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "formats.md").read_text()
OF_NETWORKS = {"nets/", "checkpoints/"}


def listed(heading):
    """Return the first cells of the table below a heading."""
    section = PAGE.partition(f"\n{heading}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


@pytest.fixture(scope="module")
def data():
    return regaug.data.load("synthetic-sine", n=60, noise=0.3)


@pytest.fixture(scope="module")
def study(data, tmp_path_factory, shorten):
    """The folder of a study of a table."""
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch, 2)
        patch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge"))
        return regaug.compare(data, methods=["mixup"], trials=1, splits=2, out=out).folder


def first_line(folder):
    file = next(folder.glob("runs-*.jsonl"))
    return file.read_bytes().splitlines(keepends=True)[0]


def test_a_study_leaves_the_files_of_the_page(study):
    found = {f"{own.name}/" if own.is_dir() else own.name for own in study.iterdir()}
    found = {re.sub(r"^runs-.*\.jsonl$", "runs-*.jsonl", name) for name in found}
    assert found == set(listed("## The folder of a study")) - OF_NETWORKS
    assert (study.parent / "latest").exists()


def test_the_files_of_a_study_have_the_keys_of_the_page(study):
    assert list(json.loads((study / "study.json").read_text())) == listed("### `study.json`")
    lines = [json.loads(line) for line in first_line(study).splitlines()]
    assert list(lines[0]) == listed("### A line of `runs-*.jsonl`")


def test_every_key_of_a_record_is_on_the_page(study):
    lines = [
        json.loads(line)
        for file in study.glob("runs-*.jsonl")
        for line in file.read_text().splitlines()
    ]
    keys = {key for line in lines for key in line["record"]}
    assert keys == set(listed("### The record of a run"))
    runs = {key for line in lines for key in line["record"]["run"]}
    (said,) = re.findall(r"^\| `run` \| what was done: (.+)\(", PAGE, re.MULTILINE)
    assert runs == set(re.findall(r"`(\w+)`", said))


def test_a_line_ends_with_the_checksum_that_the_page_says(study):
    line = first_line(study)
    before, _, rest = line.rpartition(b',"crc32":')
    assert int(rest.rstrip(b"}\n")) == zlib.crc32(before)


def test_what_networks_leave_has_the_names_of_the_page():
    assert {f"{nets.NETS}/", f"{unfinished.CHECKPOINTS}/"} == OF_NETWORKS
    assert f"`{unfinished.CLAIM}`" in PAGE
    run = Run("own", "erm", 0, 0)
    assert nets.net_file(Path(), run) == Path(nets.NETS, f"{run.key}.safetensors")


def test_a_model_has_the_files_and_keys_of_the_page(data, tmp_path):
    regaug.fit(data, method="ridge").save(tmp_path / "model")
    names = {own.name for own in (tmp_path / "model").iterdir()}
    assert names == set(listed("## The folder of a model"))
    document = json.loads((tmp_path / "model" / "model.json").read_text())
    assert list(document) == listed("### `model.json`")


def test_a_checkpoint_has_the_keys_of_the_page(data, tmp_path):
    split = regaug.data.standardize(data.split(seed=0))
    fit(MLP(1), split, "erm", Settings(epochs=1), checkpoint=tmp_path)
    (file,) = tmp_path.glob("epoch-*.safetensors")
    assert re.fullmatch(r"epoch-\d{5}\.safetensors", file.name)
    with safe_open(file, framework="pt") as opened:
        document = json.loads(opened.metadata()["regaug"])
        assert "weights.block_1.linear.weight" in opened.keys()  # noqa: SIM118
    assert list(document) == listed("### Metadata of a checkpoint")


def test_the_versions_are_those_of_the_code():
    versions = dict(re.findall(r"^\| (`[^|]+) \| ([^|]+?) \| [^|]+ \|$", PAGE, re.MULTILINE))
    assert versions["`study.json`, `runs-*.jsonl`"] == str(store.FORMAT)
    assert versions["`*.safetensors`"] == f"{_tensors.FORMAT}, in the metadata"
    assert versions["`about.json`, `diagnosis.json`"] == str(facts.FORMAT) == str(diagnosis.FORMAT)
    own = f"`{model_folder.FORMAT}`, version {model_folder.VERSION}"
    assert versions["`model.json`"] == own


def test_a_study_can_be_read_without_the_library(study):
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    names = {}
    exec(compile(code, "formats.md", "exec"), names)
    records = list(names["runs_of"](study))
    assert {record["run"]["method"] for record in records} == {"erm", "mixup", "mean", "ridge"}

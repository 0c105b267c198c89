"""``regaug report``."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from regaug.cli.report import report
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import StoreError
from regaug.metrics import Scores
from regaug.runs.record import RunRecord, Sample
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.studies.config import StudyConfig
from regaug.studies.facts import describe, write_facts
from regaug.training.settings import Settings

ERRORS = {"erm": 1.0, "c-mixup": 0.9, "mean": 1.6}


def write_study(folder, name="houses"):
    """Write runs made of random numbers, as a study would leave them."""
    rng = np.random.default_rng(0)
    config = StudyConfig(name, ("erm", "c-mixup"), ("mean",), 1, 5, "rmse", 0.25, hidden=(8,))
    store = Store(folder, config.to_dict())
    for method, effect in ERRORS.items():
        for split in range(5):
            error = float(effect * rng.uniform(0.99, 1.01))
            scores = Scores(20, error, error, None, 0, 1 - error, None)
            settings, trial, curves = None, None, {}
            if method != "mean":
                settings, trial = Settings(epochs=3), 0
                curves = {part: [2.0, 1.5, error] for part in ("train", "validation", "test")}
            run = Run(name, method, split, 0, settings, trial)
            values = rng.normal(size=(20, 1))
            store.add(
                RunRecord(
                    run,
                    {"validation": scores, "test": scores},
                    "finished",
                    3,
                    3,
                    0.2,
                    (60, 20, 20),
                    {"regaug": "0.1.0"},
                    curves=curves,
                    sample=Sample(values.tolist(), (values + 0.1).tolist()),
                )
            )


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(report)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_a_report_is_made_from_the_folder_alone(run, tmp_path):
    write_study(tmp_path / "runs")
    write_facts(tmp_path / "runs", describe(make_manifold("line", n=100).split(), "one column"))
    out, svg = tmp_path / "report.html", tmp_path / "plots"
    result = run(tmp_path / "runs", "-o", out, "--svg", svg)
    assert result.exit_code == 0, result.output
    assert "c-mixup lowers RMSE" in result.output
    assert "R4: Only 20 validation rows" in result.output
    assert "one column" in out.read_text(encoding="utf-8")
    assert "singular-values.svg" in {file.name for file in svg.iterdir()}


def test_json_names_the_files(run, tmp_path):
    write_study(tmp_path / "runs")
    out = tmp_path / "report.html"
    result = run(tmp_path / "runs", "-o", out, "--json", "--svg", tmp_path / "svg")
    found = json.loads(result.output)
    assert found["report"] == str(out)
    assert found["recommended"] == found["use"] == "c-mixup"
    assert [check["code"] for check in found["checks"]] == ["R4"]
    assert len(found["svg"]) == 6
    assert "about.json" in out.read_text(encoding="utf-8")


def test_the_only_study_in_a_folder_is_found(run, tmp_path):
    write_study(tmp_path / "runs" / "houses")
    assert run(tmp_path / "runs", "-o", tmp_path / "r.html").exit_code == 0
    write_study(tmp_path / "runs" / "flats", name="flats")
    result = run(tmp_path / "runs", "-o", tmp_path / "r.html")
    assert isinstance(result.exception, StoreError)
    assert "flats" in str(result.exception)
    assert "houses" in str(result.exception)


def test_a_folder_without_a_study_is_told(run, tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        result = run(folder, "-o", tmp_path / "r.html")
        assert isinstance(result.exception, StoreError)
        assert "no study" in str(result.exception)
    assert list(tmp_path.iterdir()) == []

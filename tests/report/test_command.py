"""``regaug report``."""

import json

import pytest
import typer
from typer.testing import CliRunner

from regaug.cli.report import report
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import StoreError
from regaug.report import describe, write_facts


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(report)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_a_report_is_made_from_the_folder_alone(run, write_study, tmp_path):
    write_study(tmp_path / "runs")
    write_facts(tmp_path / "runs", describe(make_manifold("line", n=100).split(), "one column"))
    out, svg = tmp_path / "report.html", tmp_path / "plots"
    result = run(tmp_path / "runs", "-o", out, "--svg", svg)
    assert result.exit_code == 0, result.output
    assert "c-mixup lowers RMSE" in result.output
    assert "one column" in out.read_text(encoding="utf-8")
    assert "singular-values.svg" in {file.name for file in svg.iterdir()}


def test_json_names_the_files(run, write_study, tmp_path):
    write_study(tmp_path / "runs")
    out = tmp_path / "report.html"
    result = run(tmp_path / "runs", "-o", out, "--json", "--svg", tmp_path / "svg")
    found = json.loads(result.output)
    assert found["report"] == str(out)
    assert found["recommended"] == "c-mixup"
    assert len(found["svg"]) == 6
    assert "about.json" in out.read_text(encoding="utf-8")


def test_the_only_study_in_a_folder_is_found(run, write_study, tmp_path):
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

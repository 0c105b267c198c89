"""``regaug report``."""

import json
import os

import pytest

from regaug.data.datasets.synthetic import make_manifold
from regaug.studies.facts import describe, write_facts


@pytest.fixture
def run(run):
    return lambda *words: run("report", *words)


def test_a_report_is_made_from_the_folder_alone(run, write_study, tmp_path):
    write_study(tmp_path / "runs")
    write_facts(tmp_path / "runs", describe(make_manifold("line", n=100).split(), "one column"))
    out, svg = tmp_path / "report.html", tmp_path / "plots"
    result = run(tmp_path / "runs", "-o", out, "--svg", svg)
    assert result.exit_code == 0, result.output
    assert "c-mixup lowers RMSE" in result.output
    assert "R4: Only 20 validation rows" in result.output
    assert "one column" in out.read_text(encoding="utf-8")
    assert "singular-values.svg" in {file.name for file in svg.iterdir()}


def test_json_names_the_files(run, write_study, tmp_path):
    write_study(tmp_path / "runs")
    out = tmp_path / "report.html"
    result = run(tmp_path / "runs", "-o", out, "--json", "--svg", tmp_path / "svg")
    found = json.loads(result.output)
    assert found["report"] == str(out)
    assert found["recommended"] == found["use"] == "c-mixup"
    assert [check["code"] for check in found["checks"]] == ["R4"]
    assert len(found["svg"]) == 6
    assert "about.json" in out.read_text(encoding="utf-8")


def test_the_newest_study_of_a_table_is_found(run, write_study, tmp_path):
    table = tmp_path / "runs" / "houses"
    for number, name in enumerate(("quick", "full")):
        write_study(table / name)
        os.utime(table / name / "study.json", (1000 + number, 1000 + number))
    out = ("-o", tmp_path / "r.html", "--json")
    for folder in (table, tmp_path / "runs", f"{table}/"):
        assert json.loads(run(folder, *out).stdout)["study"] == str(table / "full")
    (table / "latest").symlink_to("quick")  # whoever has moved the folder, time tells nothing
    for folder in (table, tmp_path / "runs", table / "latest", table / "quick"):
        assert json.loads(run(folder, *out).stdout)["study"] == str(table / "quick")


def test_of_several_tables_one_must_be_named(run, write_study, tmp_path):
    write_study(tmp_path / "runs" / "houses" / "full")
    write_study(tmp_path / "runs" / "flats" / "full", name="flats")
    result = run(tmp_path / "runs", "-o", tmp_path / "r.html")
    assert result.exit_code == 1
    assert "studies of several tables" in result.stderr
    flats, houses = tmp_path / "runs" / "flats", tmp_path / "runs" / "houses"
    assert f"name one of {flats}, {houses}." in result.stderr


def test_a_folder_without_a_study_is_told(run, tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        result = run(folder, "-o", tmp_path / "r.html")
        assert result.exit_code == 1
        assert "There is no study" in result.stderr
    assert list(tmp_path.iterdir()) == []

"""``regaug data``."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from regaug import __version__
from regaug.cli.main import app
from regaug.data.datasets import files
from regaug.data.datasets.named import NAMES
from regaug.exceptions import DataNotFoundError

AIRFOIL = "airfoil/airfoil_self_noise.dat"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command on a machine that has airfoil alone and no network."""

    def no_network(address, target, *, checks, limit):
        raise DataNotFoundError(f"Could not fetch {address}: no network.")

    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    monkeypatch.setenv("REGAUG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "download", no_network)
    (tmp_path / "airfoil").mkdir()
    (tmp_path / AIRFOIL).write_text("numbers")
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_list_prints_a_plain_line_for_every_name(run, tmp_path):
    result = run("data", "list")
    assert result.exit_code == 0
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [row[0] for row in rows] == list(NAMES)
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["airfoil"] == [
        *("table", "yes", str(tmp_path / AIRFOIL), "regaug data fetch airfoil"),
    ]
    assert by_name["diabetes"] == ["table", "yes", "-", "comes with scikit-learn"]
    assert by_name["echo"][:3] == ["video", "no", "-"]
    assert "agreement" in by_name["echo"][3]


def test_list_as_json_says_the_same(run, tmp_path):
    result = run("data", "list", "--json")
    rows = json.loads(result.stdout)
    assert [row["name"] for row in rows] == list(NAMES)
    assert rows[1] == {
        "name": "airfoil",
        "task": "table",
        "here": True,
        "path": str(tmp_path / AIRFOIL),
        "get": "regaug data fetch airfoil",
        "license": "CC BY 4.0",
        "citation": "Brooks, Pope, Marcolini (1989): Airfoil Self-Noise and Prediction",
        "origin": "UCI Machine Learning Repository, dataset 291 (NASA)",
    }


def test_list_on_a_terminal_is_a_table(run, monkeypatch, capsys):
    from regaug.cli import data

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    data.list_()
    printed = capsys.readouterr().out
    assert "where, or how to get it" in printed
    assert "\t" not in printed
    assert all(name in printed for name in NAMES)


def test_path_prints_the_path_alone(run, tmp_path):
    result = run("data", "path", "airfoil")
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / AIRFOIL}\n")
    as_json = json.loads(run("data", "path", "airfoil", "--json").stdout)
    assert as_json == {"name": "airfoil", "path": str(tmp_path / AIRFOIL)}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no2", "no2 is not on this disk. How to get it: regaug data fetch no2"),
        ("diabetes", "diabetes has no file: it comes with scikit-learn."),
        ("synthetic-sine", "synthetic-sine has no file"),
    ],
)
def test_path_of_what_has_none_fails_in_one_line(run, name, words):
    result = run("data", "path", name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_fetch_says_where_things_are(run, tmp_path):
    result = run("data", "fetch", "airfoil", "diabetes", "airfoil")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"airfoil\t{tmp_path / AIRFOIL}",
        "diabetes\tcomes with scikit-learn",
    ]


def test_fetch_puts_a_file_into_the_cache(run, tmp_path, monkeypatch):
    def pretend(address, target, *, checks, limit):
        target.parent.mkdir(parents=True)
        target.write_text(address)
        return target

    monkeypatch.setattr(files, "download", pretend)
    target = tmp_path / "cache" / "no2" / "547_no2.tsv.gz"
    assert run("data", "fetch", "no2").stdout == f"no2\t{target}\n"
    assert target.is_file()


def test_fetch_goes_on_after_a_failure_and_exits_with_one(run, tmp_path):
    result = run("data", "fetch", "no2", "echo", "airfoil")
    assert result.exit_code == 1
    assert result.stdout == f"airfoil\t{tmp_path / AIRFOIL}\n"
    first, second = result.stderr.splitlines()
    assert first.startswith("Error: no2: Could not fetch https://github.com/EpistasisLab/pmlb/")
    assert "Put it at no2/547_no2.tsv.gz in a folder" in first
    assert "agreement" in second


def test_fetch_as_json_has_the_errors_in_it(run, tmp_path):
    result = run("data", "fetch", "no2", "airfoil", "--json")
    assert result.exit_code == 1
    no2, airfoil = json.loads(result.stdout)
    assert no2["paths"] == []
    assert "no network" in no2["error"]
    assert airfoil == {"name": "airfoil", "paths": [str(tmp_path / AIRFOIL)], "error": None}


@pytest.mark.parametrize(
    "arguments",
    [
        ("data", "path", "airfoyl"),
        ("data", "fetch", "airfoil", "airfoyl"),
    ],
)
def test_a_misspelled_name_is_wrong_usage_and_nothing_is_done(run, arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Did you mean 'airfoil'?" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [("data", "fetch"), ("data", "path"), ("data", "lost"), ("data", "list", "--jsn"), ("lost",)],
)
def test_wrong_usage_exits_with_two(run, arguments):
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("command", ["list", "fetch", "path"])
def test_help_has_an_example(run, command):
    result = run("data", command, "--help")
    assert result.exit_code == 0
    assert "Example: " in result.stdout
    assert f"regaug data {command}" in result.stdout
    assert "--json" in result.stdout


def test_the_version_is_printed(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"regaug {__version__}\n")


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "regaug.cli.main", "data", "list"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(ran.stdout.splitlines()) == len(NAMES)

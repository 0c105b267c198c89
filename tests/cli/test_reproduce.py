"""``regaug reproduce`` as a user runs it, on a made-up Airfoil."""

import json
import re

import pytest
from typer.testing import CliRunner

from regaug.cli.main import app
from regaug.runs.store import Store


def reproduce(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_a_cell_is_measured_kept_and_not_done_twice(made_up, tmp_path):
    options = ("--datasets", "airfoil", "--methods", "mixup", "--seeds", 1, "--max-minutes", 0.04)
    first = reproduce("table3", *options, "-j", 1, "--out", tmp_path, "--json")
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)[0]
    assert found["data"] == "airfoil"
    assert "Cut short" in found["size"]
    lines = {line["label"]: line for line in found["paper"]}
    assert lines["erm"]["figures"][0]["published"] == "2.901 ± 0.067"
    assert lines["erm"]["epochs"] < lines["erm"]["of_epochs"] == 100
    store = Store.open(tmp_path / "reproduction")
    before = store.done()
    again = reproduce("in-distribution", *options, "-j", 1, "--out", tmp_path)
    assert again.exit_code == 0, again.output
    assert before <= store.done()
    assert "of them done" in again.stderr
    assert "Made by: regaug reproduce in-distribution --datasets airfoil" in again.stdout
    assert "published" not in again.stdout.splitlines()[1]
    *_, last = again.stdout.splitlines()
    assert re.match(r"airfoil: (all \d+|\d+ of \d+) runs are done, cut to at most \d+ epoch", last)
    assert "For the whole, add --whole, without --epochs (about " in last
    assert found["left"].startswith("airfoil: ")
    kept = tmp_path / "reproduction" / "tables" / "in-distribution-airfoil.json"
    assert json.loads(kept.read_text())["paper"][0]["label"] == "erm"


def test_without_data_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    done = reproduce("in-distribution", "--datasets", "airfoil", "--out", tmp_path)
    assert done.exit_code == 1
    assert "airfoil is not on this disk. To get it: regaug data fetch airfoil" in done.stderr
    assert not (tmp_path / "reproduction").exists()


def test_the_published_settings_are_shown():
    done = reproduce("table9")
    assert done.exit_code == 0
    assert "0.975" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table12",), "Unknown table or figure 'table12'"),
        (("time", "--datasets", "no2"), "Unknown data set of the paper's table 2"),
        (("batches", "--datasets", "airfoil", "--methods", "fooma"), "Unknown method 'fooma'"),
    ],
)
def test_unknown_names_are_wrong_usage(arguments, message, made_up, tmp_path):
    done = reproduce(*arguments, "--out", tmp_path)
    assert done.exit_code == 2
    assert message in done.stderr

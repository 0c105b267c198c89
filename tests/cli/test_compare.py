"""``regaug compare`` and what it leaves on the disk."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from regaug.cli.live import Live
from regaug.cli.main import app
from regaug.ensemble import Ensemble
from regaug.studies import compare
from regaug.studies.study import Study


@pytest.fixture
def houses(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.uniform(30, 120, 90)
    frame = pd.DataFrame({"size": size, "city": rng.choice(["Oslo", "Rome"], 90)})
    frame["price"] = 3 * size + 40 * (frame["city"] == "Rome") + rng.normal(0, 10, 90)
    path = tmp_path / "houses.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a tiny study; further arguments come last."""
    monkeypatch.setattr(compare, "EPOCHS", 4)

    def invoke(*arguments):
        small = ["--trials", "2", "--splits", "2", "-m", "erm,mixup", "-j", "1"]
        out = ["--out", str(tmp_path / "runs")]
        return CliRunner().invoke(app, ["compare", *map(str, arguments), *small, *out])

    return invoke


def test_it_prints_a_leaderboard_and_a_verdict(run, houses):
    result = run(houses, "--target", "price")
    assert result.exit_code == 0, result.output
    for name in ("erm", "mixup", "ridge", "boosting", "mean"):
        assert f"\n {name}" in result.stdout
    assert "recommended" in result.stdout or "keep it plain" in result.stdout
    assert "14 runs; this takes about" in result.stderr
    assert "90 rows" in result.stderr


def test_it_leaves_a_report_a_model_and_every_run(run, houses, tmp_path):
    run(houses, "--target", "price")
    folder = tmp_path / "runs" / "houses"
    assert "<html" in (folder / "report.html").read_text()
    study = Study.open(folder)
    assert set(study.chosen) == {"erm", "mixup", "mean", "ridge", "boosting"}
    model = Ensemble.load(folder / "model")
    assert model.method == study.verdict.recommended
    assert len(model.predict(houses)) == 90


def test_the_same_command_does_nothing_twice(run, houses):
    first = run(houses, "--target", "price")
    second = run(houses, "--target", "price")
    assert "14 runs, 14 of them done" in second.stderr
    assert second.stdout == first.stdout


def test_another_command_on_the_same_folder_is_refused(run, houses):
    run(houses, "--target", "price")
    result = run(houses, "--target", "price", "--seed", "1")
    assert result.exit_code == 1
    assert "seed was 0 and is 1" in result.stderr


def test_json_says_the_same(run, houses, tmp_path):
    result = run(houses, "--target", "price", "--json")
    (found,) = json.loads(result.stdout)
    study = Study.open(tmp_path / "runs" / "houses")
    assert found["verdict"] == study.verdict.text
    assert [row["name"] for row in found["rows"]] == [row.name for row in study.comparison.rows]
    assert found["model"] == str(tmp_path / "runs" / "houses" / "model")


def test_without_data_it_takes_the_built_in_table(run, tmp_path):
    result = run()
    assert result.exit_code == 0, result.output
    assert (tmp_path / "runs" / "diabetes" / "report.html").exists()


def test_the_kind_of_split_can_be_chosen(run, houses, tmp_path):
    result = run(houses, "--target", "price", "--group", "city", "--split", "random")
    assert result.exit_code == 0, result.output
    result = run("diabetes", "--split", "time")
    assert result.exit_code == 1
    assert "knows how it is split" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["houses.csv"], "There is no file"),
        (["diabetes", "--target", "y"], "knows its columns"),
        (["diabetes", "--metric", "rsme"], "`metric` must be one of"),
    ],
)
def test_wrong_use_is_told_in_one_line(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_misspelled_method_gets_a_suggestion(tmp_path):
    result = CliRunner().invoke(app, ["compare", "-m", "fomma", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "Did you mean 'foma'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_lines_in_a_pipe_say_how_far_it_is(capsys, monkeypatch, houses):
    from collections import Counter

    from regaug.data import read_table

    table = read_table(houses, target="price")
    plan = compare.make_plan(table, methods=["erm"], trials=2, splits=2)
    monkeypatch.setattr("regaug.cli.live._PAUSE", 0.0)
    scores = {"validation": {"rmse": 2.0}}
    with Live(plan, Counter()) as live:
        live.update([("key", {"method": "erm"}, {"scores": scores})])
    assert "1 of 10 runs, about" in capsys.readouterr().err

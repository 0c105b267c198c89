"""``regaug fit``."""

import errno
import json
import os
import re
import signal
import time
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import regaug
from regaug import _files
from regaug.cli import options
from regaug.cli.main import app
from regaug.data import load, read_table
from regaug.ensemble import Ensemble, blend, entry
from regaug.formatting import number
from regaug.training import Settings, recipe

# Modules whose names are those of what they hold.
command, ensemble_fit = import_module("regaug.cli.fit"), import_module("regaug.ensemble.fit")
QUICK = ("--method", "erm", "--members", 2)


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("nothing must be trained")

    monkeypatch.setattr(entry, "fit", refuse)


@pytest.fixture
def small_blend(monkeypatch):
    """A blend that takes seconds: three folds, a few short trainings, two baselines."""
    monkeypatch.setattr(blend, "BASELINES", ("ridge", "gp"))
    monkeypatch.setattr(blend, "METHODS", ("mixup",))
    monkeypatch.setattr(blend.Amounts, "of", lambda rows, **quick: blend.Amounts(3, 2, 2))
    usual = recipe.default_recipe

    def short(rows):
        return replace(usual(rows), epochs=2)

    monkeypatch.setattr(recipe, "default_recipe", short)


def test_the_model_is_the_one_that_is_fitted_in_memory(files, houses, model):
    table = read_table(houses, target="price", drop="number")
    own = regaug.fit(table, method="erm", members=2, seed=0).predict(files / "new.csv")
    read = Ensemble.load(model).predict(files / "new.csv")
    assert torch.equal(read.mean, own.mean)
    assert torch.equal(read.spread, own.spread)


def test_auto_is_the_same_for_the_command_and_for_python(run, tmp_path, small_blend):
    result = run("fit", "diabetes", "-j", 1, "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert "18 runs; this takes about" in result.stderr
    model, own = Ensemble.load(tmp_path / "model"), regaug.fit(load("diabetes"))
    assert result.stdout.startswith(f"{own.describe()}. On ")
    assert model.shares == own.shares
    rows = load("diabetes").x[:5]
    assert torch.equal(model.predict(rows).mean, own.predict(rows).mean)


def test_json_has_the_share_of_everything(run, tmp_path, small_blend):
    result = run("fit", "diabetes", "-j", 1, "--out", tmp_path / "model", "--json")
    found = json.loads(result.stdout)
    assert found["method"] == "auto"
    assert sum(found["shares"].values()) == pytest.approx(1.0)
    assert found["models"] == len(Ensemble.load(tmp_path / "model"))


def test_a_baseline_may_be_named(run, tmp_path):
    result = run("fit", "diabetes", "--method", "ridge", "-j", 1, "--out", tmp_path / "model")
    assert result.stdout.startswith("ridge: 8 models. On ")


def test_it_says_how_good_the_model_is_and_how_to_use_it(run, tmp_path):
    folder = tmp_path / "models" / "first"
    result = run("fit", "synthetic-sine", *QUICK, "--out", folder)
    assert result.exit_code == 0
    assert sorted(file.name for file in folder.iterdir()) == ["model.json", "model.safetensors"]
    scores = Ensemble.load(folder).held_out
    first, second = result.stdout.splitlines()
    assert first.startswith(f"erm: 2 nets. On {scores.n} rows that were put aside: RMSE ")
    assert f"RMSE {number(scores.rmse)}" in first
    assert f"regaug predict {folder} NEW.csv" in second


def test_json_says_the_same_and_a_model_is_replaced(run, tmp_path):
    for seed in (0, 1):
        result = run(
            *("fit", "diabetes", *QUICK, "--seed", seed, "--out", tmp_path / "model", "--json")
        )
        assert result.exit_code == 0
        found = json.loads(result.stdout)
        assert found["model"] == str(tmp_path / "model")
        assert found["replaces"] == ("own" if seed else "nothing")
        assert (found["method"], found["models"], found["shares"]) == ("erm", 2, {"erm": 1.0})
        assert found["held_out"] == Ensemble.load(tmp_path / "model").held_out.to_dict()
    assert 30 < found["held_out"]["rmse"] < 80


@pytest.mark.usefixtures("no_training")
def test_a_file_needs_a_target(fails, houses, tmp_path):
    line = fails("fit", houses, "--out", tmp_path / "model", code=2)
    assert f"Say which column of {houses} to predict: --target NAME." in line


@pytest.mark.usefixtures("no_training")
def test_a_folder_with_other_things_is_refused_before_the_training(fails, houses, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "notes.txt"):
        line = fails("fit", houses, "--target", "price", "--out", out, "--force")
        assert re.search(r"`--out` must be a (new )?folder", line)
        assert str(out) in line
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--target", "prise"), "Did you mean 'price'?"),
        (("--target", "price", "--group", "citty"), "Did you mean 'city'?"),
        (("--target", "price", "--time", "solt"), "Did you mean 'sold'?"),
        (("--target", "price", "--drop", "streets"), "Did you mean 'street'?"),
        (("--target", "price", "--group", "price"), "must differ"),
        (("--target", "price", "--method", "foma-ro"), "Did you mean 'foma-rho'?"),
    ],
)
def test_a_misspelled_name_is_wrong_usage(fails, houses, tmp_path, arguments, hint):
    assert hint in fails("fit", houses, *arguments, "--out", tmp_path / "model", code=2)
    assert not (tmp_path / "model").exists()


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize("arguments", [(), ("--members", "few"), ("--color", "red")])
def test_wrong_usage_exits_with_two(run, houses, arguments):
    assert run("fit", houses, "--target", "price", *arguments).exit_code == 2


def test_a_full_disk_leaves_the_model_that_was_there(run, model, houses, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = {file.name: file.read_bytes() for file in model.iterdir()}
    monkeypatch.setattr(_files.os, "replace", full)
    result = run("fit", houses, "--target", "price", *QUICK, "--seed", 5, "--out", model)
    *_, line = result.stderr.splitlines()
    assert (result.exit_code, line[:7]) == (1, "Error: ")
    assert "No space left on device" in line
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before


def test_the_summary_and_a_leak_in_it_come_before_the_training(run, houses, tmp_path):
    frame = pd.read_csv(houses).assign(dollars=lambda f: [f"${v:,.2f}" for v in f["price"] * 1.1])
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "--target", "price", *QUICK, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    first, second, *rest = result.stderr.splitlines()
    assert first.startswith("t.csv: 140 rows")
    assert second.startswith("Likely leak: 'dollars' is, but for its unit, the target 'price'.")
    assert any("'dollars' read as numbers ('$" in line for line in rest)


def test_the_standard_input_is_a_table(houses, tmp_path):
    words = ["fit", "-", "--target", "price", *map(str, QUICK), "--out", str(tmp_path / "model")]
    result = CliRunner().invoke(app, words, input=houses.read_bytes())
    assert result.exit_code == 0, result.output
    assert "standard input: 140 rows" in result.stderr
    result = CliRunner().invoke(
        app, ["fit", "-", "--out", str(tmp_path / "m")], input=b"a,b\n1,2\n"
    )
    assert "Say which column of the standard input to predict" in result.stderr


def test_it_says_how_long_it_takes_and_what_the_time_did_not_allow(run, tmp_path, small_blend):
    words = ("fit", "diabetes", "-j", 1, "--out", tmp_path / "model", "--max-minutes", 1e-9)
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "18 runs; this takes about" in result.stderr
    assert "The time was up before all was tried; left out: " in result.stdout
    notes = json.loads(run(*words, "--json").stdout)["notes"]
    assert "gp, mixup" in notes[0]
    result = run("fit", "synthetic-sine", *QUICK, "--out", tmp_path / "nets")
    assert "At most 200 epochs; this takes about" in result.stderr


def test_no_more_time_is_left_than_there_is(monkeypatch):
    told = []
    words = {"method": "erm", "members": 2, "max_minutes": 0.02, "progress": told.append}
    monkeypatch.setattr(ensemble_fit, "estimate_seconds", lambda runs, problems: 1e6)
    regaug.fit(load("synthetic-sine", n=60), **words)
    assert told[0].seconds_left <= 1.2


def test_the_pace_of_epochs_is_not_that_of_what_comes_before_them(monkeypatch):
    told, now = [], iter([0.0, 300.0, 301.0, 302.0])
    monkeypatch.setattr(ensemble_fit, "time", SimpleNamespace(monotonic=lambda: next(now)))
    split = load("synthetic-sine", n=60).split(seed=0)
    with ensemble_fit._told(told.append, "erm", split, Settings(epochs=10), 2) as tell:
        for _ in range(3):
            tell()
    assert [own.seconds_left for own in told[1:]] == [2700.0, 8.0, 7.0]


def test_something_is_said_at_once_of_a_large_table(run, houses, tmp_path, monkeypatch):
    monkeypatch.setattr(options, "_LARGE", 1)
    monkeypatch.setattr(command, "_LOOK", 0.01)
    monkeypatch.setattr(command, "_PAUSE", 0.05)
    real = entry.fit

    def slow(*given, **options):
        time.sleep(0.3)  # as columns of millions of rows take to be encoded
        return real(*given, **options)

    monkeypatch.setattr(entry, "fit", slow)
    words = ("fit", houses, "--target", "price", *QUICK, "--out", tmp_path / "model")
    said = run(*words).stderr.splitlines()
    assert said[0] == f"Reading {houses}: 0 MB."
    assert any(re.fullmatch(r"Getting the rows ready: .* passed\.", line) for line in said)


def test_a_report_is_written_beside_the_model(run, fails, houses, tmp_path):
    words = ("fit", houses, "--target", "price", "--method", "ridge", "-j", 1)
    page = tmp_path / "model.html"
    result = run(*words, "--out", tmp_path / "model", "--report", page)
    assert result.exit_code == 0, result.output
    assert f"The report is in {page}." in result.stdout
    assert 'id="plot-model-importance"' in page.read_text(encoding="utf-8")
    result = run(*words, "--out", tmp_path / "model", "--report", page, "--json")
    found = json.loads(result.stdout)
    assert found["report"] == str(page)
    assert found["diagnosis"]["importances"]["columns"][0]["column"] == "size"
    assert "true" not in found["diagnosis"]
    line = fails(*words, "--out", tmp_path / "other", "--report", houses)
    assert "`--report` must end in .html" in line
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_saves_the_best_so_far(run, tmp_path, small_blend, monkeypatch, jobs):
    monkeypatch.setattr("regaug.ensemble.candidates.WORTH_PROCESSES", 0.0)
    finished = []

    def press(self, seconds, method=""):
        if method == "ridge" and not finished:
            finished.append(method)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("regaug.ensemble.candidates.Folds._tell", press)
    before = signal.getsignal(signal.SIGINT)
    shown = run("fit", "diabetes", "-j", jobs, "--out", tmp_path / "model")
    assert finished == ["ridge"]
    assert signal.getsignal(signal.SIGINT) is before
    assert "Stopping: what is under way ends, and the best so far is saved" in shown.stderr
    assert "It was stopped: this is the best that was found until then." in shown.stdout
    assert "left out: " in shown.stdout
    model = Ensemble.load(tmp_path / "model")
    assert model.predict(load("diabetes").x[:3]).mean.isfinite().all()

"""A verdict one can follow: the command, the lines of Python and the study make one model."""

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from regaug.cli.main import app
from regaug.data import read_table
from regaug.ensemble import Ensemble, blend
from regaug.report.recipe import command_recipe, python_recipe
from regaug.studies import study as module
from regaug.studies.compare import compare
from regaug.studies.study import Study
from regaug.training import recipe
from regaug.training.baselines import boosting, trees

METHODS = ("erm", "mixup", "ada")
USES = ("auto", "nets", "ridge", "boosting", "trees", "gp", "mean", *METHODS)


@pytest.fixture(scope="module", autouse=True)
def _short():
    """Short trainings and small baselines, wherever they are fitted."""
    usual = recipe.default_recipe
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe, "default_recipe", lambda rows: replace(usual(rows), epochs=3))
        patch.setattr(blend.Amounts, "of", lambda rows, quick=False: blend.Amounts(3, 2, 1 - quick))
        patch.setattr(blend, "METHODS", ("mixup",))
        for place, name, value in (
            *((trees, "TREES", 4), (trees, "FEWEST_TREES", 2)),
            *((boosting, name, 3) for name in ("FIRST", "ROUND", "MOST_TREES")),
        ):
            patch.setattr(place, name, value)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with houses.csv and a study of it; the price is skewed, and fitted by its log."""
    place = tmp_path_factory.mktemp("mine")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["size", "age"])
    frame["price"] = np.exp(1.5 * frame["size"] + 0.1 * rng.normal(size=60))
    frame.to_csv(place / "houses.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        compare("houses.csv", target="price", methods=METHODS, trials=2, splits=2, out="runs")
    return place


def use(patch, name):
    """Let every verdict say that this is to be used."""
    make = module.make_verdict

    def verdict(comparison, **others):
        recommended = name if name in METHODS else "erm"
        return replace(make(comparison, **others), use=name, recommended=recommended)

    patch.setattr(module, "make_verdict", verdict)


def same(one, other, frame):
    mine, its = (model.predict(frame, interval=0.8) for model in (one, other))
    return all(torch.equal(getattr(mine, p), getattr(its, p)) for p in ("mean", "low", "high"))


@pytest.mark.parametrize("name", USES)
def test_what_is_recommended_is_made_by_all_three(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    use(monkeypatch, name)
    study = Study.open("runs/houses")
    assert study.advised == name
    table = read_table("houses.csv", target="price")
    expected = study.model(table)
    result = CliRunner().invoke(app, [*shlex.split(command_recipe(study))[1:], "-j", "1"])
    assert result.exit_code == 0, result.output
    model = Ensemble.load("model")
    assert model.describe() == expected.describe()
    assert same(model, expected, table.frame)
    found = {}
    exec(python_recipe(study), found)
    assert same(found["model"], expected, table.frame)
    words = ["predict", "model/", "houses.csv", "-o", f"predicted-{name}.csv"]
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize("name", METHODS)
def test_a_study_that_was_not_kept_gives_the_settings_themselves(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    use(monkeypatch, name)
    study = Study.open("runs/houses")
    found = {}
    exec(python_recipe(replace(study, folder=None)), found)
    table = read_table("houses.csv", target="price")
    assert same(found["model"], study.model(table), table.frame)


def test_the_settings_are_those_that_the_study_has_found(folder, monkeypatch):
    monkeypatch.chdir(folder)
    use(monkeypatch, "mixup")
    study, table = Study.open("runs/houses"), read_table("houses.csv", target="price")
    # Some recipes fit the logarithm, and the methods are tried with drawn settings.
    run = replace(study.best["mixup"], log=True)
    own = replace(run.settings, learning_rate=0.0123, method_settings={"alpha": 0.321})
    tuned = replace(study, best={**study.best, "mixup": replace(run, settings=own)})
    model = tuned.model(table, members=2)
    assert model.settings.learning_rate == 0.0123
    assert model.settings.method_settings["alpha"] == 0.321
    assert model.scale.log
    assert not same(model, study.model(table, method="erm", members=2), table.frame)


@pytest.mark.parametrize("name", ["auto", "mixup"])
def test_the_model_in_the_folder_is_that_of_the_quick_command(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, name)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["size", "age"])
    frame["price"] = frame["size"] + 0.1 * rng.normal(size=40)
    frame.to_csv("flats.csv", index=False)
    compare("flats.csv", target="price", methods=METHODS, trials=1, splits=1, out="runs")
    study = Study.open("runs/flats")
    words = [*shlex.split(command_recipe(study))[1:], "-j", "1", "--quick"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert same(Ensemble.load("model"), Ensemble.load(study.folder / "model"), frame)


def test_a_method_of_the_study_may_be_named(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["fit", "houses.csv", "--target", "price", "--from", "runs/houses", "--method", "ada"]
    result = CliRunner().invoke(app, [*words, "--members", "2", "--out", "ada"])
    assert result.exit_code == 0, result.output
    table = read_table("houses.csv", target="price")
    expected = Study.open("runs/houses").model(table, method="ada", members=2)
    assert same(Ensemble.load("ada"), expected, table.frame)


def test_the_terminal_and_the_page_say_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder)
    use(monkeypatch, "ada")
    study = Study.open("runs/houses")
    result = CliRunner().invoke(app, ["report", "runs/houses", "-o", "page.html"])
    command = command_recipe(study)
    words = f"houses.csv --target price --from {study.folder} --out model/"
    assert command == f"regaug fit {words}"
    assert study.folder.parent == Path("runs/houses")
    assert f"  {command}\n" in result.stdout
    for line in filter(None, python_recipe(study).splitlines()):
        assert f"  {line}\n" in result.stdout
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert f'id="command">{command}\n' in page

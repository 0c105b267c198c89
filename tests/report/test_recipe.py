"""What a report gives to copy."""

import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from torch import nn

from regaug import methods
from regaug.data.datasets.synthetic import make_manifold
from regaug.report.recipe import about_model, command_recipe, net_recipe, python_recipe
from regaug.studies.facts import describe
from regaug.training.settings import Settings


def using(study, use):
    """The same study with another verdict."""
    verdict = replace(study.verdict, use=use, recommended=use if use in study.best else "erm")
    return replace(study, verdict=verdict)


@pytest.fixture
def make_facts():
    def make(**given):
        return describe(make_manifold("line", n=100).split(), "", given=given)

    return make


def test_the_script_runs_and_has_the_chosen_settings(make_study, make_facts, tmp_path, capsys):
    def give_settings(record):
        run = record.run
        if run.is_baseline:
            return record
        own = methods.get(run.method).settings()
        settings = Settings(
            epochs=2, learning_rate=0.0123456789, batch_size=16, method_settings=own
        )
        return replace(record, run=replace(run, log=True, settings=settings))

    rng = np.random.default_rng(0)
    file = tmp_path / "my \"houses\" 'here'.csv"
    frame = pd.DataFrame(rng.uniform(1.0, 2.0, (60, 3)), columns=["a", 'the "price"', "c"])
    frame.to_csv(file, index=False)
    facts = make_facts(source=str(file), target=['the "price"'], drop=["c"])
    found = {}
    exec(net_recipe(make_study(change=give_settings, facts=facts), "c-mixup"), found)
    assert float(capsys.readouterr().out) == found["result"].scores["test"].rmse
    assert found["result"].method == "c-mixup"
    settings = found["result"].settings
    assert (settings.epochs, settings.batch_size) == (2, 16)
    assert settings.learning_rate == 0.0123457
    assert dict(settings.method_settings) == methods.get("c-mixup").settings()
    assert found["split"].log
    assert found["result"].weights["block_1.linear.weight"].shape[1] == 1


def test_a_place_that_no_stack_has_is_trained_by_itself(make_study, make_facts):
    def at_both(record):
        settings = record.run.settings and Settings(method_settings={"place": methods.BOTH})
        return replace(record, run=replace(record.run, settings=settings))

    script = net_recipe(make_study(change=at_both, facts=make_facts()), "c-mixup")
    assert "net = MLP(" in script
    assert "fit_many" not in script


def test_a_command_is_quoted_for_the_shell(make_study, make_facts):
    facts = make_facts(source="my houses.csv", target=["price; rm -rf /", "rent"], group="$city")
    words = shlex.split(command_recipe(using(make_study(facts=facts), "gp")))
    assert words[:3] == ["regaug", "fit", "my houses.csv"]
    assert words[3:9] == ["--target", "price; rm -rf /", "--target", "rent", "--group", "$city"]
    assert words[9:] == ["--method", "gp", "--out", "model/"]


def test_a_named_data_set_is_loaded_by_its_name(make_study):
    study = using(make_study(name="diabetes"), "auto")
    assert 'data = regaug.data.load("diabetes")' in python_recipe(study)
    assert 'data = regaug.data.load("diabetes")' in net_recipe(study, "erm")
    assert command_recipe(study) == "regaug fit diabetes --method auto --out model/"


def test_what_is_not_known_is_left_to_the_reader(make_study, make_facts):
    for facts in (None, make_facts()):
        study = using(make_study(facts=facts), "ridge")
        assert 'read_table("DATA.csv", target="TARGET")' in python_recipe(study)
        assert 'read_table("DATA.csv", target="TARGET")' in net_recipe(study, "erm")
        assert "fit DATA.csv --target TARGET" in command_recipe(study)


def test_a_named_method_has_the_settings_of_the_study(make_study, tmp_path):
    study = using(make_study(), "c-mixup")
    assert command_recipe(study) == ""  # nobody has kept the settings
    script = python_recipe(study)
    assert "learning_rate=0.00123456789," in script  # every digit
    assert 'regaug.fit(data, method="c-mixup", settings=settings)' in script
    kept = replace(study, folder=tmp_path / "runs of mine")
    assert shlex.split(command_recipe(kept))[-4:-2] == ["--from", str(tmp_path / "runs of mine")]
    lines = [line for line in python_recipe(kept).splitlines() if line]
    assert len(lines) == 4  # the import, and three
    assert lines[2] == f'model = regaug.Study.open("{kept.folder}").model(data)'


def test_what_the_model_in_the_folder_lacks_is_said(make_study, tmp_path):
    study = replace(make_study(), folder=tmp_path)
    assert about_model(study) == ""
    (tmp_path / "model").mkdir()
    large = replace(study.config, rows=5_000, seed=3)
    for use, words in {"c-mixup": "in the same way", "gp": "three folds", "auto": "plain"}.items():
        assert words in about_model(using(study, use))
        said = about_model(using(replace(study, config=large), use))
        assert "at most 2,000 rows" in said
        assert "--quick --seed 3" in said


def test_the_script_of_a_network_of_ones_own_runs(make_study, capsys):
    def give_settings(record):
        settings = record.run.settings and Settings(epochs=2, batch_size=16)
        return replace(record, run=replace(record.run, settings=settings))

    splits = [make_manifold("line", n=60).split()]
    script = net_recipe(make_study(change=give_settings, hidden=()), "mixup")
    assert "Problem(splits, model=make_net)" in script
    found = {"splits": splits, "make_net": lambda split: nn.Linear(1, 1)}
    exec(script, found)
    assert float(capsys.readouterr().out) == found["result"].scores["test"].rmse
    assert (found["result"].method, found["result"].settings.epochs) == ("mixup", 2)
    assert command_recipe(make_study(hidden=())) == python_recipe(make_study(hidden=())) == ""


def test_splits_in_a_file_are_no_table(make_study, make_facts):
    facts = make_facts(source="/home/me/study.py:problem")
    study = using(make_study(facts=facts), "auto")
    assert command_recipe(study) == python_recipe(study) == ""
    script = net_recipe(study, "erm")
    assert 'regaug.Problem.from_file("/home/me/study.py:problem")' in script
    assert "data.load" not in script


def test_the_script_of_a_named_data_set_with_its_network_names_it(make_study):
    script = net_recipe(make_study(hidden=(), name="electricity"), "mixup")
    assert 'problem = regaug.Problem.named("electricity")' in script

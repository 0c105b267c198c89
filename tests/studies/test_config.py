"""What a study is: kept in its folder, and told from other things there."""

import json
from dataclasses import fields, replace

import pytest

from regaug.exceptions import ArgumentError, StoreError
from regaug.methods import Reach
from regaug.runs.run import run_key
from regaug.studies.config import StudyConfig

CONFIG = StudyConfig(
    problem="houses",
    methods=("erm", "mixup"),
    baselines=("mean",),
    trials=3,
    splits=2,
    metric="rmse",
    test_share=0.25,
    hidden=(8, 8),
)
CHANGES = {
    "problem": "flats",
    "methods": ("erm",),
    "baselines": (),
    "trials": 4,
    "splits": 3,
    "metric": "mae",
    "test_share": 0.5,
    "independent": True,
    "search": "tpe",
    "seed": 1,
    "recipes": 16,
    "recipe": "b",
    "hidden": (),
    "rows": 9,
    "train_rows": 5,
    "columns": 9,
    "target_names": ("price", "tax"),
    "places": ("input", "hidden"),
    "pairs_pass": False,
    "checksum": "a",
    "network": "a",
    "reference": "mixup",
    "kind": "estimator",
    "model": "trees",
    "keep_integers": True,
    "repeats": 2,
    "epochs": (30, 30),
    "fair": "time",
    "rungs": (8, 15),
    "categories": True,
}


def test_a_configuration_comes_back_from_json():
    for config in (CONFIG, *(replace(CONFIG, **{name: v}) for name, v in CHANGES.items())):
        assert StudyConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("places", "reach"),
    [
        (("input", "layer"), Reach()),
        (("input",), Reach(layers=False)),
        (("hidden_1", "hidden_2"), Reach(inputs=False)),
        (("hidden_1", "input"), Reach()),
        ((), Reach(inputs=False, layers=False)),
    ],
)
def test_methods_can_act_at_the_places_there_are(places, reach):
    assert replace(CONFIG, places=places).reach == reach
    assert not replace(CONFIG, places=places, pairs_pass=False).reach.pairs


def test_the_study_of_a_table_is_written_as_before_there_were_others():
    assert not CONFIG.to_dict().keys() & {"repeats", "epochs", "fair", "rungs"}
    assert not CONFIG.is_repeated
    assert replace(CONFIG, repeats=2).is_repeated


def test_every_part_of_it_makes_another_study():
    assert CHANGES.keys() == {field.name for field in fields(StudyConfig)}
    keys = {run_key(replace(CONFIG, **{name: value}).to_dict()) for name, value in CHANGES.items()}
    assert len({run_key(CONFIG.to_dict()), *keys}) == len(CHANGES) + 1


@pytest.mark.parametrize(
    "values",
    [{}, {"datasets": ["airfoil"]}, {"problem": "houses", "trials": 3}],
    ids=["empty", "another", "some"],
)
def test_runs_of_something_else_are_told_from_a_study(values):
    with pytest.raises(StoreError, match="runs of something else than a study: .* differ"):
        StudyConfig.from_dict(values)


def test_a_study_of_another_version_is_refused_and_the_way_out_is_said():
    older = {k: v for k, v in CONFIG.to_dict().items() if k not in ("recipes", "recipe")}
    newer = {**CONFIG.to_dict(), "more": 1}
    for values, differ in ((older | {"length": 200}, "length, recipe, recipes"), (newer, "more")):
        with pytest.raises(StoreError, match=rf"another version .*: {differ} differ\. .*--out"):
            StudyConfig.from_dict(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 0}, "`trials` must be at least 1, got 0"),
        ({"splits": 0}, "`splits` must be at least 1"),
        ({"seed": -1}, "`seed` must be"),
        ({"recipes": -1}, "`recipes` must be"),
        ({"metric": "rsme"}, "`metric` must be one of 'rmse'.*got 'rsme'"),
        ({"search": "grid"}, "`search` must be one of 'random', 'tpe'"),
        ({"test_share": -0.1}, "`test_share` must be"),
        ({"repeats": 0}, "`repeats` must be at least 1"),
        ({"epochs": (3, 0)}, "`epochs` must be at least 1"),
        ({"fair": "luck"}, "`fair` must be one of 'epochs', 'time'"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    with pytest.raises(ArgumentError, match=message):
        replace(CONFIG, **change)

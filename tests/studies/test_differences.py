"""What two studies differ in, in the words of whoever asked for them."""

from dataclasses import fields, replace

import pytest

from regaug.studies.config import StudyConfig
from regaug.studies.differences import say_differences

CONFIG = StudyConfig(
    problem="houses.csv",
    methods=("erm", "mixup"),
    baselines=("mean", "gp"),
    trials=6,
    splits=10,
    metric="rmse",
    test_share=0.25,
    recipes=12,
    recipe="a",
    hidden=(64, 64),
    rows=515,
    columns=4,
    checksum="a",
)
# Every part of a configuration, what else changes with it, and how that is said.
CASES = {
    "problem": (
        {"problem": "flats.csv", "rows": 9, "checksum": "b"},
        ["it has the data houses.csv, and the table has the data flats.csv", "515 rows"],
    ),
    "methods": (
        {"methods": ("erm", "ada")},
        ["it has the methods erm, mixup, and you asked for the methods erm, ada"],
    ),
    "baselines": (
        {"baselines": ("mean",)},
        ["it has the baselines mean, gp, and the table has the baselines mean"],
    ),
    "trials": (
        {"trials": 3, "recipes": 6, "recipe": "b"},
        ["it has 6 settings of every method, and you asked for 3 settings of every method"],
    ),
    "splits": (
        {"splits": 5, "checksum": "b", "test_share": 0.251},
        ["it has 10 splits, and you asked for 5 splits"],
    ),
    "metric": (
        {"metric": "mae", "recipe": "b"},
        ["it has the metric rmse, and you asked for the metric mae"],
    ),
    "test_share": (
        {"test_share": 0.5, "checksum": "b"},
        ["it has 0.25 test rows for every other one, and the table has 0.5"],
    ),
    "independent": (
        {"independent": True},
        ["it has overlapping splits, and you asked for independent splits"],
    ),
    "search": (
        {"search": "tpe"},
        ["it has the search random, and you asked for the search tpe"],
    ),
    "seed": (
        {"seed": 1, "checksum": "b", "recipe": "b"},
        ["it has seed 0, and you asked for seed 1"],
    ),
    "recipes": ({"recipes": 8}, ["it has 12 recipes, and you asked for 8 recipes"]),
    "recipe": ({"recipe": "b"}, ["another version of regaug has written it, with other recipes"]),
    "hidden": (
        {"hidden": ()},
        ["it has hidden layers 64, 64, and you asked for hidden layers none"],
    ),
    "rows": (
        {"rows": 520, "checksum": "b", "test_share": 0.26, "recipe": "b", "baselines": ()},
        ["it has 515 rows, and the table has 520 rows"],
    ),
    "repeats": (
        {"repeats": 10},
        ["it has 1 repetition of a split, and you asked for 10 repetitions of a split"],
    ),
    "epochs": (
        {"epochs": (30, 20), "recipe": "b", "rungs": (8,)},
        ["it has 0 epochs, and you asked for 20 to 30 epochs"],
    ),
    "fair": (
        {"fair": "time"},
        ["it has the same epochs for every method, and you asked for the same time"],
    ),
    "rungs": (
        {"rungs": (8, 15)},
        ["it has recipes that may end after none epochs, and you asked for recipes that"],
    ),
    "columns": (
        {"columns": 1, "checksum": "b"},
        ["it has 4 inputs, and the table has 1 input"],
    ),
    "train_rows": (
        {"train_rows": 300, "checksum": "b"},
        ["it has splits of 0 training rows and more, and the table has splits of 300", "changed"],
    ),
    "target_names": (
        {"target_names": ("price", "rent"), "checksum": "b"},
        ["it has the target target, and the table has the targets price, rent"],
    ),
    "places": (
        {"places": ("input",)},
        ["it has methods that act at input, layer, and you asked for methods that act at input"],
    ),
    "pairs_pass": (
        {"pairs_pass": False},
        [
            "it has layers that all of a sample passes, and you asked for layers that a part of a "
            "sample passes"
        ],
    ),
    "categories": (
        {"categories": True, "checksum": "b"},
        [
            "it has no columns that belong together, and the table has some columns that belong "
            "together"
        ],
    ),
    "checksum": (
        {"checksum": "b"},
        ["the table has changed since: as many rows, with other values"],
    ),
    "network": ({"network": "b"}, ["the network has changed since"]),
    "reference": (
        {"reference": "mixup"},
        ["it has the reference erm, and you asked for the reference mixup"],
    ),
    "kind": (
        {"kind": "estimator", "methods": ("no-rows",), "reference": "no-rows", "hidden": ()},
        ["it has a table net, and you asked for a regressor"],
    ),
    "model": (
        {"kind": "estimator", "model": "trees", "methods": ("no-rows",), "baselines": ()},
        ["it has a net, and you asked for the model trees"],
    ),
    "keep_integers": (
        {"keep_integers": True},
        ["it has whole numbers mixed in new rows, and you asked for whole numbers kept"],
    ),
}


def test_every_part_can_be_said():
    assert CASES.keys() == {part.name for part in fields(StudyConfig)}


@pytest.mark.parametrize("name", CASES)
def test_what_was_changed_is_said_and_what_follows_is_not(name):
    change, expected = CASES[name]
    told = say_differences(CONFIG.to_dict(), replace(CONFIG, **change).to_dict())
    assert len(told) == len(expected)
    for words, start in zip(told, expected, strict=True):
        assert start in words
    assert "checksum" not in " ".join(told)


def test_the_same_study_differs_in_nothing():
    plain = {**CONFIG.to_dict(), "methods": ["erm", "mixup"], "trials": 6.0}  # as JSON gives it
    assert say_differences(plain, CONFIG.to_dict()) == []


def test_another_version_is_told_as_such():
    older = {name: value for name, value in CONFIG.to_dict().items() if name != "recipes"}
    told = ["another version of regaug has written it"]
    assert say_differences(older, CONFIG.to_dict()) == told
    assert say_differences(CONFIG.to_dict(), older) == told

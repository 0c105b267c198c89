"""Settings: what cannot be used is refused at once, with the argument's name."""

import dataclasses
import json
import math

import pytest

from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.training import Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("batch_size", 0),
        ("learning_rate", 0.0),
        ("learning_rate", math.inf),
        ("learning_rate", math.nan),
        ("weight_decay", -1e-3),
        ("optimizer", "sgd"),
        ("schedule", "linear"),
        ("clip", 0.0),
        ("patience", 0),
        ("metric", "accuracy"),
        ("seed", -1),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(ArgumentError, match=f"`{name}` must be .*, got"):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", 1.5), ("batch_size", "32"), ("learning_rate", "fast"), ("patience", True)],
)
def test_values_of_the_wrong_type_are_refused_by_name(name, value):
    with pytest.raises(ArgumentTypeError, match=f"`{name}` must be a .*number, got"):
        Settings(**{name: value})


def test_settings_are_given_by_name_and_cannot_change():
    with pytest.raises(TypeError, match="positional"):
        Settings(10)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().epochs = 5


def test_plain_values_go_through_json_and_build_the_same_settings():
    settings = Settings(epochs=3, clip=0.5, patience=2, metric="mae", method_settings={"rho": 0.95})
    values = settings.to_dict()
    assert set(values) == {field.name for field in dataclasses.fields(Settings)}
    assert Settings(**json.loads(json.dumps(values))) == settings

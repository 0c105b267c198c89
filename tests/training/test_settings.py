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
        ("frequencies", -1),
        ("spread", 0.0),
        ("linear", 1),
        ("halve", None),
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
    own = {
        "frequencies": 8,
        "spread": 0.2,
        "linear": True,
        "relevance": True,
        "average": 0.8,
        "patience_share": 0.5,
        "halve": True,
        "stop_after": 2,
        "method_settings": {"rho": 0.95},
    }
    settings = Settings(epochs=3, clip=0.5, patience=2, metric="mae", **own)
    values = settings.to_dict()
    assert set(values) == {field.name for field in dataclasses.fields(Settings)}
    assert Settings(**json.loads(json.dumps(values))) == settings


def test_what_is_stored_of_a_plain_net_does_not_name_what_it_has_not():
    values = Settings().to_dict()
    rare = {"frequencies", "linear", "average", "patience_share", "halve", "stop_after"}
    assert not rare & set(values)
    assert Settings.from_dict(values) == Settings()
    assert Settings.from_dict(Settings(linear=True).to_dict()) == Settings(linear=True)


def test_the_rate_of_waves_is_zero_four_times_and_full_between():
    settings = Settings(learning_rate=0.5, schedule="waves")
    for wave in range(5):
        assert settings.rate_at((2**wave - 1) / 15) == pytest.approx(0.0, abs=1e-12)
    for wave in range(4):
        assert settings.rate_at((2 ** (wave + 0.5) - 1) / 15) == pytest.approx(0.5)

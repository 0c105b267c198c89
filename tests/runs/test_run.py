"""What a run is: its key, and the way to a file and back."""

import json
import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from dataclasses import fields, replace
from types import MappingProxyType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug import methods
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.runs.run import Run, run_key
from regaug.training.settings import Settings

keys = st.text(max_size=5) | st.sampled_from(["$float", "$", "$$float", "$100"])
finite = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
finite = finite.filter(lambda value: value not in (float("inf"), -float("inf")))


def nested(leaves):
    values = st.recursive(leaves, lambda v: st.lists(v) | st.dictionaries(keys, v), max_leaves=6)
    return st.dictionaries(keys, values)


# Keys of configurations


def turned_over(value):
    """The same with the entries of all dicts in the opposite order, and tuples for lists."""
    if isinstance(value, dict):
        return {key: turned_over(value[key]) for key in reversed(value)}
    return tuple(map(turned_over, value)) if isinstance(value, list) else value


@given(nested(finite))
def test_the_key_does_not_depend_on_the_order_nor_on_tuples(configuration):
    assert run_key(turned_over(configuration)) == run_key(configuration)
    assert run_key(OrderedDict(configuration)) == run_key(MappingProxyType(configuration))
    assert run_key(json.loads(json.dumps(configuration))) == run_key(configuration)
    assert len(run_key(configuration)) == 32


def test_equal_numbers_have_the_same_key():
    assert run_key({"a": 1}) == run_key({"a": 1.0}) == run_key({"a": np.float64(1)})
    assert run_key({"a": 10**22}) == run_key({"a": 1e22})
    assert run_key({"a": 0.0}) == run_key({"a": -0.0})


def test_different_configurations_have_different_keys():
    values = [1, 2, 1.5, True, False, None, "1", "", "None", [], {}, [1], [[1]], {"b": 1}, [1, 2]]
    configurations = [{}, *({"a": value} for value in values), {"b": 1}, {"$a": 1}, {"$$a": 1}]
    assert len({run_key(configuration) for configuration in configurations}) == len(configurations)


def test_the_key_is_the_same_in_a_process_with_another_hash_seed():
    configuration = {"method": "foma", "names": ["\u00e4", "b"], "settings": {"rho": 0.1, "k": 3}}
    code = f"from regaug.runs.run import run_key; print(run_key({configuration!r}))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == run_key(configuration) == "88ba804a78f83c132bbca4d195f4a987"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_key_needs_finite_numbers(number):
    message = r"`configuration`\['settings'\]\['rho'\]\[1\] must be finite, got"
    with pytest.raises(ArgumentError, match=message):
        run_key({"settings": {"rho": [0.5, number]}})


@pytest.mark.parametrize("value", [torch.ones(1), np.ones(1), np.int64(1), {1}, b"1", object()])
def test_what_json_does_not_have_is_refused_with_its_place(value):
    with pytest.raises(ArgumentTypeError, match=r"`configuration`\['a'\] must be a number"):
        run_key({"a": value})


def test_keys_of_dicts_are_strings_and_nothing_contains_itself():
    with pytest.raises(ArgumentTypeError, match=r"`configuration`\['a'\] must have strings .* 1\."):
        run_key({"a": {1: 2}})
    with pytest.raises(ArgumentTypeError, match="`configuration` must be a dict, got list"):
        run_key([1])
    endless = {}
    endless["a"] = endless
    with pytest.raises(ArgumentError, match="must not contain itself"):
        run_key(endless)


# Runs

own_values = st.none() | st.booleans() | st.floats(-9, 9) | st.text(max_size=3)
settings = st.builds(
    Settings,
    epochs=st.integers(1, 500),
    batch_size=st.integers(1, 64),
    learning_rate=st.floats(1e-6, 1.0),
    weight_decay=st.floats(0.0, 1.0),
    optimizer=st.sampled_from(["adam", "adamw"]),
    schedule=st.sampled_from(["constant", "cosine"]),
    clip=st.none() | st.floats(1e-3, 9.0),
    patience=st.none() | st.integers(1, 9),
    metric=st.sampled_from(["rmse", "pearson"]),
    seed=st.integers(0, 9),
    method_settings=st.dictionaries(
        keys, own_values | st.lists(st.text(max_size=3)).map(tuple), max_size=3
    ),
)
runs = st.builds(
    Run,
    st.text(max_size=5),
    st.sampled_from(methods.names()),
    st.integers(0, 99),
    st.integers(0, 2**63),
    st.none() | settings,
    st.none() | st.integers(0, 99),
    st.booleans(),
    st.sampled_from([None, "recipe", "method"]),
)


@given(runs)
def test_a_run_comes_back_from_plain_values(run):
    again = Run.from_dict(json.loads(json.dumps(run.to_dict())))
    assert again == run
    assert again.key == run.key
    assert pickle.loads(pickle.dumps(run)) == run


@given(runs, runs)
def test_runs_have_the_same_key_if_and_only_if_they_are_equal(run, other):
    assert (run.key == other.key) == (run == other)
    assert run.key == run_key(run.to_dict())


RUN = Run("houses", "foma", 1, 5, Settings(epochs=5, method_settings={"rho": 0.5}), trial=2)
CHANGES = {
    "problem": "flats",
    "method": "ada",
    "split": 2,
    "seed": 6,
    "settings": Settings(epochs=6, method_settings={"rho": 0.5}),
    "trial": None,
    "log": True,
    "stage": "recipe",
}


def test_every_field_changes_the_key():
    assert CHANGES.keys() == {field.name for field in fields(Run)}
    changed = [replace(RUN, **{name: value}) for name, value in CHANGES.items()]
    assert len({run.key for run in (RUN, replace(RUN, settings=None), *changed)}) == 10


def test_runs_without_a_stage_have_the_keys_that_they_had_before_there_were_stages():
    assert RUN.key == "dc4266e7a7f64943dde6e4df2bc020de"
    assert Run("houses", "ridge", 0, 0).key == "91a0c899a5309c458cbe3534ff4b8c28"
    assert "stage" not in RUN.to_dict()
    assert Run.from_dict(RUN.to_dict()).stage is None


SETTINGS = {
    "epochs": 7,
    "batch_size": 7,
    "learning_rate": 0.7,
    "weight_decay": 0.7,
    "optimizer": "adam",
    "schedule": "cosine",
    "clip": 0.7,
    "patience": 7,
    "metric": "mae",
    "frequencies": 7,
    "spread": 0.7,
    "linear": True,
    "relevance": True,
    "average": 0.7,
    "patience_share": 0.7,
    "halve": True,
    "stop_after": 7,
    "method_settings": {"rho": 0.6},
}


def test_every_setting_changes_the_key_but_for_the_seed_which_is_the_runs_own():
    assert SETTINGS.keys() == {field.name for field in fields(Settings)} - {"seed"}
    changed = [
        replace(RUN, settings=replace(RUN.settings, **{name: value}))
        for name, value in SETTINGS.items()
    ]
    assert len({run.key for run in (RUN, *changed)}) == len(SETTINGS) + 1
    seeded = replace(RUN, settings=replace(RUN.settings, seed=99))
    assert seeded == RUN
    assert seeded.settings.seed == RUN.seed == 5


def test_a_run_without_settings_is_a_baseline_and_stacks_with_nothing():
    baseline = Run("houses", "ridge", 0, 0)
    assert baseline.is_baseline
    assert not baseline.can_stack
    assert not RUN.is_baseline
    assert RUN.can_stack
    at_both = replace(RUN, settings=Settings(method_settings={"place": methods.BOTH}))
    assert not at_both.can_stack


@pytest.mark.parametrize(
    "change",
    [
        {"split": 1.5},
        {"seed": "7"},
        {"trial": "a"},
        {"settings": {}},
        {"settings": 3},
        {"stage": "x"},
    ],
    ids=str,
)
def test_values_of_another_type_are_no_run(change):
    with pytest.raises((TypeError, ValueError)):
        Run.from_dict(RUN.to_dict() | change)
    with pytest.raises(LookupError):
        Run.from_dict({name: v for name, v in RUN.to_dict().items() if name != "seed"})

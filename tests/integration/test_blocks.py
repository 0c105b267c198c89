"""Columns that belong together, on their way from a table to what augments its rows."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import regaug
from regaug import FeatureMix, methods
from regaug.data import read_table, standardize
from regaug.data.base import Split
from regaug.exceptions import ArgumentError
from regaug.integrations.sklearn import AugmentingSampler
from regaug.models import MLP
from regaug.problems import Problem
from regaug.studies.compare import compare
from regaug.training import Settings, fit, fit_many
from regaug.training.estimators import NewRows, add_rows
from regaug.training.stacked.training import Training

# size and its gaps, rooms, the three cities, whether there is a garden
BLOCKS = (0, 0, 1, 2, 2, 2, 3)


def make_frame(n=90, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(30, 200, n)),
            "rooms": rng.integers(1, 7, n),
            "city": rng.choice(["Oslo", "Rome", "Łódź"], n),
            "garden": rng.random(n) < 0.4,
        }
    )
    return frame.assign(
        price=frame["size"].fillna(90) + 20 * frame["rooms"] + 50 * (frame["city"] == "Rome")
    )


@pytest.fixture
def data():
    return read_table(make_frame(), target="price")


@pytest.fixture
def seen(monkeypatch):
    """The blocks of all that augment by them, once they have been told."""
    found, real = [], FeatureMix.learn_blocks

    def note(self, blocks):
        real(self, blocks)
        found.append(tuple(self.blocks.tolist()))

    monkeypatch.setattr(FeatureMix, "learn_blocks", note)
    return found


def make_net(split):
    return MLP(split.train.x.shape[1], hidden=(8,))


def test_the_encoder_says_which_columns_belong_together(data):
    split = data.split(seed=0)
    assert split.encoder.blocks == split.blocks == BLOCKS
    assert split.encoder.feature_names == (
        "size",
        "size=(missing)",
        "rooms",
        "city=Oslo",
        "city=Rome",
        "city=Łódź",
        "garden",
    )


def test_a_split_keeps_them_whatever_is_done_to_it(data):
    split = data.split(seed=0)
    for other in (
        split.subsample(40),
        standardize(split),
        standardize(split, log=True),
        standardize(replace(split, mask=lambda x: torch.ones_like(x, dtype=torch.bool))),
        pickle.loads(pickle.dumps(split)),
        *Problem.from_table(data, splits=2).splits,
        *Problem.from_table(data, splits=2, most_rows=50).splits,
        *Problem.from_table(data, model=make_net, splits=2).splits,
        pickle.loads(pickle.dumps(Problem.from_table(data, splits=2))).split(1),
        Problem.from_table(data, splits=2).subsample(40).split(1),
    ):
        assert other.blocks == BLOCKS
    assert Split(split.train, split.validation, split.test).blocks is None
    assert regaug.data.load("diabetes").split(seed=0).blocks is None


def test_splits_of_ones_own_say_them(data):
    split = data.split(seed=0)
    parts = [(part.x, part.y) for part in split.parts.values()]
    problem = Problem([Split(*parts, blocks=BLOCKS)])
    assert problem.split(0).blocks == BLOCKS
    with pytest.raises(ArgumentError, match="each of the 7 columns of the inputs, got 3"):
        Problem([Split(*parts, blocks=(0, 1, 1))])
    with pytest.raises(ArgumentError, match="each of the 7 columns of the inputs, got 3"):
        Split(split.train, split.validation, split.test, blocks=(0, 1, 1))


@pytest.mark.parametrize("place", ["input", "layer"])
@pytest.mark.parametrize("targets", ["share", "information", "keep"])
def test_runs_side_by_side_and_runs_by_themselves_keep_to_them(data, targets, place):
    split = standardize(data.split(seed=0))
    own = {"p": 1.0, "anneal": None, "targets": targets, "place": place}
    settings = [Settings(epochs=2, seed=seed, method_settings=own) for seed in range(2)]
    run = Training.make(0, split, "feature-mix", settings[0], (8,), None)
    assert tuple(run.augmentation.blocks.tolist()) == BLOCKS
    torn = replace(split, blocks=None)
    together, apart = (
        fit_many(some, "feature-mix", settings, hidden=(8,), dtype=torch.float64)
        for some in (split, torn)
    )
    for one, settings_of_one in zip(together, settings, strict=True):
        net = MLP(7, hidden=(8,), seed=settings_of_one.seed).double()
        wide = [
            replace(part, x=part.x.double(), y=part.y.double()) for part in split.parts.values()
        ]
        alone = fit(
            net,
            replace(split, train=wide[0], validation=wide[1], test=wide[2]),
            "feature-mix",
            settings_of_one,
        )
        for name, weight in alone.weights.items():
            torch.testing.assert_close(one.weights[name], weight, rtol=0, atol=1e-6)
    # A layer has no blocks.
    assert (together[0].scores != apart[0].scores) == (place == "input")


def test_a_study_a_model_and_new_rows_know_them(data, seen, monkeypatch, shorten):
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    shorten(monkeypatch, 2)
    options = {"methods": ["feature-mix"], "trials": 1}
    compare(Problem.from_table(data, splits=2), **options)
    assert set(seen) == {BLOCKS}
    for make in (
        lambda: compare(Problem.from_table(data, model=make_net, splits=2), epochs=2, **options),
        lambda: compare(Problem.from_table(data, model="ridge", splits=2), **options),
        lambda: regaug.fit(data, method="feature-mix", members=1),
        lambda: regaug.data.tabular.generation.generate(data, method="feature-mix", rows=5),
        lambda: AugmentingSampler("feature-mix", random_state=0).fit_resample(
            data.frame.drop(columns="price"), data.frame["price"]
        ),
    ):
        seen.clear()
        make()
        assert seen
        assert {max(blocks) for blocks in seen} == {3}
        assert {len(blocks) for blocks in seen} == {7}


@pytest.mark.slow
@pytest.mark.serial
def test_worker_processes_know_them_too(data, monkeypatch, shorten):
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    shorten(monkeypatch, 2)
    options = {"methods": ["feature-mix"], "trials": 2}
    here = compare(Problem.from_table(data, splits=2), **options)
    there = compare(Problem.from_table(data, splits=2), jobs=2, **options)
    assert here.comparison.row("feature-mix").errors == there.comparison.row("feature-mix").errors


def test_in_a_loop_of_ones_own_they_are_an_argument(data):
    split = standardize(data.split(seed=0))
    x, y = split.train.x, split.train.y
    ready = methods.get("feature-mix").prepare(seed=1).fit(x, y, blocks=split.blocks)
    own = methods.get("feature-mix").prepare({"blocks": list(split.blocks)}, seed=1).fit(x, y)
    assert all(map(torch.equal, ready.augmentation(x, y), own.augmentation(x, y)))
    known = {tuple(row) for row in x[:, 3:6].tolist()}
    assert len(known) == 3
    for _ in range(20):
        assert {tuple(row) for row in ready.augmentation(x, y)[0][:, 3:6].tolist()} <= known


def test_no_new_training_row_of_a_regressor_lies_between_levels(data):
    split = data.split(seed=0)
    settings = Settings(method_settings={"share": 2.0, "targets": "share"})
    made = add_rows(split, settings, NewRows("feature-mix")).x[len(split.train) :]
    known = [tuple(row) for row in split.train.x.tolist()]
    for start, stop in ((0, 2), (2, 3), (3, 6), (6, 7)):
        parts = {row[start:stop] for row in known}
        assert {tuple(row) for row in made[:, start:stop].tolist()} <= parts
    assert len({tuple(row) for row in made.tolist()} - set(known)) > 50

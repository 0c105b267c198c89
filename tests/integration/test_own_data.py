"""Studies of data sets and networks of one's own: images, pairs, token ids, files."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, random_split

import regaug
from regaug import Problem
from regaug.data import Split, split_dataset
from regaug.data import partition as partition_module
from regaug.studies import plan as plan_module
from regaug.studies.study import Study
from regaug.training.baselines import baseline_names
from regaug.training.recipe import draw_recipes


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    def recipes(count, **options):
        return [replace(own, epochs=3, patience=None) for own in draw_recipes(count, **options)]

    monkeypatch.setattr(plan_module, "draw_recipes", recipes)
    monkeypatch.setattr(plan_module, "FEWEST_RECIPES", 2)
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", few_baselines)


def few_baselines(split):
    """Those that take no time."""
    return tuple(name for name in baseline_names(split) if name in ("mean", "ridge"))


class Pictures(Dataset):
    """Images whose mean is the target, as files would be: made when they are asked for."""

    def __init__(self, n=60):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, number):
        rng = np.random.default_rng(number)
        picture = rng.standard_normal((1, 6, 6)).astype(np.float32) + rng.standard_normal()
        return picture, np.float32(picture.mean())


class Pairs(Pictures):
    """A sample is a dict with more in it than anybody needs."""

    def __getitem__(self, number):
        rng = np.random.default_rng(number)
        drug, protein = rng.standard_normal(3), rng.standard_normal((2, 4))
        affinity = drug.sum() * protein.mean()
        return {"name": f"pair {number}", "drug": drug, "protein": protein, "affinity": affinity}


class PairNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.drug = nn.Linear(3, 8)
        self.protein = nn.Sequential(nn.Flatten(), nn.Linear(8, 8))
        self.hidden = nn.Sequential(nn.Linear(16, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)

    def forward(self, drug, protein):
        return self.head(self.hidden(torch.cat([self.drug(drug), self.protein(protein)], dim=1)))


class TokenNet(nn.Module):
    places = ("pool",)

    def __init__(self, targets):
        super().__init__()
        self.embedding, self.pool = nn.Embedding(12, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, targets)

    def forward(self, ids, mask):
        assert ids.dtype == torch.int64
        assert set(mask.unique().tolist()) <= {0.0, 1.0}
        summed = (self.embedding(ids) * mask[..., None]).sum(1)
        return self.head(self.pool(summed / mask.sum(1, keepdim=True)).relu())


def make_cnn(split):
    channels = split.train.x.shape[1]
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 1))


def make_pair_net(split):
    return PairNet()


def make_token_net(split):
    return TokenNet(split.train.y.shape[1])


def drug_and_protein(sample):
    return {"drug": sample["drug"], "protein": sample["protein"]}


def affinity(sample):
    return sample["affinity"]


def notes_of(problem, **options):
    told = []
    study = regaug.compare(problem, progress=lambda event: told.extend(event.notes), **options)
    return study, told


def same_table(study, other):
    return [(row.name, row.errors) for row in study.comparison.rows] == [
        (row.name, row.errors) for row in other.comparison.rows
    ]


def test_images_on_a_given_split_of_a_data_set():
    parts = random_split(Pictures(), [36, 12, 12], torch.Generator().manual_seed(0))
    problem = Problem([Split(*parts)], model=make_cnn, metric="mae", name="pictures")
    study, notes = notes_of(
        problem, methods=["mixup", "manifold-mixup", "foma-rho"], trials=2, splits=2, epochs=3
    )
    assert study.config.methods == ("erm", "mixup", "foma-rho")
    assert all(row.n_failed == 0 for row in study.comparison.rows)
    assert study.config.columns == 36
    assert "The network names no layer: methods act on the inputs alone." in notes
    assert any(note.startswith("manifold-mixup is left out") for note in notes)


def test_pairs_with_every_method_and_a_report(tmp_path):
    splits = split_dataset(
        Pairs(),
        seeds=2,
        inputs=lambda sample: (sample["drug"], sample["protein"]),
        targets=lambda sample: sample["affinity"],
    )
    problem = Problem(splits, model=make_pair_net, places=["hidden"], name="pairs")
    study, notes = notes_of(problem, trials=1, epochs=3, out=tmp_path)
    assert set(study.config.methods) == set(regaug.methods.usual())
    assert all(row.n_failed == 0 for row in study.comparison.rows)
    assert any("those that act at a layer at hidden, as `places` says" in note for note in notes)
    assert same_table(Study.open(study.folder), study)
    page = (study.folder / "report.html").read_text(encoding="utf-8")
    assert re.search(r"manifold-mixup", page)
    stored = json.loads((study.folder / "study.json").read_text(encoding="utf-8"))
    assert "hidden" in json.dumps(stored)
    # The same call finds all of it done.
    again = regaug.compare(problem, trials=1, epochs=3, out=tmp_path)
    assert same_table(again, study)


def test_token_ids_and_a_mask_with_two_targets():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 12, (60, 7))
    mask = (np.arange(7) < rng.integers(2, 8, 60)[:, None]).astype(np.float32)
    targets = np.stack([ids.mean(1), ids[:, 0] / 2], axis=1)
    splits = split_dataset(({"ids": ids, "mask": mask}, targets), seeds=2)
    problem = Problem(splits, model=make_token_net, target_names=["mean", "first"], name="tokens")
    study, notes = notes_of(
        problem, methods=["mixup", "c-mixup", "foma", "ada"], trials=2, epochs=3
    )
    assert study.config.methods == ("erm", "mixup", "c-mixup", "foma")
    assert study.config.baselines == ("mean",)
    assert study.config.target_names == ("mean", "first")
    assert all(row.n_failed == 0 for row in study.comparison.rows)
    assert {own.run.settings.method_settings["place"] for own in study.chosen["foma"]} == {"layer"}
    assert any("methods act at pool, as the network itself says" in note for note in notes)


@pytest.mark.slow
@pytest.mark.serial
def test_worker_processes_get_all_of_it_and_find_the_same():
    splits = split_dataset(Pairs(), seeds=2, inputs=drug_and_protein, targets=affinity)
    problem = Problem(splits, model=make_pair_net, places=["hidden"], name="pairs")
    options = {"methods": ["mixup", "manifold-mixup"], "trials": 1}
    assert same_table(
        regaug.compare(problem, **options), regaug.compare(problem, jobs=2, **options)
    )


@pytest.mark.slow
@pytest.mark.serial
def test_a_data_set_too_large_for_memory_gives_the_same_and_travels_too(monkeypatch):
    def problem():
        parts = Pairs(40), Pairs(50), Pairs(60)
        functions = {"inputs": drug_and_protein, "targets": affinity}
        splits = [Split(*parts)]
        return Problem(splits, make_pair_net, is_scaled=True, name="large", **functions)

    # Baselines scale what is in memory themselves.
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    expected = regaug.compare(problem(), methods=["mixup"], trials=1)
    monkeypatch.setattr(partition_module, "MOST_BYTES", 1000)
    large = problem()
    assert not isinstance(large.splits[0].train.x[:], torch.Tensor)
    assert type(large.splits[0].train.x).__name__ == "SampleInputs"
    assert same_table(regaug.compare(large, methods=["mixup"], trials=1, jobs=2), expected)

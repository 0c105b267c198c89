"""Studies in which some rows, or some values, must not be mixed, and whose targets are windows."""

import numpy as np
import pytest
import torch
from torch import nn

from regaug import Problem, compare, methods
from regaug.data import Part, Split
from regaug.exceptions import ArgumentError
from regaug.studies import plan as module
from regaug.studies.eligibility import leave_out
from regaug.studies.plan import make_plan
from regaug.studies.study import Study

STEPS, AHEAD, COLUMNS = 6, 2, 2


def make_splits(count=2, n=90):
    """Windows of a series like ETTh1: a daily period, a trend and noise, from three stations."""
    rng = np.random.default_rng(0)
    hours = np.arange(n + STEPS + AHEAD)
    series = np.stack([np.sin(hours / 4), np.cos(hours / 4) + hours / 200], axis=1)
    series = torch.tensor(series + 0.1 * rng.standard_normal(series.shape), dtype=torch.float32)
    x = torch.stack([series[i : i + STEPS] for i in range(n)])
    y = torch.stack([series[i + STEPS : i + STEPS + AHEAD] for i in range(n)])
    x[::4, 4:] = 0.0  # some are shorter
    stations = np.array(["north", "south", "west"])[np.arange(n) // 2 % 3]
    stations[7] = "island"
    splits = []
    for _ in range(count):
        parts = np.split(
            np.concatenate([[7], rng.permutation(np.delete(np.arange(n), 7))]), [54, 72]
        )
        splits.append(Split(*(Part(x[own], y[own], own, stations[own]) for own in parts)))
    return splits


class Forecaster(nn.Module):
    places = ("rnn",)

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(COLUMNS, 6, batch_first=True)
        self.out = nn.Linear(6, AHEAD * COLUMNS)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1]).unflatten(1, (AHEAD, COLUMNS))


def make_net(split):
    return Forecaster()


def is_there(x):
    return x != 0


@pytest.fixture
def short(monkeypatch, shorten):
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    monkeypatch.setattr(module, "FEWEST_RECIPES", 1)
    shorten(monkeypatch, 2)


def test_every_method_is_in_a_study_of_windows_within_groups(short, tmp_path):
    problem = Problem(make_splits(), make_net, pairs_within="group", name="stations")
    study = compare(problem, trials=1, epochs=2, out=tmp_path)
    assert {row.name for row in study.comparison.rows} >= {*methods.usual()}
    assert all(row.n_failed == 0 for row in study.comparison.rows)
    assert study.config.targets == AHEAD * COLUMNS
    assert study.verdict.text
    assert Study.open(study.folder).verdict.text == study.verdict.text


def test_a_study_with_a_mask_has_the_methods_that_take_one(short):
    problem = Problem(make_splits(), make_net, mask=is_there, name="gaps")
    study = compare(problem, trials=1, epochs=2, methods=["noise", "c-mixup", "foma"])
    assert study.config.methods == ("erm", "noise", "c-mixup")
    assert all(row.n_failed == 0 for row in study.comparison.rows)


def test_the_table_net_keeps_to_groups_too(short):
    splits = [
        Split(*(Part(p.x.flatten(1), p.y[:, 0], p.rows, p.groups) for p in split.parts.values()))
        for split in make_splits()
    ]
    study = compare(Problem(splits, pairs_within="group"), trials=1, methods=["mixup"])
    assert all(row.n_failed == 0 for row in study.comparison.rows)


def test_who_is_left_out_is_said_and_the_others_act_on_inputs():
    problem = Problem(make_splits(), make_net, mask=is_there)
    names, sentences = leave_out(problem, methods.names())
    mixing = ("k-mixup", "neighbor-mixup", "epbeta-mixup", "sk-mixup", "feature-mix", "rare")
    assert names == ("erm", "noise", "mixup", "c-mixup", *mixing)
    assert sentences == [
        "Left out, as they cannot leave out single values: ada, foma, foma-rho, cems, "
        "teacher-rows.",
        "Left out, as what a layer puts out has no mask: manifold-mixup.",
        "The inputs have a mask: methods act on them alone, where it says that a value is.",
    ]
    plan = make_plan(problem, trials=12)
    assert list(plan.notes)[-3:] == [sentences[0].replace(", teacher-rows", ""), *sentences[1:]]
    assert plan.config.places == ("input",)
    places = {run.settings.method_settings.get("place") for run in plan.runs if run.settings}
    assert places <= {None, "input"}


def test_somebody_must_be_able_to_act():
    problem = Problem(make_splits(), make_net, mask=is_there)
    with pytest.raises(ArgumentError, match="act on inputs with a mask. Left out, .* foma, ada"):
        make_plan(problem, methods=["foma", "ada"])


def test_without_a_mask_nobody_is_left_out_and_groups_are_told():
    problem = Problem(make_splits(), make_net)
    assert leave_out(problem, methods.names())[0] == methods.names()
    assert not any("group" in note for note in make_plan(problem, trials=1).notes)
    grouped = make_plan(Problem(make_splits(), make_net, pairs_within="group"), trials=1)
    assert grouped.config.methods == methods.usual()
    assert grouped.notes[0] == (
        "Rows are mixed within their groups only, of which there are 4. The training row of a "
        "group that has one only (1) stays as it is."
    )

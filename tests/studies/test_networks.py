"""What a study of a network knows of its inputs, of a layer and of its nets."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from regaug.data.base import Part, Split
from regaug.data.lazy import Lazy
from regaug.problems import Problem
from regaug.runs.nets import NETS, net_file
from regaug.runs.run import Run
from regaug.runs.worker import Worker
from regaug.studies import networks
from regaug.studies.facts import Facts
from regaug.studies.geometry import Geometry
from regaug.studies.networks import describe_latent, describe_network, finish_network
from regaug.studies.study import Study
from regaug.training import Settings


class Net(nn.Module):
    """A net whose first place puts out a tuple."""

    def __init__(self, inputs=12):
        super().__init__()
        self.places = ("input", "rnn", "head")
        self.rnn = nn.GRU(inputs // 4, 5, batch_first=True)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        return self.head(self.rnn(x.float().flatten(2))[0][:, -1])


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(12, 1)

    def forward(self, x):
        return self.head(x.float().flatten(1))


def make_net(split):
    return Net()


def make_plain(split):
    return Plain()


class Far(Lazy):
    """Inputs that are read when they are asked for."""

    def _read(self, place):
        return torch.full(self.shape[1:], float(place))


def make_split(x=None, n=(40, 10, 12)):
    generator = torch.Generator().manual_seed(0)
    parts = []
    for size in n:
        own = torch.randn(size, 4, 3, generator=generator) if x is None else x(size)
        parts.append(Part(own, torch.randn(size, 1, generator=generator), np.arange(size)))
    return Split(*parts)


def test_the_inputs_are_looked_at_as_they_are_trained_on():
    problem = Problem([make_split()], make_net, name="mine")
    facts = describe_network(problem, ["A note."], given={"source": "mine.py:problem"})
    scaled = problem.split(0)
    expected = Geometry.of(scaled.train.x.flatten(1), scaled.train.y)
    assert {name: getattr(facts, name) for name in vars(expected)} == vars(expected)
    assert facts.rows == {"train": 40, "validation": 10, "test": 12}
    assert (facts.kind, facts.places) == ("network", ("input", "rnn", "head"))
    assert facts.summary.splitlines() == [
        "A note.",
        "The network is a Net with 156 weights.",
        "Inputs and targets were given mean 0 and standard deviation 1 over the training rows of "
        "each split.",
    ]
    assert Facts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts


def test_test_rows_among_the_training_rows_are_counted():
    split = make_split()
    shared = replace(split, test=split.train.take([3, 4]))
    assert describe_network(Problem([shared], make_net), []).shared_rows == 2


def test_token_ids_and_very_long_rows_have_no_spectrum(monkeypatch):
    tokens = make_split(lambda n: torch.randint(9, (n, 4, 3)))
    facts = describe_network(Problem([tokens], make_net, is_scaled=True), [])
    assert (facts.columns, facts.n_used, facts.singular_values) == (12, 0, ())
    assert "trained on as they are" in facts.summary
    monkeypatch.setattr(networks, "LONGEST", 11)
    assert describe_network(Problem([make_split()], make_net), []).n_used == 0


def test_inputs_that_are_read_when_asked_for_are_never_all_read(monkeypatch):
    monkeypatch.setattr(networks, "MOST_ROWS", 7)
    monkeypatch.setattr(networks, "FEWEST_ROWS", 5)
    split = make_split(lambda n: Far(n, (4, 3)))
    facts = describe_network(Problem([split], make_net), [])
    assert facts.n_used == 7
    assert facts.summary.splitlines()[-1].startswith("Inputs are as the data set gives them;")


def test_several_tensors_count_together():
    x = {"a": torch.ones(3, 2), "b": (torch.zeros(3, 4, 5), torch.ones(3, 1, dtype=torch.long))}
    assert networks._flat(x).shape == (3, 22)
    assert networks._flat([x["b"][1]]) is None


def train(problem, folder, **settings):
    run = Run(problem.name, "erm", 0, 3, Settings(epochs=2, **settings), 0, stage="method")
    [record] = Worker([problem], folder=folder).do((run,))
    return record, net_file(folder, run)


def test_a_layer_of_a_trained_net_is_looked_at(tmp_path):
    problem = Problem([make_split()], make_net, name="mine")
    record, file = train(problem, tmp_path)
    found = describe_latent(problem, record, file)
    net, split = make_net(None), problem.split(0)
    net.load_state_dict(networks.read_net(file))
    with torch.inference_mode():
        outputs = net.rnn(split.train.x)[0].flatten(1)
    expected = Geometry.of(outputs, split.train.y)
    assert (found.place, found.run, found.columns) == ("rnn", record.run.key, 20)
    assert found.singular_values == pytest.approx(expected.singular_values, rel=1e-3)
    assert found.two_nn.dimension == pytest.approx(expected.two_nn.dimension, rel=1e-2)


def test_a_net_without_places_or_with_rows_of_its_own_has_none(tmp_path):
    plain = Problem([make_split()], make_plain, name="plain")
    assert describe_latent(plain, *train(plain, tmp_path)) is None
    assert describe_network(plain, []).places == ()
    part = plain.split(0).train
    time_first = nn.Sequential(nn.Flatten(), nn.Unflatten(1, (12, 1)))
    assert networks._put_out(time_first, "1", part.take(slice(3))).shape == (3, 12)

    class Transposed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Identity()

        def forward(self, x):
            return self.layer(x.transpose(0, 1)).sum((0, 2))[:, None]

    assert networks._put_out(Transposed(), "layer", part.take(slice(3))) is None


@pytest.fixture
def study(tmp_path):
    """A study with two trials of one method, whose weights are all there, and its problem."""
    problem = Problem([make_split()], make_net, name="mine")
    records = []
    for seed in range(2):
        settings = Settings(epochs=1, learning_rate=0.01 * (1 + seed))
        run = Run("mine", "erm", 0, seed, settings, seed, stage="method")
        records += Worker([problem], folder=tmp_path).do((run,))
    from regaug.studies.config import StudyConfig

    config = StudyConfig("mine", ("erm",), (), 2, 1, "rmse", 0.24)
    facts = describe_network(problem, [])
    return Study.read(config, records, facts=facts), problem


def test_the_chosen_nets_stay_when_the_study_is_complete(study, tmp_path):
    made, problem = study
    half = replace(made, trials=1)
    assert finish_network(half, problem, tmp_path).facts.latent is not None
    assert len(list((tmp_path / NETS).iterdir())) == 2
    done = replace(finish_network(made, problem, tmp_path), folder=tmp_path)
    [left] = (tmp_path / NETS).iterdir()
    assert left == done.weights("erm") == net_file(tmp_path, made.chosen["erm"][0].run)
    assert done.facts.latent.run == made.chosen["erm"][0].run.key
    again = finish_network(made, problem, tmp_path)  # as the same command does
    assert again.facts.latent == done.facts.latent


def test_damaged_weights_are_no_reason_to_forget_the_study(study, tmp_path):
    made, problem = study
    file = net_file(tmp_path, made.chosen["erm"][0].run)
    file.write_bytes(b"no weights")
    done = finish_network(made, problem, tmp_path)
    assert done.facts.latent is None
    assert "left out of the report: Cannot use" in done.notes[-1]
    file.unlink()
    assert finish_network(made, problem, tmp_path).facts.latent is None
    assert replace(made, folder=tmp_path).weights("erm") is None
    assert made.weights("erm") is None  # it is kept nowhere

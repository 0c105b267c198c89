"""Problems: splits, a network and a metric, from tables, named data sets or one's own parts."""

import pickle
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import regaug
from regaug import _scripts
from regaug import problems as module
from regaug.data import read_table, standardize
from regaug.data.base import Info, Part, Split
from regaug.data.datasets.series import SeriesData
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.lazy import Lazy
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataNotFoundError
from regaug.models import MLP, LSTNet
from regaug.problems import LoadedSplits, Problem


def make_data(n=60):
    return make_manifold("paraboloid", n=n)


def make_net(split):
    return nn.Sequential(nn.Linear(split.train.x.shape[1], 4), nn.ReLU(), nn.Linear(4, 1))


# From a table


def test_a_table_gives_so_many_splits_of_its_rows():
    problem = Problem.from_table(make_data(), splits=4, metric="mae")
    assert (len(problem.splits), problem.metric, problem.name) == (4, "mae", "synthetic-paraboloid")
    assert problem.is_stacked
    assert len({split.test.rows.tobytes() for split in problem.splits}) == 4
    assert all([len(part) for part in s.parts.values()] == [36, 12, 12] for s in problem.splits)


def test_the_seed_decides_which_splits_and_more_of_them_begin_alike():
    few, more, other = (
        Problem.from_table(make_data(), splits=splits, seed=seed)
        for splits, seed in ((2, 0), (3, 0), (2, 1))
    )

    def rows(problem):
        return [split.test.rows.tolist() for split in problem.splits]

    assert rows(more)[:2] == rows(few)
    assert rows(other) != rows(few)


def make_frame(n=60):
    x = np.random.default_rng(0).standard_normal(n)
    city = [f"city {i % 6}" for i in range(n)]
    return pd.DataFrame({"a": x, "city": city, "day": np.arange(n), "price": 2 * x})


def test_the_rule_of_a_table_of_ones_own_can_be_chosen():
    table = read_table(make_frame(), target="price", group="city", drop="day")
    whole = Problem.from_table(table, splits=2).splits[0]
    assert not set(whole.test.groups) & set(whole.train.groups)
    mixed = Problem.from_table(table, splits=2, split="random").splits[0]
    assert set(mixed.test.groups) & set(mixed.train.groups)
    with pytest.raises(ArgumentError, match="`split` must be None for data that knows how"):
        Problem.from_table(make_data(), split="random")


def test_one_split_only_is_said_and_not_repeated():
    table = read_table(make_frame(), target="price", time="day", drop="city")
    problem = Problem.from_table(table, splits=5)
    assert len(problem.splits) == 1
    assert problem.notes == ["This data has one split only, so nothing can be said of certainty."]
    assert Problem.from_table(table, splits=1).notes == []


def test_of_a_large_table_some_rows_are_taken_and_that_is_said():
    problem = Problem.from_table(make_data(200), splits=2, most_rows=50)
    assert problem.notes == ["The study looks at 50 of the 200 rows."]
    assert [len(part) for part in problem.splits[0].parts.values()] == [30, 10, 10]
    assert Problem.from_table(make_data(50), splits=2, most_rows=50).notes == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"splits": 0}, "`splits` must be at least 1"),
        ({"seed": -1}, "`seed` must be"),
        ({"metric": "rsme"}, "`metric` must be one of 'rmse'"),
        ({"split": "weekly"}, "`split` must be"),
    ],
)
def test_a_table_with_wrong_options_is_refused(options, message):
    table = read_table(make_frame(), target="price", drop=["city", "day"])
    with pytest.raises(ArgumentError, match=message):
        Problem.from_table(table, **options)


def make_series(rows=90, columns=2):
    info = Info(name="waves", task="series", metric="rmse", split="By time.")
    values = np.random.default_rng(0).random((rows, columns))
    return SeriesData(values, info=info, window=36, horizon=1)


def test_what_is_no_table_is_refused_with_the_way_out():
    with pytest.raises(ArgumentTypeError, match="`data` must be a table .* got DataFrame"):
        Problem.from_table(make_frame())
    with pytest.raises(ArgumentError, match=r"a series data set\. Take Problem\.named\('waves'\)"):
        Problem.from_table(make_series())


# Named data sets


def test_a_named_table_is_the_problem_of_that_table_with_its_own_metric():
    problem = Problem.named("diabetes", splits=2)
    assert (problem.name, problem.metric, problem.is_stacked) == ("diabetes", "rmse", True)
    expected = Problem.from_table(regaug.data.load("diabetes"), splits=2)
    assert problem.checksum() == expected.checksum()
    assert Problem.named("diabetes", splits=1, metric="r2").metric == "r2"


def test_a_named_series_has_the_network_for_it_and_is_read_where_it_is_used(monkeypatch):
    loaded = []
    monkeypatch.setattr(module, "load", lambda name: loaded.append(name) or make_series())
    module._load_once.cache_clear()
    try:
        problem = Problem.named("electricity", splits=2)
        assert loaded == []
        assert (len(problem.splits), problem.is_stacked, problem.metric) == (2, False, "rmse")
        split = problem.split(1)
        net = problem.make_net(split, seed=0)
        assert isinstance(net, LSTNet)
        assert net(split.train.x[:3]).shape == (3, 2)
        assert loaded == ["electricity"]
    finally:
        module._load_once.cache_clear()


@pytest.mark.slow
def test_a_real_series_is_split_by_time(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    try:
        split = Problem.named("exchange-rate", splits=1).splits[0]
    except DataNotFoundError as error:
        pytest.skip(str(error))
    assert split.train.rows.max() < split.validation.rows.min() < split.test.rows.min()


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(LookupError, match="Did you mean 'airfoil'"):
        Problem.named("airfoyl")


# Splits that are made on demand


def make_split(number):
    return make_manifold("line", n=2000).split(number)


def test_splits_on_demand_are_a_sequence_of_which_two_are_kept():
    made = []

    def make(number):
        made.append(number)
        return make_split(number)

    splits = LoadedSplits(make, 4)
    assert len(splits) == 4
    assert splits[1] is splits[1]
    assert splits[-3] is splits[1]
    assert made == [1]
    assert [s.test.rows.tolist() for s in splits[:2]] == [
        make_split(n).test.rows.tolist() for n in (0, 1)
    ]
    assert [len(split.train) for split in splits] == [1200] * 4
    assert splits[0] is splits[0]
    assert made == [1, 0, 2, 3, 0]  # the first one was not kept
    with pytest.raises(IndexError):
        splits[4]
    with pytest.raises(ArgumentError, match="`count` must be at least 1"):
        LoadedSplits(make_split, 0)


def test_splits_on_demand_travel_as_their_recipe():
    splits = LoadedSplits(make_split, 3)
    assert splits[0].train.x.numel() == 1200
    packed = pickle.dumps(splits)
    assert len(packed) < 500
    assert torch.equal(pickle.loads(packed)[0].train.x, splits[0].train.x)


def test_a_problem_travels_with_its_rows_and_its_network():
    problem = Problem([make_data().split()], make_net, "mae", name="mine", is_scaled=True)
    sent = pickle.loads(pickle.dumps(problem))
    assert sent.checksum() == problem.checksum()
    assert (sent.metric, sent.name, sent.is_scaled, sent.model) == ("mae", "mine", True, make_net)


# Splits and networks of one's own


def test_the_net_for_tables_is_made_for_the_columns_of_the_split():
    problem = Problem([make_data().split()], hidden=(7, 5))
    net = problem.make_net(problem.split(0), seed=3)
    assert isinstance(net, MLP)
    expected = MLP(2, 1, hidden=(7, 5), seed=3)
    for name, weight in expected.state_dict().items():
        assert torch.equal(net.state_dict()[name], weight)


def weights(net):
    return torch.cat([weight.flatten() for weight in net.parameters()])


def test_a_network_of_ones_own_depends_on_the_seed_and_on_nothing_else():
    problem = Problem([make_data().split()], make_net)
    split = problem.split(0)
    assert not problem.is_stacked
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = (weights(problem.make_net(split, seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_network_is_told_the_seed_if_it_asks_for_it():
    told = []

    def make_seeded(split, seed):
        told.append(seed)
        return make_net(split)

    problem = Problem([make_data().split()], make_seeded)
    problem.make_net(problem.split(0), seed=7)
    assert told == [7]


def test_what_is_no_network_is_refused():
    problem = Problem([make_data().split()], lambda split: "net")
    with pytest.raises(ArgumentTypeError, match="`model` must return a torch.nn.Module, got str"):
        problem.make_net(problem.split(0), seed=0)


def test_places_are_those_that_are_named_or_the_networks_own():
    split = make_data().split()
    named = Problem([split], make_net, places=["0", "2"])
    assert named.make_net(named.split(0), seed=0).places == ("0", "2")
    plain = Problem([split], make_net)
    assert not hasattr(plain.make_net(plain.split(0), seed=0), "places")

    def make_mlp(split):
        return MLP(2, 1, hidden=(4, 4))

    own = Problem([split], make_mlp)
    assert own.make_net(own.split(0), seed=0).places == MLP(2, 1, hidden=(4, 4)).places


def test_a_method_acts_at_the_places_that_were_named():
    seen = []

    class Spy(nn.Linear):
        def forward(self, x):
            seen.append(self.training)
            return super().forward(x)

    def make_spied(split):
        return nn.Sequential(nn.Linear(2, 4), Spy(4, 4), nn.Linear(4, 1))

    problem = Problem([make_data().split()], make_spied, places=["1"])
    study = regaug.compare(problem, methods=["manifold-mixup"], trials=1)
    assert study.comparison.row("manifold-mixup").n_failed == 0
    assert True in seen


def test_a_split_is_standardized_unless_it_is_scaled():
    split = make_data().split()
    assert torch.equal(Problem([split]).split(0).train.y, standardize(split).train.y)
    assert Problem([split], is_scaled=True).split(0) is split
    positive = Split(*(replace(part, y=part.y.exp()) for part in split.parts.values()))
    logged = Problem([positive]).split(0, log=True)
    assert logged.log
    assert torch.allclose(logged.train.y, standardize(split).train.y, atol=1e-5)


@pytest.mark.parametrize("splits", [[], (), 7, "ab", [make_data()], [make_data().split(), 1]])
def test_what_is_no_list_of_splits_is_refused(splits):
    with pytest.raises(
        ArgumentTypeError, match=r"`splits` must be a list of splits, .*data\.split"
    ):
        Problem(splits)


def test_standardized_splits_are_refused_because_their_units_are_lost():
    scaled = [standardize(make_data().split())]
    for model in (None, make_net):
        with pytest.raises(ArgumentError, match="own units, got standardized ones"):
            Problem(scaled, model)
    assert Problem(scaled, is_scaled=True).split(0) is scaled[0]


def test_inputs_that_are_read_on_demand_need_a_network_of_ones_own():
    split = make_series().split()
    with pytest.raises(
        ArgumentError, match=r"inputs in memory .* Problem\(splits, model=make_net\)"
    ):
        Problem([split])
    with pytest.raises(ArgumentError, match="Those of a series are scaled; say is_scaled=True"):
        Problem([split], make_net)
    problem = Problem([split], make_net, is_scaled=True)
    assert not problem.is_stacked
    assert problem.split(0) is split


def test_an_unknown_metric_is_refused():
    with pytest.raises(ArgumentError, match="`metric` must be one of 'rmse'"):
        Problem([make_data().split()], metric="rsme")


def test_the_checksum_differs_for_other_inputs_targets_and_numbers_of_splits():
    split = make_data().split()

    def changed(name):
        value = getattr(split.train, name).clone()
        value[3] += 1e-3
        return Split(replace(split.train, **{name: value}), split.validation, split.test)

    problems = [[split], [changed("x")], [changed("y")], [split, split]]
    assert len({Problem(splits).checksum() for splits in problems}) == 4
    whole = Part(split.train.x.clone(), split.train.y.clone(), split.train.rows)
    same = Split(whole, split.validation, split.test)
    assert Problem([same]).checksum() == Problem([split]).checksum()


class Far(Lazy):
    """Inputs that must not be read."""

    def _read(self, place):
        raise AssertionError("read")


def test_inputs_that_are_not_in_memory_are_not_read_for_the_checksum():
    def make(n, start=0):
        y = torch.linspace(0, 1, n)
        part = Part(Far(n, (2,)), y, np.arange(start, start + n))
        return Problem([Split(part, part, part)], make_net)

    found = [own.checksum() for own in (make(5), make(6), make(5, start=1))]
    assert len(set(found)) == 3
    assert make(5).checksum() == found[0]


class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.layer = nn.Linear(2, width)

    def extra_repr(self):
        return repr(object())  # which says where in memory it is

    def forward(self, x):
        return self.layer(x).sum(1)


def make_own(split):
    return Net()


def make_wide(split):
    return Net(4)


def make_commented(split):  # as make_own
    # A comment.
    return Net()


def test_another_network_has_another_key():
    splits = [make_data().split()]

    def key(model):
        return Problem(splits, model).network_key()

    assert key(make_own) == key(make_own)
    assert key(None) == ""
    assert len({key(make_own), key(make_wide), key(make_net)}) == 3
    own, commented = (module._code_of(one) for one in (make_own, make_commented))
    assert own == commented.replace("make_commented", "make_own") != ""
    assert module._code_of(MLP) == module._code_of(3) == ""


# Files of one's own


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(_scripts, "_imported", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "my-study.py"
    path.write_text(
        "from regaug import Problem\n"
        "from regaug.data import load\n"
        "from torch import nn\n"
        "splits = [load('synthetic-sine', n=30).split()]\n"
        "def make_net(split): return nn.Linear(1, 1)\n"
        "def problem(): return Problem(splits, make_net)\n"
        "named = Problem(splits, make_net, name='sine')\n"
        "def other(metric='mae', *more, **any): return Problem(splits, make_net, metric)\n"
        "def nothing(): pass\n"
        "def hungry(a, b=1, *, c): pass\n"
    )
    return path


def test_a_file_gives_its_problem_a_name_and_a_source(file):
    found = Problem.from_file(file)
    assert (found.name, found.source) == ("my-study", f"{file}:problem")
    assert found.kind == "network"
    assert Problem.from_file(f"{file}:named").name == "sine"
    other = Problem.from_file(f"{file}:other")
    assert (other.name, other.metric) == ("my-study-other", "mae")
    assert Problem([make_data().split()]).kind == "table"


def test_what_gives_no_problem_is_refused(file):
    with pytest.raises(ArgumentTypeError, match=r"must return a regaug.Problem, got NoneType\."):
        Problem.from_file(f"{file}:nothing")
    with pytest.raises(ArgumentTypeError, match="function that needs a, c. Give them defaults"):
        Problem.from_file(f"{file}:hungry")
    with pytest.raises(ArgumentTypeError, match="`splits` of my-study.py must be .* got list"):
        Problem.from_file(f"{file}:splits")

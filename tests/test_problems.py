"""Problems: splits, a network and a metric, from tables, named data sets or one's own parts."""

import pickle
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from torch import nn

import regaug
from regaug import _scripts
from regaug.data import read_table, split_dataset, standardize
from regaug.data.base import Info, Part, Split
from regaug.data.datasets.series import SeriesData
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.lazy import Lazy
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataNotFoundError,
    UnknownNameError,
)
from regaug.models import MLP, LSTNet
from regaug.problems import LoadedSplits, Problem, sources
from regaug.problems.networks import code_of


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


@pytest.mark.parametrize(("columns", "most"), [(1, 120), (10, 120), (20, 60), (60, 20), (900, 20)])
def test_of_a_wide_table_fewer_rows_are_taken(columns, most, monkeypatch):
    limits = {"MOST_ROWS": 120, "MOST_NUMBERS": 1200, "FEWEST_ROWS": 20}
    for name, value in limits.items():
        monkeypatch.setattr(sources, name, value)
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((200, columns + 1)))
    table = read_table(frame.rename(columns=str), target="0")
    problem = Problem.from_table(table, splits=2)
    assert problem.notes == [f"The study looks at {most} of the 200 rows."]
    assert sum(len(part) for part in problem.splits[0].parts.values()) == most


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
    monkeypatch.setattr(sources, "load", lambda name: loaded.append(name) or make_series())
    sources._load_once.cache_clear()
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
        sources._load_once.cache_clear()


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


def test_a_method_acts_at_the_places_that_were_named(monkeypatch):
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    changed = dict.fromkeys(("0", "1"), 0)

    class Spied(nn.Sequential):
        """Counts what was changed on the way from one layer to the next."""

        def forward(self, x):
            for place, layer in self.named_children():
                given = []
                handle = layer.register_forward_hook(
                    lambda module, inputs, out, given=given: given.append(out), prepend=True
                )
                x = layer(x)
                handle.remove()
                if self.training and place in changed:
                    changed[place] += not torch.equal(given[0], x)
            return x

    def make_spied(split):
        return Spied(nn.Linear(2, 4), nn.Linear(4, 4), nn.Linear(4, 1))

    problem = Problem([make_data().split()], make_spied, places=["1"])
    study = regaug.compare(problem, methods=["manifold-mixup"], trials=1, splits=2, epochs=2)
    assert study.comparison.row("manifold-mixup").n_failed == 0
    assert changed["1"] > 0
    assert changed["0"] == 0


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


# What must not be mixed


def make_grouped():
    split = make_data().split()
    return Split(
        *(replace(part, groups=part.rows % 3) for part in (split.train, split.validation)),
        replace(split.test, groups=split.test.rows % 3),
    )


def is_low(x):
    return x < 0.5


def test_splits_know_what_must_not_be_mixed():
    problem = Problem([make_grouped()], make_net, pairs_within="group", mask=is_low)
    split = problem.split(0)
    assert (split.pairs_within, split.mask) == ("group", is_low)
    assert torch.equal(split.train.unscaled, problem.splits[0].train.x)
    sent = pickle.loads(pickle.dumps(problem))
    assert sent.split(0).mask is is_low


def test_the_table_net_is_trained_one_by_one_where_something_must_not_be_mixed():
    assert Problem([make_grouped()]).is_stacked
    assert not Problem([make_grouped()], pairs_within="group").is_stacked
    assert not Problem([make_grouped()], mask=is_low).is_stacked


def test_other_groups_or_another_mask_make_another_problem():
    split = make_grouped()
    other = replace(split, train=replace(split.train, groups=split.train.rows % 4))
    problems = [
        Problem([split]),
        Problem([split], pairs_within="group"),
        Problem([other], pairs_within="group"),
        Problem([split], mask=is_low),
        Problem([split], mask=lambda x: x < 0.4),
    ]
    assert len({problem.checksum() for problem in problems}) == 5
    assert Problem([other]).checksum() == problems[0].checksum()


def test_limits_that_cannot_be_kept_are_refused():
    split = make_data().split()
    with pytest.raises(ArgumentError, match="`splits` must have groups for pairs_within='group'"):
        Problem([split], make_net, pairs_within="group")
    with pytest.raises(ArgumentError, match="`pairs_within` must be one of None, 'group'"):
        Problem([split], make_net, pairs_within="city")
    with pytest.raises(ArgumentTypeError, match="`mask` must be a function from a batch of inp"):
        Problem([split], make_net, mask=torch.ones(3))
    with pytest.raises(ArgumentTypeError, match=r"`mask` must be a tensor of torch.bool"):
        Problem([split], make_net, mask=lambda x: x)
    with pytest.raises(ArgumentError, match=r"`mask` must make flags .* ends with KeyError"):
        Problem([split], make_net, mask=lambda x: {}["mask"])


# Regressors


def make_splits():
    return [make_data().split(seed) for seed in range(3)]


def make_forest():
    return ExtraTreesRegressor(5)


def make_knn(split):
    return KNeighborsRegressor(min(3, len(split.train)))


@pytest.mark.parametrize(
    "model", [Ridge(), HistGradientBoostingRegressor, make_forest, make_knn, "trees"]
)
def test_regressors_their_classes_and_their_makers_are_known_as_such(model):
    assert Problem(make_splits(), model).kind == "estimator"


def test_nets_are_nets():
    def make_nothing(split):
        raise RuntimeError("no")

    splits = make_splits()
    assert Problem(splits).kind == "table"
    assert Problem(splits, make_net).kind == "network"
    assert Problem(splits, make_nothing).kind == "network"  # its error comes when it is trained


def test_rows_must_fit_the_splits():
    splits = make_splits()
    with pytest.raises(ArgumentError, match="one for each of the 3 splits, got 2"):
        Problem(splits, Ridge(), rows=[splits[0].train] * 2)
    narrow = replace(splits[0].train, x=splits[0].train.x[:, :1])
    with pytest.raises(ArgumentError, match="inputs and targets of the splits"):
        Problem(splits, Ridge(), rows=[narrow])
    with pytest.raises(ArgumentError, match="needs a regressor"):
        Problem(splits, rows=[splits[0].train])
    with pytest.raises(ArgumentError, match="needs a regressor"):
        Problem(splits, keep_integers=True)


def test_a_regressor_travels_with_its_problem():
    for model in (Ridge(alpha=3.0), make_knn, "trees"):
        problem = Problem(make_splits(), model, keep_integers=True)
        again = pickle.loads(pickle.dumps(problem))
        assert (again.kind, again.model_name) == ("estimator", problem.model_name)
        assert again.keep_integers


def test_a_table_keeps_its_encoders_for_new_rows():
    table = read_table(make_frame(), target="price")
    assert hasattr(Problem.from_table(table, splits=2, model="trees").splits[0], "encoder")
    assert not hasattr(Problem.from_table(table, splits=2).splits[0], "encoder")


def test_an_unknown_regressor_is_refused():
    with pytest.raises(UnknownNameError, match="Unknown regressor 'tree'. Did you mean 'trees'"):
        Problem(make_splits(), "tree")


# Data sets of one's own


def make_pairs(n=30):
    generator = torch.Generator().manual_seed(0)
    drugs, proteins = (torch.randn(n, size, generator=generator) for size in (3, 4))
    return [
        {"drug": drugs[i], "protein": proteins[i], "affinity": drugs[i].sum().item()}
        for i in range(n)
    ]


def test_parts_are_read_when_the_problem_is_made():
    samples = make_pairs()
    problem = Problem(
        [Split(samples[:20], samples[20:25], samples[25:])],
        make_net,
        inputs=lambda own: (own["drug"], own["protein"]),
        targets=lambda own: own["affinity"],
    )
    (split,) = problem.splits
    assert all(isinstance(part, Part) for part in split.parts.values())
    assert [len(part) for part in split.parts.values()] == [20, 5, 5]
    drug, _ = split.test.x[:]
    torch.testing.assert_close(split.test.y[:, 0], drug.sum(1))
    # Nothing is read again.
    assert replace(problem, independent=True).splits[0] is split


def has_values(x):
    return {name: tensor.isfinite() for name, tensor in x.items()}


def test_functions_of_the_moment_do_not_keep_a_problem_from_travelling():
    samples = make_pairs()
    problem = Problem(
        [Split(samples[:20], samples[20:25], samples[25:])],
        make_net,
        inputs=lambda own: {"a": own["drug"]},
        targets=lambda own: own["affinity"],
        mask=has_values,
    )
    sent = pickle.loads(pickle.dumps(problem))
    assert sent.checksum() == problem.checksum()
    assert (sent.inputs, sent.targets, sent.mask) == (None, None, has_values)
    assert problem.inputs is not None


def test_tensors_of_ones_own_become_a_table_too():
    x, y = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)), torch.arange(30.0)
    problem = Problem([Split((x[:20], y[:20]), (x[20:25], y[20:25]), (x[25:], y[25:]))])
    assert problem.kind == "table"
    assert problem.splits[0].test.y[:, 0].tolist() == [25, 26, 27, 28, 29]


def test_the_kind_says_what_is_trained():
    split = make_data().split()
    assert Problem([split]).kind == "table"
    assert Problem([split], make_net).kind == "network"
    assert Problem([split], make_net).is_stacked is False


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"targets": ["price"]}, "`targets` must be a function .*; their names are `target_names`"),
        ({"inputs": 3}, "`inputs` must be a function from a sample to its inputs, got 3"),
        ({"mask": "mask"}, "`mask` must be a function"),
        ({"model": nn.Linear(2, 1)}, "got Linear. Every run trains a fresh one: def make_net"),
        ({"model": 3}, "`model` must be a function that makes a network .* got int"),
        ({"places": "hidden"}, r"`places` must be a list .* Write places=\['hidden'\]"),
    ],
    ids=["targets", "inputs", "mask", "module", "number", "places"],
)
def test_what_is_no_function_is_refused(options, match):
    with pytest.raises(ArgumentTypeError, match=match):
        Problem([make_data().split()], **options)


def test_samples_are_mixed_within_groups_or_anywhere():
    with pytest.raises(ArgumentError, match="`pairs_within` must be one of None, 'group'"):
        Problem([make_data().split()], pairs_within="groups")


def test_codes_are_no_table():
    codes = split_dataset((torch.arange(60).reshape(30, 2), torch.rand(30)), seeds=1)
    with pytest.raises(
        ArgumentTypeError, match="must hold floating-point numbers, got torch.int64"
    ):
        Problem(codes)
    assert Problem(codes, make_net).split(0).train.x.dtype == torch.int64


def test_the_checksum_of_several_tensors_differs_for_other_numbers_in_any_of_them():
    def checksum(**changes):
        tensors = {"a": torch.arange(30.0), "b": torch.arange(60).reshape(30, 2), **changes}
        splits = split_dataset((tensors, torch.arange(30.0)), seeds=[1])
        return Problem(splits, make_net).checksum()

    other = torch.arange(60).reshape(30, 2).clone()
    other[5, 1] += 1
    assert len({checksum(), checksum(), checksum(b=other), checksum(a=-torch.arange(30.0))}) == 3


# One split.


def test_a_single_split_is_repeated_and_others_are_counted():
    split = make_data().split()
    one = Problem([split], make_net)
    assert one.has_one_split
    assert not one.is_repeated
    three = one.with_splits(3)
    assert three.is_repeated
    assert [three.splits[n] is split for n in range(3)] == [True] * 3
    assert len(three.with_splits(5).splits) == 5
    assert not one.with_splits(1).is_repeated
    assert three.checksum() == one.checksum()
    with pytest.raises(IndexError):
        three.splits[3]
    assert three.splits[1:] == [split, split]


def test_the_same_rows_twice_are_one_split_and_other_targets_are_not():
    data = make_data()
    assert Problem([data.split(0), data.split(0)], make_net).has_one_split
    different = Problem([data.split(0), data.split(1)], make_net)
    assert not different.has_one_split
    other = make_manifold("line", n=len(data), seed=5)  # the same places, another draw
    assert not Problem([data.split(0), other.split(0)], make_net).has_one_split
    assert len(different.with_splits(1).splits) == 1
    with pytest.raises(ArgumentError, match=r"`splits` must be at most 2.*got 3\. Make"):
        different.with_splits(3)


def test_splits_on_demand_that_are_one_are_found_by_reading_two():
    data, read = make_data(), []

    def make(number):
        read.append(number)
        return data.split(0)

    problem = Problem(LoadedSplits(make, 10), make_net)
    repeated = problem.with_splits(4)
    assert repeated.is_repeated
    assert sorted(set(read)) == [0, 1]
    assert len(repeated.splits) == 4
    several = Problem(LoadedSplits(data.split, 10), make_net).with_splits(3)
    assert isinstance(several.splits, LoadedSplits)
    assert len(several.splits) == 3


@pytest.mark.parametrize("form", ["list", "loaded", "repeated"])
def test_fewer_rows_are_drawn_from_every_split(form):
    data = make_data()
    forms = {
        "list": Problem([data.split(0), data.split(1)], make_net),
        "loaded": Problem(LoadedSplits(data.split, 2), make_net),
        "repeated": Problem([data.split(0)], make_net).with_splits(2),
    }
    few = forms[form].subsample(20, seed=3)
    assert type(few.splits) is type(forms[form].splits)
    expected = data.split(0).subsample(20, seed=3)
    assert torch.equal(few.splits[0].train.y, expected.train.y)
    assert len(few.splits) == 2


def test_a_problem_says_what_is_trained():
    split = make_data().split()
    assert Problem([split]).kind == "table"
    assert Problem([split], make_net).kind == "network"


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
    own, commented = (code_of(one) for one in (make_own, make_commented))
    assert own == commented.replace("make_commented", "make_own") != ""
    assert code_of(MLP) == code_of(3) == ""


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

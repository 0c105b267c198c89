"""The table of methods: its names, and what one looks like."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regaug import CMixup, KernelPairSampler, Mixup, methods, samplers
from regaug.exceptions import ArgumentError, PlaceError, UnknownNameError
from regaug.methods import OneOf, Reach
from regaug.models import MLP

NAMES = (
    "erm",
    "noise",
    "mixup",
    "manifold-mixup",
    "c-mixup",
    "ada",
    "foma",
    "foma-rho",
    "cems",
    "k-mixup",
    "neighbor-mixup",
    "epbeta-mixup",
    "sk-mixup",
    "feature-mix",
    "teacher-rows",
    "rare",
)


def test_names_are_those_of_the_contract():
    assert methods.names() == NAMES


def test_a_study_tries_only_the_usual_ones_by_itself(registries):
    assert methods.usual() == NAMES[:9]
    own = methods.Method("some", Mixup, {"sampler": "random", "place": "input"})
    methods.register("own", own)
    methods.register("own-unusual", replace(own, usual=False))
    assert methods.usual() == (*NAMES[:9], "own")
    assert methods.names() == (*NAMES, "own", "own-unusual")


def test_those_for_rare_targets_are_known():
    assert [name for name in NAMES if methods.get(name).for_rare] == ["rare"]


def test_an_unknown_method_gets_a_suggestion():
    with pytest.raises(
        UnknownNameError, match=r"Unknown method 'cmixup'. Did you mean 'c-mixup'\?"
    ):
        methods.get("cmixup")


def test_settings_go_to_whom_they_belong():
    method = methods.get("c-mixup")
    ready = method.prepare({"bandwidth": 0.7, "alpha": 0.5}, seed=3)
    sampler, augmentation = ready.sampler(np.arange(10.0), 4), ready.augmentation
    assert sampler.seed == 3
    assert isinstance(sampler, KernelPairSampler)
    assert sampler.bandwidth == 0.7
    assert isinstance(augmentation, CMixup)
    assert augmentation.alpha == 0.5
    assert augmentation.paired


def test_draws_are_seeded_and_within_bounds():
    method = methods.get("mixup")
    draws = [method.draw_settings(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    alphas = [method.draw_settings(np.random.default_rng(seed))["alpha"] for seed in range(300)]
    assert 0.02 <= min(alphas) < 0.03
    assert 1.5 < max(alphas) <= 2.0
    assert np.median(alphas) == pytest.approx(0.2, rel=0.3)  # evenly on a logarithmic scale


def test_a_sampler_that_cannot_draw_as_the_method_does_is_refused():
    method = methods.get("c-mixup")
    with pytest.raises(ValueError, match="must be 'kernel-pairs' for this method.*bandwidth"):
        method.prepare({"sampler": "random"}).sampler(torch.randn(20), 4)


def test_every_option_of_the_augmentation_is_a_setting():
    method = methods.get("foma-rho")
    augmentation = method.prepare({"scale": "leading", "append": True, "center": True}).augmentation
    assert (augmentation.scale, augmentation.append, augmentation.center) == ("leading", True, True)
    with pytest.raises(LookupError, match="Unknown setting 'generator'"):
        method.settings(generator=None)


def test_places_are_those_that_the_model_names():
    method, net = methods.get("foma-rho"), MLP(3)
    for given, found in (
        ("layer", "block_1"),
        ("both", "block_1"),
        ("layers", ("block_1", "block_2")),
        (["block_2"], ("block_2",)),
        ("head", "head"),
    ):
        ready = method.prepare({"place": given})
        assert ready.place(net) == found
        assert ready.inputs_too == (given == "both")
        assert ready.at(net) is not None
    assert method.prepare().at(net) is None  # the inputs
    with pytest.raises(RuntimeError, match="name a layer as `place`, one of '0'"):
        method.prepare({"place": "layer"}).place(torch.nn.Sequential(torch.nn.Linear(1, 1)))


def test_rows_are_read_only_by_a_method_that_learns():
    class Lazy:
        reads = 0

        def __getitem__(self, rows):
            self.reads += 1
            return torch.randn(40, 3)[rows]

    x, y = Lazy(), torch.randn(40, 1)
    methods.get("foma-rho").prepare().fit(x, y)
    assert x.reads == 0
    ready = methods.get("ada").prepare().fit(x, y)
    assert x.reads == 1
    assert len(ready.augmentation.centroids)


def test_pairs_act_at_one_place_only():
    with pytest.raises(PlaceError, match="got 'both': the first of the two places"):
        methods.get("c-mixup").prepare({"place": "both"})


@pytest.mark.parametrize("name", methods.names())
def test_groups_change_the_batches_of_those_who_need_company(name):
    y, labels = torch.randn(60), torch.arange(60) % 4  # a row meets two others of its group
    ready = methods.get(name).prepare()
    ready.fit(torch.randn(60, 3), y, groups=labels)
    sampler, plain = ready.sampler(y, 10, groups=labels), ready.sampler(y, 10)
    assert len(sampler) == len(plain) == 6
    of_one = [len(labels[batch].unique()) == 1 for batch in sampler]
    if name in ("erm", "noise", "cems", "teacher-rows", "rare"):
        sampler.set_epoch(0)
        assert list(sampler) == list(plain)
    elif name == "c-mixup":
        assert all((labels[b[:10]] == labels[b[10:]]).all() for b in sampler)
    else:
        assert sum(of_one) == 4  # of 15 rows of a group 10 fill a batch


def test_random_batches_stay_where_partners_are_found_in_them():
    y = torch.randn(60)
    few, many = torch.arange(60) % 2, torch.arange(60) % 20  # 6.8 others in a batch, and half a one
    ready = methods.get("mixup").prepare()
    plain = list(ready.sampler(y, 15))
    assert list(ready.sampler(y, 15, groups=few)) == plain
    assert list(ready.sampler(y, 15, groups=many)) != plain
    nearest = methods.get("mixup").prepare({"sampler": "nearest"})
    assert list(nearest.sampler(y, 15, groups=few)) != list(nearest.sampler(y, 15))


def test_a_sampler_that_knows_no_groups_is_refused(registries):
    class Plain(samplers.RandomBatchSampler):
        def __init__(self, y, batch_size, *, seed=0, drop_last=False):
            super().__init__(y, batch_size, seed=seed, drop_last=drop_last)

    samplers.register("plain", Plain)
    ready = methods.get("mixup").prepare({"sampler": "plain"})
    with pytest.raises(ArgumentError, match="`sampler` must take `groups`.*'plain' does not"):
        ready.sampler(torch.randn(60), 10, groups=torch.arange(60) % 4)
    assert len(ready.sampler(torch.randn(60), 10)) == 6


# Methods that make rows


def test_methods_that_act_on_inputs_make_rows():
    makers = {name: methods.get(name).as_maker() for name in NAMES}
    assert {name for name, maker in makers.items() if maker is None} == {
        "erm",
        "manifold-mixup",
        "rare",
    }
    for name, maker in makers.items():
        if maker is None:
            continue
        drawn = maker.draw_settings(np.random.default_rng(0))
        assert 0.05 <= drawn["share"] <= 2.0
        assert drawn["place"] == maker.defaults["place"] == "input"
        # When to act in a training says nothing of rows.
        assert not {"p", "anneal", "append"} & {*drawn, *maker.space, *maker.defaults}
        own = {name: value for name, value in drawn.items() if name != "share"}
        methods.get(name).prepare(own)


def test_a_method_may_have_a_share_of_its_own():
    own = methods.Method("some", Mixup, {"sampler": "random", "place": "input", "share": 0.0})
    maker = own.as_maker()
    assert maker.defaults["share"] == 0.0
    assert maker.space == {}
    own.prepare()  # the augmentation is not told


def test_a_method_that_can_act_on_inputs_does_so_to_make_rows():
    space = {"place": methods.OneOf(("layer", "input"))}
    both = methods.Method("some", Mixup, {"sampler": "random", "place": "layer"}, space)
    assert both.as_maker().defaults["place"] == "input"
    layer = methods.Method("some", Mixup, {"sampler": "random", "place": "layer"})
    assert layer.as_maker() is None


def test_what_stands_beside_the_methods_makes_rows_too():
    assert methods.get_maker("no-rows").settings() == {}
    assert methods.get_maker("rows").settings() == {"share": 1.0}
    assert methods.get_maker("repeats").settings() == {"share": 0.5}
    assert methods.get_maker("smogn").settings(focus="high")["focus"] == "high"
    assert [name for name in methods.MAKERS if methods.is_for_rare(name)] == ["smogn"]
    with pytest.raises(UnknownNameError, match="Did you mean 'mixup'"):
        methods.get_maker("mixupp")


# Where a method can act

NO_LAYER, CODES, PASSED_BY = Reach(layers=False), Reach(inputs=False), Reach(pairs=False)


@pytest.mark.parametrize("name", NAMES)
def test_where_everything_is_possible_a_method_stays_as_it_is(name):
    assert methods.get(name).placed(Reach()) == methods.get(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("reach", "allowed"), [(NO_LAYER, {"input"}), (CODES, {"layer", "layers"})]
)
def test_settings_act_only_where_it_is_possible(name, reach, allowed):
    method = methods.get(name).placed(reach)
    if method is None or name in ("erm", "rare"):
        return
    drawn = [method.draw_settings(np.random.default_rng(seed)) for seed in range(20)]
    starts = [method.settings(**start) for start in method.starts]
    assert {own["place"] for own in [method.settings(), *starts, *drawn]} <= allowed


@pytest.mark.parametrize(
    ("reach", "left_out"),
    [
        (NO_LAYER, ["manifold-mixup"]),
        (CODES, ["ada", "cems", "feature-mix", "teacher-rows"]),
        (PASSED_BY, []),
        (
            Reach(inputs=False, pairs=False),
            ["c-mixup", "ada", "cems", "feature-mix", "teacher-rows"],
        ),
        (Reach(inputs=False, layers=False), list(NAMES[1:-1])),  # batches are drawn anywhere
    ],
)
def test_what_can_act_nowhere_is_none(reach, left_out):
    assert [name for name in NAMES if methods.get(name).placed(reach) is None] == left_out


def test_what_uses_up_pairs_stays_away_from_layers_that_samples_go_past():
    assert methods.get("c-mixup").placed(PASSED_BY).space["place"] == OneOf(("input",))
    assert methods.get("foma").placed(PASSED_BY) == methods.get("foma")


def test_a_layer_by_its_name_needs_no_list_of_places():
    start = {"sampler": "random", "place": "encoder", "p": 1.0}
    method = methods.Method("mix at the encoder", Mixup, start)
    assert method.placed(NO_LAYER).defaults == start
    both = methods.Method("mix at both", Mixup, {**start, "place": "both"})
    assert both.placed(NO_LAYER) is None
    assert both.placed(CODES) is None
    assert both.placed(Reach()).defaults["place"] == "both"

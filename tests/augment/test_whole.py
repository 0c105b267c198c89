"""Categories that are taken whole: alone, in stacks, in trainings, and where a study tries it."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regaug import ADA, CEMS, FOMA, CMixup, Compose, GaussianNoise, Mixup, Problem, SKMixup, methods
from regaug.data import read_table, standardize
from regaug.exceptions import ArgumentError
from regaug.methods import OneOf, Reach
from regaug.studies.plan import make_plan
from regaug.studies.search import draw_settings
from regaug.studies.tpe import suggest_settings
from regaug.training import Settings, fit
from regaug.training.stacked import fit_many
from regaug.training.stacked.training import make_table_net

MIXING = {
    "mixup": Mixup,
    "epbeta": lambda **own: Mixup(spread="keep", alpha=2.0, **own),
    "neighbors": lambda **own: Mixup(pairs="neighbors", **own),
    "c-mixup": CMixup,
    "sk-mixup": SKMixup,
}
MOVING = {
    "foma": lambda **own: FOMA(k=1, **own),
    "cems-batch": lambda **own: CEMS(d=2, **own),
    "cems": lambda **own: CEMS(sigma=0.3, d=2, neighbors=6, **own),
    "ada": lambda **own: ADA(clusters=2, **own),
    "noise": lambda **own: GaussianNoise(sigma=0.3, relative=0.1, **own),
}
ALL = MIXING | MOVING
BLOCKS = [0, 1, 1, 1, 2, 3, 3]  # numbers stand at 0 and 4


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def make_batch(n=20, seed=0):
    generator = seeded(seed)
    levels = [torch.randint(count, (n,), generator=generator) for count in (3, 2)]
    first, second = (
        nn.functional.one_hot(own, count).double() * 1.7 - 0.4  # standardized, so not 0 and 1
        for own, count in zip(levels, (3, 2), strict=True)
    )
    a, b = torch.randn(2, n, 1, generator=generator, dtype=torch.float64)
    return torch.cat([a, first, b, second], 1), torch.randn(n, generator=generator).double()


def whole(make, seed=0, *, batch=None, **own):
    x, y = batch or make_batch()
    return make(categories="whole", generator=seeded(seed), **own).fit(x, y, blocks=BLOCKS)


def parts_of(x):
    return x[..., [1, 2, 3, 5, 6]], x[..., [0, 4]]


@pytest.mark.parametrize("name", ALL)
@given(n=st.integers(6, 20), seed=st.integers(0, 99))
@settings(max_examples=8)
def test_levels_of_a_new_row_are_all_those_of_one_of_its_parents(name, n, seed):
    x, y = make_batch(n, seed)
    augment = whole(ALL[name], seed, batch=(x, y))
    new_x, _ = augment(x, y)
    own, _ = parts_of(x)
    new, _ = parts_of(new_x)
    other = (
        own if name in MOVING or augment.params.partners is None else own[augment.params.partners]
    )
    assert ((new == own).all(1) | (new == other).all(1)).all()


@pytest.mark.parametrize("name", ALL)
def test_numbers_and_targets_are_what_they_are_without(name):
    x, y = make_batch()
    plain = ALL[name](generator=seeded(3)).fit(x, y)
    (new_x, new_y), (old_x, old_y) = whole(ALL[name], 3)(x, y), plain(x, y)
    torch.testing.assert_close(parts_of(new_x)[1], parts_of(old_x)[1])
    torch.testing.assert_close(new_y, old_y)
    assert not torch.equal(parts_of(new_x)[0], parts_of(old_x)[0])


def test_levels_come_from_the_partner_as_often_as_its_share_says():
    x, y = make_batch(4000)
    augment = whole(lambda **own: Mixup(alpha=1.0, **own), batch=(x, y))
    for _ in range(5):
        augment(x, y)
        share = augment.params.swapped.double().mean().item()
        assert share == pytest.approx(1.0 - augment.params.lam, abs=0.03)


@pytest.mark.parametrize("name", ALL)
def test_without_columns_that_belong_together_nothing_changes(name):
    x, y = make_batch()
    for blocks in (None, [*range(7)]):
        one = ALL[name](generator=seeded(1)).fit(x, y)
        other = ALL[name](categories="whole", generator=seeded(1)).fit(x, y, blocks=blocks)
        for new, old in zip(other(x, y), one(x, y), strict=True):
            assert torch.equal(new, old)
        assert torch.equal(one.generator.get_state(), other.generator.get_state())


@pytest.mark.parametrize("name", ALL)
def test_a_stack_draws_and_makes_what_its_runs_do_alone(name):
    batches = [make_batch(seed=run) for run in range(4)]
    x, y = (torch.stack(values) for values in zip(*batches, strict=True))

    def make_runs():
        blocks = [BLOCKS, None, [0, 0, 1, 1, 2, 3, 4], BLOCKS]  # their own, and none at all
        kinds = ["whole", "whole", "whole", "mix"]
        return [
            ALL[name](categories=kind, generator=seeded(run)).fit(*batch, blocks=own)
            for run, (batch, own, kind) in enumerate(zip(batches, blocks, kinds, strict=True))
        ]

    runs, others = make_runs(), make_runs()
    assert len({run.structure for run in runs}) == 1
    for _ in range(3):
        stacked = type(runs[0]).across_runs(runs, x, y)
        alone = [run(*batch) for run, batch in zip(others, batches, strict=True)]
        for new, ones in zip(stacked, zip(*alone, strict=True), strict=True):
            torch.testing.assert_close(new, torch.stack(ones), rtol=0, atol=1e-9)
    if name in MIXING:
        drawn = [run.params.swapped for run in runs]
        assert [own is None for own in drawn] == [False, True, False, True]
        for own, other in zip(drawn, (run.params.swapped for run in others), strict=True):
            assert own is other is None or torch.equal(own, other)


def test_pairs_that_the_batch_brings_along_are_taken_whole_in_a_stack_too():
    batches = [make_batch(seed=run) for run in range(2)]
    x, y = (torch.stack(values) for values in zip(*batches, strict=True))
    make = lambda **own: CMixup(paired=True, **own)  # noqa: E731
    runs, others = ([whole(make, run, batch=batches[run]) for run in range(2)] for _ in range(2))
    new_x, _ = CMixup.across_runs(runs, x, y)
    for own, other, (own_x, own_y) in zip(new_x, others, batches, strict=True):
        torch.testing.assert_close(own, other(own_x, own_y)[0])
        levels, before = parts_of(own)[0], parts_of(own_x)[0]
        assert ((levels == before[:10]).all(1) | (levels == before[10:]).all(1)).all()


@pytest.mark.parametrize("name", ALL)
def test_what_a_layer_puts_out_has_no_categories(name):
    if name == "cems":
        pytest.skip("knows neighbors of inputs alone")
    x, y = make_batch()
    net = nn.Sequential(nn.Linear(7, 7), nn.ReLU(), nn.Linear(7, 1)).double()
    plain, other = ALL[name](generator=seeded(1)).fit(x, y), whole(ALL[name], 1)
    for new, old in zip(other.at(net, "1")(x, y), plain.at(net, "1")(x, y), strict=True):
        torch.testing.assert_close(new, old, rtol=0, atol=0)


def test_a_block_stays_where_a_value_of_it_is_not_there():
    x, y = make_batch()
    mask = torch.ones_like(x, dtype=torch.bool)
    mask[:10, 2] = False  # one level of the first category
    for name in ("mixup", "sk-mixup", "noise"):
        new_x, _ = whole(ALL[name])(x, y, mask=mask)
        assert torch.equal(new_x[:10, 1:4], x[:10, 1:4])
        assert {tuple(row) for row in new_x[:, 1:4].tolist()} <= {
            tuple(row) for row in x[:, 1:4].tolist()
        }


def test_a_chain_hands_the_blocks_on_and_a_saved_state_knows_them():
    x, y = make_batch()
    chain = Compose(Mixup(categories="whole"), GaussianNoise(0.5, categories="whole"))
    chain.fit(x, y, blocks=BLOCKS)
    other = Compose(Mixup(categories="whole"), GaussianNoise(0.5, categories="whole"))
    other.load_state_dict(chain.state_dict())
    new_x, _ = chain(x, y)
    levels = {tuple(row) for row in parts_of(x)[0].tolist()}
    assert {tuple(row) for row in parts_of(new_x)[0].tolist()} <= levels
    assert torch.equal(other(x, y)[0], new_x)
    assert "blocks" not in Mixup().state_dict()


def test_wrong_wishes_are_refused():
    with pytest.raises(ArgumentError, match="`categories` must be one of 'mix', 'whole'"):
        Mixup(categories="both")
    x, y = make_batch()
    augment = Mixup(categories="whole").fit(x, y, blocks=BLOCKS)
    with pytest.raises(ArgumentError, match="`blocks` must have a number for each of the 3"):
        augment(x[:, :3], y)


# In trainings and studies


def make_table(with_city=True, n=90):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=n), "age": rng.normal(size=n)})
    frame["city"] = rng.choice(["Oslo", "Rome", "Lima"], size=n)
    frame["price"] = frame["size"] + (frame["city"] == "Oslo") + 0.1 * rng.normal(size=n)
    return read_table(frame if with_city else frame.drop(columns="city"), target="price")


@pytest.mark.parametrize("name", ["mixup", "c-mixup", "foma-rho", "cems", "noise", "sk-mixup"])
def test_a_stack_of_trainings_is_its_trainings_alone(name):
    split = standardize(make_table().split(seed=0))
    own = [{"categories": kind, "anneal": None, "place": "input"} for kind in ("whole", "mix")]
    tried = [Settings(epochs=2, batch_size=16, seed=5, method_settings=kind) for kind in own]
    stacked = fit_many(split, name, tried, hidden=(8,), dtype=torch.float64)
    losses = [[epoch.loss for epoch in result.history] for result in stacked]
    assert losses[0] != losses[1]
    for kind, one in zip(tried, losses, strict=True):
        net = make_table_net(split, kind, hidden=(8,))
        alone = fit(net, split, name, kind)
        assert [epoch.loss for epoch in alone.history] == pytest.approx(one, rel=1e-4)


MIXES = [name for name in methods.names() if "categories" in methods.get(name).options]


def test_a_study_tries_it_where_columns_belong_together_and_nowhere_else():
    assert {"mixup", "c-mixup", "sk-mixup", "foma", "foma-rho", "cems"} <= set(MIXES)
    for name in MIXES:
        known = methods.get(name)
        assert known.placed(Reach()) == known
        found = known.placed(Reach(categories=True)).space.get("categories")
        assert found == (None if name == "manifold-mixup" else OneOf(("mix", "whole")))
        deep = known.placed(Reach(inputs=False, categories=True))
        assert deep is None or "categories" not in deep.space
        maker = known.as_maker()
        if maker is not None:
            assert "categories" in maker.placed(Reach(categories=True)).space


@pytest.mark.parametrize("model", [None, "ridge"])
def test_the_plan_of_a_table_without_categories_is_as_before(model):
    for with_city in (False, True):
        problem = Problem.from_table(make_table(with_city), splits=2, model=model)
        plan = make_plan(problem, methods=["mixup", "foma-rho", "noise"], trials=9)
        kinds = {
            run.settings.method_settings.get("categories")
            for run in plan.runs
            if run.settings is not None and run.method == "mixup"
        }
        assert plan.config.categories is with_city
        assert ("categories" in plan.config.to_dict()) is with_city
        assert kinds == ({"mix", "whole"} if with_city else {None})
    before = draw_settings("mixup", 9, seed=0)
    learned = suggest_settings(
        "mixup",
        draw_settings("mixup", 5, seed=0, reach=Reach(categories=True)),
        [[0.1, 0.2, 0.3]] * 5,
        4,
        seed=0,
        reach=Reach(categories=True),
    )
    assert {own["categories"] for own in learned} <= {"mix", "whole"}
    assert before == draw_settings("mixup", 9, seed=0, reach=Reach())

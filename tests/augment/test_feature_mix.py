"""FeatureMix: what it draws, blocks that stay whole, what the targets become."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck

from regaug import Compose, FeatureMix, GaussianNoise
from regaug.augment.feature_mix import FeatureMixParams
from regaug.exceptions import ArgumentError, ArgumentTypeError, NotFittedError
from regaug.functional.information import mutual_information

TARGETS = ("share", "information", "keep")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def make_batch(n=16, d=6, seed=0, targets=(), dtype=torch.float32):
    generator = seeded(seed)
    x = torch.randn(n, d, generator=generator)
    return x.to(dtype), torch.randn(n, *targets, generator=generator).to(dtype)


def make_table(n, levels, seed=0, dtype=torch.float32):
    """Two numbers and a category for each of ``levels``; and the blocks."""
    generator = seeded(seed)
    codes = [torch.randint(count, (n,), generator=generator) for count in levels]
    flags = [nn.functional.one_hot(own, count) for own, count in zip(codes, levels, strict=True)]
    x = torch.cat([torch.randn(n, 2, generator=generator), *flags], dim=1).to(dtype)
    blocks = [0, 1, *(2 + i for i, count in enumerate(levels) for _ in range(count))]
    return x, torch.randn(n, generator=generator).to(dtype), blocks


tables = st.builds(
    make_table,
    n=st.integers(1, 20),
    levels=st.lists(st.integers(1, 6), max_size=4),
    seed=st.integers(0, 999),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
)


# Blocks


@given(tables, st.sampled_from(TARGETS), st.none() | st.floats(0.01, 1.0), st.integers(0, 99))
def test_a_category_stays_one_level_of_its_own_in_every_draw(table, targets, rate, seed):
    x, y, blocks = table
    options = {"rate": rate, "targets": targets, "blocks": blocks}
    augment = FeatureMix(**options, generator=seeded(seed)).fit(x, y)
    for _ in range(3):
        new_x, new_y = augment(x, y)
        for block in range(2, max(blocks) + 1):
            own = new_x[:, torch.tensor(blocks) == block]
            assert ((own == 0) | (own == 1)).all()
            assert (own.sum(dim=1) == 1).all()
        assert new_y.isfinite().all()
        # No number is made up: each is one of its column.
        assert (new_x[:, None, :2] == x[None, :, :2]).any(dim=1).all()


@given(tables, st.integers(0, 99))
def test_a_block_is_all_of_the_row_or_all_of_the_partner(table, seed):
    x, y, blocks = table
    augment = FeatureMix(blocks=blocks, generator=seeded(seed))
    new_x, _ = augment(x, y)
    if augment.params.partners is None:  # of the base class: nothing to swap
        assert new_x is x
        return
    partners, swapped = augment.params.partners, augment.params.swapped
    for i, j in enumerate(partners.tolist()):
        for block in range(swapped.shape[1]):
            own = torch.tensor(blocks) == block
            assert torch.equal(new_x[i, own], x[j if swapped[i, block] else i, own])


def test_without_blocks_every_column_is_one():
    x, y = make_batch()
    plain, named = FeatureMix(), FeatureMix(blocks=[7, 3, 11, -4, 0, 5])
    for _ in range(3):
        assert all(map(torch.equal, plain(x, y), named(x, y)))
    assert plain.params.swapped.shape == (16, 6)


def test_blocks_that_a_training_is_told_give_way_to_those_that_were_given():
    x, y, blocks = make_table(30, [3, 4])
    told, given_ = FeatureMix(), FeatureMix(blocks=[0] * 8 + [1])
    for augment in (told, given_, Compose(told, GaussianNoise(0.0))):
        augment.learn_blocks(blocks)
    assert told.blocks.tolist() == blocks
    assert given_.blocks.tolist() == [0] * 8 + [1]
    assert told(x, y)[0].shape == x.shape
    assert told.params.swapped.shape == (30, 4)


def test_the_columns_of_several_tensors_count_one_after_the_other():
    x, y, blocks = make_table(12, [3])
    whole = FeatureMix(blocks=blocks)(x, y)
    parts, new_y = FeatureMix(blocks=blocks)({"numbers": x[:, :2], "flags": x[:, 2:]}, y)
    assert torch.equal(torch.cat([parts["numbers"], parts["flags"]], dim=1), whole[0])
    assert torch.equal(new_y, whole[1])


# How many, and who


@given(st.integers(2, 12), st.floats(0.01, 1.0), st.integers(0, 99))
def test_every_row_gets_the_share_of_blocks_that_was_asked_for(d, rate, seed):
    x, y = make_batch(8, d)
    augment = FeatureMix(rate=rate, generator=seeded(seed))
    augment(x, y)
    wanted = min(max(1, int(np.floor(rate * d + 0.5))), d - 1)
    assert (augment.params.swapped.sum(dim=1) == wanted).all()
    assert sorted(augment.params.partners.tolist()) == list(range(8))


def test_a_drawn_share_is_that_of_the_beta_distribution():
    x, y = make_batch(2, 100)
    augment = FeatureMix(alpha=2.0)
    shares = []
    for _ in range(4000):
        augment(x, y)
        shares.append(augment.params.swapped[0].double().mean().item())
    # Beta(2, 2) has the mean 1 / 2 and the variance 1 / 20.
    assert np.mean(shares) == pytest.approx(0.5, abs=0.01)
    assert np.var(shares) == pytest.approx(0.05, rel=0.06)


def test_every_subset_is_as_likely():
    x, y = make_batch(1000, 4)
    augment, found = FeatureMix(rate=0.5), np.zeros(16)
    for _ in range(30):
        augment(x, y)
        codes = (augment.params.swapped * torch.tensor([1, 2, 4, 8])).sum(dim=1)
        found += np.bincount(codes, minlength=16)
    sizes = np.array([code.bit_count() for code in range(16)])
    assert (found[sizes != 2] == 0).all()
    np.testing.assert_allclose(found[sizes == 2] / found.sum(), 1 / 6, atol=0.01)


# Targets


@given(st.integers(2, 12), st.integers(0, 99))
def test_by_share_the_target_is_the_share_of_blocks_in_closed_form(d, seed):
    x, y = make_batch(9, d, dtype=torch.float64)
    augment = FeatureMix(generator=seeded(seed))
    _, new_y = augment(x, y)
    share = int(augment.params.swapped[0].sum()) / d
    torch.testing.assert_close(new_y, y + share * (y[augment.params.partners] - y))


def test_by_information_a_block_weighs_what_it_tells_about_each_target():
    x, _, blocks = make_table(400, [3], dtype=torch.float64)
    y = torch.stack([x[:, 0], x[:, 0] + x[:, 2:].argmax(dim=1)], dim=1)
    augment = FeatureMix(targets="information", blocks=blocks).fit(x, y)
    told = mutual_information(x, y, blocks=torch.tensor(blocks))
    torch.testing.assert_close(augment.weights, told / told.sum(dim=0))
    assert augment.weights[0, 0] > 0.9
    assert augment.weights[2, 1] > 0.2
    _, new_y = augment(x[:30], y[:30])
    partners, swapped = augment.params.partners, augment.params.swapped
    share = torch.stack(
        [
            sum((augment.weights[b] for b in range(3) if row[b]), torch.zeros(2).double())
            for row in swapped
        ]
    )
    torch.testing.assert_close(new_y, y[:30] + share * (y[:30][partners] - y[:30]))


def test_where_nothing_tells_anything_all_blocks_weigh_the_same():
    x, _ = make_batch(50)
    augment = FeatureMix(targets="information").fit(x, torch.ones(50))
    torch.testing.assert_close(augment.weights, torch.full((6, 1), 1 / 6, dtype=torch.float64))


def test_of_many_training_rows_a_part_is_looked_at(monkeypatch):
    x, y = make_batch(1001)
    monkeypatch.setattr("regaug.augment.feature_mix._MOST_ROWS", 200)
    augment = FeatureMix(targets="information").fit(x, y)
    some = FeatureMix(targets="information").fit(x[::6], y[::6])
    assert torch.equal(augment.weights, some.weights)


def test_kept_targets_are_those_of_the_rows():
    x, y = make_batch()
    new_x, new_y = FeatureMix(rate=0.3, targets="keep")(x, y)
    assert torch.equal(new_y, y)
    assert not torch.equal(new_x, x)


# Ugly batches


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_batches_without_anything_to_swap_stay_as_they_are(targets, dtype):
    one_row = make_batch(1, 4, dtype=dtype)
    equal_rows = tuple(own[:1].expand(8, *own.shape[1:]) for own in one_row)
    x, y = make_batch(8, 1, dtype=dtype)
    constant = torch.ones(8, 3, dtype=dtype), y
    for batch in (one_row, equal_rows, (x, y)):  # the last one has one block
        augment = FeatureMix(targets=targets).fit(*batch)
        for _ in range(5):
            assert all(map(torch.equal, augment(*batch), batch))
    augment = FeatureMix(targets=targets, blocks=[5, 5, 5]).fit(*constant)
    assert augment(*constant)[0] is constant[0]
    assert augment.params is augment.neutral
    new_x, new_y = FeatureMix(targets=targets).fit(*constant)(*constant)
    assert torch.equal(new_x, constant[0])
    assert new_y.isfinite().all()


def go_through_random_batches(count):
    rng = np.random.default_rng(0)
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for number in range(count):
        n, d, m = rng.integers(1, 17), rng.integers(1, 9), rng.integers(1, 3)
        dtype = dtypes[number % 4]
        largest = 4.0 if dtype == torch.float16 else 30.0
        scale = torch.from_numpy(10.0 ** rng.uniform(-largest, largest, d + m))
        rows = torch.from_numpy(rng.standard_normal((n, d + m))) * scale
        if number % 5 == 0:
            rows = rows[rng.integers(n, size=n)]  # duplicates
        x, y = rows.to(dtype).split([int(d), int(m)], dim=1)
        if not (x.isfinite().all() and y.isfinite().all()):
            continue
        rate = None if number % 2 else float(rng.uniform(0.01, 1.0))
        augment = FeatureMix(
            float(rng.uniform(0.02, 3.0)),
            rate=rate,
            targets=TARGETS[number % 3],
            blocks=rng.integers(0, 4, d),
            generator=seeded(number),
        )
        new_x, new_y = augment.fit(x, y)(x, y)
        assert new_x.isfinite().all()
        assert new_y.isfinite().all()


def test_random_batches_stay_finite():
    go_through_random_batches(300)


@pytest.mark.slow
def test_many_random_batches_stay_finite():
    go_through_random_batches(100_000)


# Masks, layers, stacks


def test_a_block_is_swapped_where_both_rows_have_all_of_it():
    x, y, blocks = make_table(20, [3], dtype=torch.float64)
    mask = torch.rand(20, 5, generator=seeded(1)) < 0.8
    gaps = x.masked_fill(~mask, torch.nan)
    augment = FeatureMix(rate=0.5, blocks=blocks)
    new_x, new_y = augment(gaps, y, mask=mask)
    partners, swapped = augment.params.partners, augment.params.swapped
    for i, j in enumerate(partners.tolist()):
        taken = 0
        for block in range(3):
            own = torch.tensor(blocks) == block
            is_taken = bool(swapped[i, block] and mask[i, own].all() and mask[j, own].all())
            taken += is_taken
            expected = gaps[j if is_taken else i, own]
            torch.testing.assert_close(new_x[i, own], expected, equal_nan=True)
        torch.testing.assert_close(new_y[i], y[i] + taken / 3 * (y[j] - y[i]))


@pytest.mark.parametrize("targets", TARGETS)
def test_at_a_layer_every_unit_is_a_block(targets):
    x, y, blocks = make_table(24, [3])
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1)).double()
    x, y = x.double(), y.double()[:, None]
    augment = FeatureMix(targets=targets, blocks=blocks).fit(x, y)
    prediction, new_y = augment.at(net, "1")(x, y)
    partners, swapped = augment.params.partners, augment.params.swapped
    assert swapped.shape == (24, 7)
    hidden = net[1](net[0](x))
    torch.testing.assert_close(prediction, net[2](torch.where(swapped, hidden[partners], hidden)))
    share = 0.0 if targets == "keep" else int(swapped[0].sum()) / 7
    torch.testing.assert_close(new_y, y + share * (y[partners] - y))
    augment(x, y)  # and on the inputs again as before
    assert augment.params.swapped.shape == (24, 3)


def test_the_gradient_at_a_layer_matches_finite_differences():
    x, y = make_batch(5, 3, dtype=torch.float64, targets=(1,))
    augment = FeatureMix()
    params = augment.draw(x, y)

    def call(x, y):
        return augment.transform(x, y, params)

    assert gradcheck(call, (x.requires_grad_(), y.requires_grad_()))


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("rate", [None, 0.4])
def test_runs_of_a_stack_have_blocks_of_their_own(targets, rate):
    tables = [make_table(30, levels, seed=i) for i, levels in enumerate([[3, 2], [2, 3], [4, 1]])]
    x, y = (torch.stack([table[i] for table in tables]).double() for i in range(2))

    def make_runs():
        return [
            FeatureMix(rate=rate, targets=targets, blocks=blocks, generator=seeded(run)).fit(
                x[run], y[run]
            )
            for run, (_, _, blocks) in enumerate(tables)
        ]

    runs = make_runs()
    assert len({run.structure for run in runs}) == 1
    for _ in range(3):
        stacked = FeatureMix.across_runs(runs, x, y)
    others = make_runs()
    for _ in range(3):
        alone = [run(*batch) for run, batch in zip(others, zip(x, y, strict=True), strict=True)]
    for new, ones in zip(stacked, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(new, torch.stack(ones), rtol=0, atol=1e-12)


def test_runs_with_other_numbers_of_blocks_are_not_stacked():
    structures = {FeatureMix(blocks=blocks).structure for blocks in ([0, 0, 1], [0, 1, 2], [0] * 3)}
    assert len(structures) == 3
    assert FeatureMix().structure == FeatureMix(blocks=[0, 1, 2]).structure
    assert FeatureMix().structure != FeatureMix(rate=0.1).structure
    assert FeatureMix().structure != FeatureMix(targets="keep").structure


def test_one_block_is_left_alone_in_a_stack_too():
    x, y = torch.randn(3, 8, 1), torch.randn(3, 8, 1)
    runs = [FeatureMix(generator=seeded(run)) for run in range(3)]
    states = [run.generator.get_state() for run in runs]
    new_x, new_y = FeatureMix.across_runs(runs, x, y)
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)
    assert all(run.params is FeatureMix.neutral for run in runs)
    assert all(map(torch.equal, (run.generator.get_state() for run in runs), states))


def test_a_saved_state_knows_blocks_and_weights():
    x, y, blocks = make_table(60, [3])
    augment = FeatureMix(targets="information")
    augment.learn_blocks(blocks)
    augment.fit(x, y)
    other = FeatureMix(targets="information")
    other.load_state_dict(augment.state_dict())
    assert all(map(torch.equal, other(x, y), augment(x, y)))


# What is refused


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"alpha": 0.0}, ArgumentError, "`alpha` must be greater than 0"),
        ({"rate": 0.0}, ArgumentError, r"`rate` must be in \(0, 1\], got 0"),
        ({"rate": 1.5}, ArgumentError, r"`rate` must be in \(0, 1\], got 1.5"),
        ({"targets": "mix"}, ArgumentError, "`targets` must be one of 'share', 'information', 'k"),
        ({"blocks": []}, ArgumentError, "`blocks` must be one number for every column, got"),
        ({"blocks": 3}, ArgumentError, "`blocks` must be one number for every column, got"),
        ({"blocks": [[0, 1]]}, ArgumentError, "`blocks` must be one number for every column, got"),
        ({"blocks": [0.5, 1]}, ArgumentTypeError, "`blocks` must be whole numbers, .* float64"),
        ({"blocks": ["a", "b"]}, ArgumentTypeError, "`blocks` must be whole numbers"),
        ({"blocks": torch.ones(3)}, ArgumentTypeError, "`blocks` must be whole numbers"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        FeatureMix(**options)


def test_batches_that_do_not_fit_the_blocks_are_refused():
    x, y = make_batch()
    with pytest.raises(ArgumentError, match="each of the 6 columns of `x`, got 3. To act at a"):
        FeatureMix(blocks=[0, 0, 1])(x, y)
    with pytest.raises(ArgumentError, match="each of the 6 columns of `x`, got 3"):
        FeatureMix(blocks=[0, 1, 2])(x, y)
    fitted = FeatureMix(targets="information").fit(x, y)
    with pytest.raises(ArgumentError, match="blocks and targets of `fit`, 6 and 1, got 4 and 1"):
        fitted(x[:, :4], y)
    with pytest.raises(ArgumentError, match="blocks and targets of `fit`, 6 and 1, got 6 and 2"):
        fitted(x, torch.stack([y, y], dim=1))


def test_information_must_be_learned_first():
    with pytest.raises(NotFittedError, match=r"must see the training rows first: call `.fit"):
        FeatureMix(targets="information")(*make_batch())
    FeatureMix(targets="share")(*make_batch())


def test_nothing_is_done_with_neutral_parameters():
    x, y = make_batch()
    assert FeatureMix().transform(x, y, FeatureMixParams(None, None))[0] is x

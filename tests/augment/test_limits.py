"""Rows of one group together, and values that are there: in a plain loop and at a layer."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from regaug import ADA, CEMS, FOMA, CMixup, Compose, GaussianNoise, Identity, Mixup
from regaug.augment.limits import code_labels
from regaug.exceptions import ArgumentError, ArgumentTypeError, NotFittedError
from regaug.testing.batches import all_equal, make_batch

GROUPS = torch.tensor([0, 1, 0, 1, 2, 0, 1, 0, 1, 0, 1, 0])  # the row of group 2 is alone


def batch(x_shape=(12, 3), y_shape=(12,), seed=0):
    return make_batch(x_shape, y_shape, seed=seed, dtype=torch.float64)


# Labels


def test_labels_have_the_same_code_wherever_they_come():
    few, many = code_labels(["b", "a"]), code_labels(np.array(["c", "a", "b", "a"]))
    assert few.tolist() == [many[2], many[1]]
    assert len(set(many.tolist())) == 3
    assert code_labels(torch.tensor([3, 1])).tolist() == [3, 1]
    assert code_labels(np.array([3.0, 1.0])).tolist() == [3, 1]
    assert len(set(code_labels(np.array([0.5, 0.25, 0.5])).tolist())) == 2
    assert len(set(code_labels(np.array([None, "a"], dtype=object)).tolist())) == 2


@pytest.mark.parametrize("labels", [[0, 1], [[0] * 12], 3])
def test_every_row_needs_a_label(labels):
    x, y = batch()
    with pytest.raises(ArgumentError, match="`groups` must have one label for each of the 12 rows"):
        Mixup()(x, y, groups=labels)


# Groups


@pytest.mark.parametrize(
    "make",
    [
        lambda: FOMA(rho=0.5),
        lambda: FOMA(k=1, center=True),
        lambda: Mixup(),
        lambda: CMixup(bandwidth=0.5),
        lambda: CEMS(d=1),
        lambda: ADA(clusters=2),
        lambda: Compose(FOMA(), Mixup()),
    ],
)
def test_groups_are_augmented_one_after_another(make):
    x, y = batch()
    augment = make().fit(x, y)
    alone = copy.deepcopy(augment)
    new_x, new_y = augment(x, y, groups=GROUPS)
    expected_x, expected_y = x.clone(), y.clone()
    for group in (0, 1):
        rows = group == GROUPS
        expected_x[rows], expected_y[rows] = alone(x[rows], y[rows])
    torch.testing.assert_close(new_x, expected_x)
    torch.testing.assert_close(new_y, expected_y)
    assert all_equal((new_x[4], new_y[4]), (x[4], y[4]))
    assert not torch.equal(new_x, x)


def test_one_group_is_the_whole_batch():
    x, y = batch()
    for make in (FOMA, Mixup, CEMS):
        assert all_equal(make()(x, y, groups=["a"] * 12), make()(x, y))


def test_what_mixes_nothing_does_not_mind_groups():
    x, y = batch()
    assert all_equal(GaussianNoise(0.1)(x, y, groups=GROUPS), GaussianNoise(0.1)(x, y))
    assert Identity()(x, y, groups=GROUPS)[0] is x


def test_a_batch_is_touched_or_not_as_a_whole():
    x, y = batch()
    augment = Mixup(p=0.5)
    for _ in range(30):
        new_x, _ = augment(x, y, groups=GROUPS)
        moved = [not torch.equal(new_x[g == GROUPS], x[g == GROUPS]) for g in (0, 1)]
        assert moved[0] == moved[1]
        assert (augment.params is augment.neutral) == (not moved[0])


def test_new_rows_are_appended_group_by_group():
    x, y = batch()
    new_x, new_y = Mixup(append=True)(x, y, groups=GROUPS)
    made, _ = Mixup()(x, y, groups=GROUPS)
    assert len(new_x) == len(new_y) == 12 + 11  # nothing is made of the row that is alone
    assert torch.equal(new_x[:12], x)
    assert torch.equal(new_x[12:], torch.cat([made[GROUPS == 0], made[GROUPS == 1]]))


def test_a_chain_whose_parts_append_returns_all_it_makes():
    x, y = batch()
    new_x, new_y = Compose(Mixup(append=True))(x, y, groups=GROUPS)
    assert len(new_x) == len(new_y) == 2 * 11 + 1
    assert all((new_x == row).all(dim=1).any() for row in x)


def test_gradients_flow_through_groups():
    x, y = batch()
    for make in (FOMA, Mixup):
        leaf = x.clone().requires_grad_()
        make()(leaf, y, groups=GROUPS)[0].square().sum().backward()
        assert leaf.grad.isfinite().all()
        assert (leaf.grad[4] == 2 * x[4]).all()


def test_partners_must_be_of_the_same_group():
    x, y = batch()
    pairs = torch.tensor([0, 1, 0, 1, 2, 0] * 2)
    assert all_equal(Mixup(paired=True)(x, y, groups=pairs), Mixup(paired=True)(x, y))
    pairs[7] = 0
    with pytest.raises(ArgumentError, match=r"sample 1 and its partner.*KernelPairSampler\(y"):
        Mixup(paired=True)(x, y, groups=pairs)


def test_a_chain_that_begins_with_pairs_stays_within_groups():
    x, y = batch()
    pairs = torch.tensor([0, 1, 0, 1, 1, 0] * 2)
    augment = Compose(Mixup(paired=True), FOMA(k=1))
    new_x, new_y = augment(x, y, groups=pairs)
    assert (len(new_x), len(new_y)) == (6, 6)
    other = torch.where((pairs == 1)[:, None], x + 9.0, x)
    again, _ = Compose(Mixup(paired=True), FOMA(k=1))(other, y, groups=pairs)
    assert torch.equal(again[pairs[:6] == 0], new_x[pairs[:6] == 0])


def test_a_weight_of_the_loss_belongs_to_one_group():
    x, y = batch()
    augment = FOMA(weight="lam")
    augment(x, y, groups=[1] * 12)
    assert augment.weight != 1.0
    with pytest.raises(ArgumentError, match=r"loss is weighted.*pairs_within=\"group\""):
        augment(x, y, groups=GROUPS)


def test_neighbors_are_those_of_the_group():
    x, y = batch((60, 3), (60,))
    labels = np.array(["a", "b", "c"])[np.arange(60) % 3]
    for tree_points in (CEMS.tree_points, 0):
        augment = CEMS(neighbors=6, d=2)
        augment.tree_points = tree_points
        augment.fit(x, y, groups=labels)
        new_x, new_y = augment(x, y, groups=labels)
        generator = torch.Generator().manual_seed(0)
        for label in code_labels(["a", "b", "c"]).sort().values.tolist():
            rows = code_labels(labels) == label
            alone = CEMS(neighbors=6, d=2, generator=generator).fit(x[rows], y[rows])
            torch.testing.assert_close(alone(x[rows], y[rows]), (new_x[rows], new_y[rows]))


def test_rows_without_neighbors_stay_as_they_are():
    x, y = batch()
    augment = CEMS(neighbors=4, d=1).fit(x, y, groups=GROUPS)
    new_x, _ = augment(x, y, groups=GROUPS)
    assert torch.equal(new_x[4], x[4])
    assert not torch.isclose(new_x[GROUPS < 2], x[GROUPS < 2]).all(dim=1).any()
    assert torch.equal(augment(x, y, groups=[7] * 12)[0], x)  # nobody has seen that group


def test_stored_neighbors_need_groups_on_both_sides():
    x, y = batch()
    with pytest.raises(NotFittedError, match=r"fit\(x, y, groups=labels\)"):
        CEMS(neighbors=4).fit(x, y)(x, y, groups=GROUPS)
    augment = CEMS(neighbors=4).fit(x, y, groups=GROUPS)
    with pytest.raises(ArgumentError, match=r"augment\(x, y, groups=labels\)"):
        augment(x, y)
    other = CEMS(neighbors=4)
    other.load_state_dict(augment.state_dict())
    assert all_equal(other(x, y, groups=GROUPS), augment(x, y, groups=GROUPS))
    assert CEMS(neighbors=4).fit(x, y, groups=GROUPS).fit(x, y)(x, y)[0].isfinite().all()


# At a layer


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).double()


@pytest.mark.parametrize("make", [FOMA, Mixup, lambda: ADA(clusters=2), CEMS])
@pytest.mark.parametrize("place", ["1", "input", ["0", "1"]])
def test_at_a_layer_no_row_depends_on_another_group(make, place):
    x, y = batch(y_shape=(12, 1))
    net = make_net()
    other = torch.where((GROUPS == 1)[:, None], x + 3.0, x)
    found = []
    for inputs in (x, other):
        at = make().fit(x, y).at(net, place).within(groups=GROUPS)
        found.append(at(inputs, y))
    for before, after in zip(*found, strict=True):
        torch.testing.assert_close(after[GROUPS == 0], before[GROUPS == 0], rtol=1e-12, atol=0)
    assert not torch.equal(found[0][0], net(x))


def test_within_leaves_the_other_as_it_was():
    x, y = batch(y_shape=(12, 1))
    net, augment = make_net(), Mixup()
    at = augment.at(net, "1")
    at.within(groups=GROUPS)
    augment.generator.manual_seed(0)
    expected = Mixup().at(net, "1")(x, y)
    assert all_equal(at(x, y), expected)


def test_a_part_that_is_recomputed_knows_its_groups():
    x, y = batch(y_shape=(12, 1))
    plain = make_net()
    again = copy.deepcopy(plain)

    class Recomputes(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x):
            return checkpoint(self.net, x, use_reentrant=False)

    for net, at in (
        (plain, FOMA().at(plain, "1")),
        (again, FOMA().at(Recomputes(again), "net.1")),
    ):
        prediction, new_y = at.within(groups=GROUPS)(x, y)
        (prediction - new_y).square().mean().backward()
        assert net[0].weight.grad.isfinite().all()
    torch.testing.assert_close(again[0].weight.grad, plain[0].weight.grad)


# Masks


def mix_obviously(x, mask, lam, partners):
    new = x.clone()
    for i, j in enumerate(partners.tolist()):
        for place in np.ndindex(*x.shape[1:]):
            if mask[i][place] and mask[j][place]:
                new[i][place] = lam * x[i][place] + (1 - lam) * x[j][place]
    return new


@pytest.mark.parametrize("make", [Mixup, CMixup])
def test_values_are_mixed_where_both_are_there(make):
    x, y = batch((12, 2, 4))
    mask = batch((12, 2, 4), seed=5)[0] > -0.3
    augment = make()
    new_x, new_y = augment(x, y, mask=mask)
    lam, partners = augment.params.lam, augment.params.partners
    torch.testing.assert_close(new_x, mix_obviously(x, mask, lam, partners))
    torch.testing.assert_close(new_y, lam * y + (1 - lam) * y[partners])


def test_a_mask_may_have_the_leading_axes_only_or_be_broadcast():
    x, y = batch((12, 5, 2))
    steps = torch.arange(5) < torch.arange(12)[:, None] % 5 + 1
    full = steps[..., None].expand(12, 5, 2)
    expected = Mixup()(x, y, mask=full)
    assert all_equal(Mixup()(x, y, mask=steps), expected)
    assert all_equal(Mixup()(x, y, mask=steps[..., None]), expected)
    everywhere = torch.tensor([True, False]).reshape(1, 1, 2)
    new_x, _ = Mixup()(x, y, mask=everywhere)
    assert torch.equal(new_x[..., 1], x[..., 1])
    assert not torch.equal(new_x[..., 0], x[..., 0])
    assert all_equal(Mixup()(x, y, mask=torch.ones(12, dtype=torch.bool)), Mixup()(x, y))


def test_what_is_not_there_may_be_nan():
    x, y = batch((12, 4))
    mask = batch((12, 4), seed=5)[0] > 0
    for augment in (Mixup(), GaussianNoise(0.1)):
        leaf = x.masked_fill(~mask, torch.nan).requires_grad_()
        new_x, _ = augment(leaf, y, mask=mask)
        assert torch.equal(new_x.isnan(), ~mask)
        new_x[mask].square().sum().backward()
        assert leaf.grad.isfinite().all()


def test_pairs_have_a_mask_too():
    x, y = batch()
    mask = batch(seed=5)[0] > 0
    augment = Mixup(paired=True, append=True)
    new_x, _ = augment(x, y, mask=mask)
    expected = mix_obviously(x, mask, augment.params.lam, torch.arange(6, 12))[:6]
    torch.testing.assert_close(new_x, torch.cat([x[:6], expected]))


def test_several_inputs_have_a_mask_each():
    x, y = batch((12, 5))
    mask = batch((12, 5), seed=5)[0] > 0
    expected, _ = Mixup()(x, y, mask=mask)
    parts = {"a": x[:, :2], "b": (x[:, 2:4], x[:, 4])}
    new, _ = Mixup()(parts, y, mask={"a": mask[:, :2], "b": (mask[:, 2:4], mask[:, 4])})
    assert torch.equal(torch.column_stack([new["a"], *new["b"]]), expected)
    half = mask.clone()
    half[:, 2:] = True
    expected, _ = Mixup()(x, y, mask=half)
    new, _ = Mixup()(parts, y, mask={"a": mask[:, :2]})
    assert torch.equal(torch.column_stack([new["a"], *new["b"]]), expected)


def test_a_chain_takes_a_mask_if_its_parts_do():
    x, y = batch((12, 4))
    mask = batch((12, 4), seed=5)[0] > 0
    chain = Compose(Mixup(paired=True, append=True), GaussianNoise(0.5))
    assert chain.takes_mask
    twice = [*range(6), *range(6)]  # the samples, and what is made of them
    is_gone = ~mask[twice]
    new_x, _ = chain(x, y, mask=mask)
    assert torch.equal(new_x[is_gone], x[twice][is_gone])
    assert not torch.isclose(new_x, x[twice])[~is_gone].any()
    params = chain.draw(x, y)
    again = chain.transform_where(x.clone(), y, params, mask)[0]
    assert torch.equal(again[:6][~mask[:6]], x[:6][~mask[:6]])
    with pytest.raises(ArgumentError, match="`mask` must be None for FOMA, which cannot"):
        Compose(Mixup(), FOMA())(x, y, mask=mask)


def test_a_mask_and_groups_go_together():
    x, y = batch((12, 4))
    mask = batch((12, 4), seed=5)[0] > 0
    new_x, _ = Mixup()(x, y, mask=mask, groups=GROUPS)
    assert torch.equal(new_x[~mask], x[~mask])
    other = torch.where((GROUPS == 1)[:, None] | ~mask, x + 9.0, x)
    again, _ = Mixup()(other, y, mask=mask, groups=GROUPS)
    kept = (GROUPS == 0)[:, None] & mask
    assert torch.equal(again[kept], new_x[kept])


def test_a_mask_at_a_layer_is_that_of_its_output():
    x, y = batch((12, 4, 3), (12, 1))
    steps = torch.arange(4) < torch.arange(12)[:, None] % 4 + 1
    seen = []
    net = nn.Sequential(nn.Linear(3, 2), nn.Identity(), nn.Flatten(), nn.Linear(8, 1)).double()
    net[2].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    Mixup().at(net, "1").within(mask=steps)(x, y)
    assert torch.equal(seen[0][~steps], net[0](x)[~steps])
    assert not torch.equal(seen[0][steps], net[0](x)[steps])


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (torch.ones(12, 4), ArgumentTypeError, "torch.bool, True where a value is there"),
        ([True] * 12, ArgumentTypeError, "got list"),
        (torch.ones(12, 3, dtype=torch.bool), ArgumentError, r"shape \(12, 4\).* got \(12, 3\)"),
        (torch.ones(4, dtype=torch.bool), ArgumentError, r"leading axes alone, got \(4,\)"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, error, words):
    x, y = batch((12, 4))
    with pytest.raises(error, match=f"`mask` must.*{words}"):
        Mixup()(x, y, mask=mask)


def test_masks_of_several_inputs_must_have_their_form():
    x, y = batch((12, 4))
    mask = torch.ones(12, 4, dtype=torch.bool)
    with pytest.raises(ArgumentError, match=r"must be a dict of masks for \['a'\], got one with"):
        Mixup()({"a": x}, y, mask={"b": mask})
    with pytest.raises(ArgumentError, match="must be 2 masks, one for each, got 1"):
        Mixup()((x, x), y, mask=(mask,))


@pytest.mark.parametrize("make", [FOMA, ADA, CEMS])
def test_who_needs_whole_rows_says_so(make):
    x, y = batch()
    augment = make()
    assert not augment.takes_mask
    with pytest.raises(ArgumentError, match=f"`mask` must be None for {make.__name__}"):
        augment(x, y, mask=torch.ones(12, 3, dtype=torch.bool))


def test_another_transform_does_not_inherit_the_arithmetic_for_masks():
    class Half(Mixup):
        def transform(self, x, y, params):
            return x, y

    assert Mixup().takes_mask
    assert not Half().takes_mask

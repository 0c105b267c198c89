"""No augmentation, and several in a row."""

import copy
import pickle
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from regaug.augment.base import Augmentation
from regaug.augment.compose import Compose, Identity
from regaug.augment.foma import FOMA
from regaug.augment.mixup import CMixup, Mixup
from regaug.augment.noise import GaussianNoise
from regaug.exceptions import ArgumentError, ArgumentTypeError


class Shift(Augmentation[int]):
    """Add the number of rows it was fitted on; one draw at a time, so that order shows."""

    neutral = 0
    rows = 0
    observed = None

    def fit(self, x, y):
        super().fit(x, y)
        self.rows = len(x)
        return self

    @contextmanager
    def observing(self, x, y):
        self.observed = x
        yield
        self.observed = None

    def draw(self, x, y):
        return self.rows + 1

    def transform(self, x, y, params):
        return x + params, y


def make_batch(n=16, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator), torch.randn(n, generator=generator)


@pytest.mark.parametrize(
    "augment",
    [
        Identity(),
        Identity(append=True),
        Identity(p=0.5, anneal=0.5),
        Compose(),
        Compose(Identity()),
    ],
)
def test_the_identity_returns_the_batch_itself(augment):
    x, y = make_batch()
    for new_x, new_y in (augment(x, y), augment.transform(x, y, augment.draw(x, y))):
        assert new_x is x
        assert new_y is y


def test_identity_checks_the_batch():
    with pytest.raises(ArgumentError, match="equal n"):
        Identity()(torch.zeros(3, 2), torch.zeros(4))


def test_parts_act_in_order_on_what_the_one_before_made():
    x, y = make_batch()
    chain = Compose(Mixup(), GaussianNoise(sigma=0.1))
    new_x, new_y = chain(x, y)
    mixed, noise = chain.params
    mixed_x = mixed.lam * x + (1 - mixed.lam) * x[mixed.partners]
    mixed_y = mixed.lam * y + (1 - mixed.lam) * y[mixed.partners]
    torch.testing.assert_close(new_x, mixed_x + noise.x)
    torch.testing.assert_close(new_y, mixed_y + noise.y)


def test_draws_can_be_applied_to_the_same_batch_and_to_another():
    x, y = make_batch()
    one, two = (Compose(FOMA(), Mixup(append=True), GaussianNoise(p=0.5)) for _ in range(2))
    for _ in range(4):
        called = one(x, y)
        params = two.draw(x, y)
        assert torch.equal(two.transform(x, y, params)[0], called[0])
        # A copy is another tensor, so nothing that was remembered can be used.
        torch.testing.assert_close(two.transform(x.clone(), y.clone(), params), called)
        torch.testing.assert_close(one.transform(x, y, one.params), called)


@pytest.mark.parametrize("changed", ["batch", "result"])
def test_a_tensor_changed_in_place_after_the_draw_is_seen(changed):
    x, y = make_batch()
    chain = Compose(GaussianNoise(sigma=0.1))
    params = chain.draw(x, y)
    old_x, _ = chain.transform(x, y, params)
    expected = old_x.clone()
    if changed == "batch":
        x += 1.0
        expected += 1.0
    else:
        old_x.zero_()
    torch.testing.assert_close(chain.transform(x, y, params)[0], expected)


def test_every_part_keeps_its_own_strength():
    x, y = make_batch()
    chain = Compose(GaussianNoise(p=0.0), Mixup(append=True), GaussianNoise(p=0.0, append=True))
    new_x, _ = chain(x, y)
    assert new_x.shape == (32, 4)
    assert torch.equal(new_x[:16], x)
    assert chain.params[0] is GaussianNoise.neutral
    assert chain.params[1].lam < 1.0


def test_the_chains_own_strength_holds_for_the_whole():
    x, y = make_batch()
    assert Compose(GaussianNoise(), Mixup(), p=0.0)(x, y)[0] is x
    new_x, _ = Compose(GaussianNoise(), Mixup(), append=True)(x, y)
    assert new_x.shape == (32, 4)
    assert torch.equal(new_x[:16], x)
    annealed = Compose(GaussianNoise(), anneal=0.5)
    annealed.progress = 0.6
    assert annealed(x, y)[0] is x


def test_params_are_empty_when_no_part_touches_the_batch():
    x, y = make_batch()
    chain = Compose(GaussianNoise(p=0.0), Mixup(p=0.0), append=True)
    assert chain(x, y)[0] is x
    assert chain.params == ()
    assert chain.transform(x, y, Compose.neutral)[0] is x


def test_progress_reaches_every_part():
    inner = Mixup(anneal=0.5)
    chain = Compose(GaussianNoise(anneal=0.8), Compose(inner))
    chain.progress = 0.4
    assert chain.parts[0].probability == pytest.approx(0.5)
    assert inner.probability == pytest.approx(0.2)


def test_fit_reaches_every_part_and_returns_the_chain():
    x, y = make_batch()
    chain = Compose(Shift(), Compose(Shift()))
    assert chain.fit(x, y) is chain
    torch.testing.assert_close(chain(x, y)[0], x + 34)
    assert chain.params == (17, (17,))


def test_eval_is_the_identity_for_the_chain_and_for_a_part():
    x, y = make_batch()
    chain = Compose(Shift(), Mixup())
    assert chain.eval()(x, y)[0] is x
    chain.train()
    chain.parts[1].eval()
    torch.testing.assert_close(chain(x, y)[0], x + 1)
    torch.testing.assert_close(chain.transform(x.clone(), y, chain.params)[0], x + 1)


def test_a_paired_part_hands_on_the_samples_alone():
    x, y = make_batch()
    chain = Compose(CMixup(paired=True), GaussianNoise())
    assert chain(x, y)[0].shape == (8, 4)
    untouched = Compose(CMixup(paired=True), GaussianNoise(), p=0.0)
    assert torch.equal(untouched(x, y)[0], x[:8])
    appended, _ = Compose(CMixup(paired=True), GaussianNoise(), append=True)(x, y)
    assert appended.shape == (16, 4)
    assert torch.equal(appended[:8], x[:8])


def test_equally_made_parts_draw_independently():
    x, y = make_batch()
    chain = Compose(GaussianNoise(p=0.5), GaussianNoise(p=0.5))
    touched = []
    for _ in range(200):
        chain(x, y)
        params = chain.params or (GaussianNoise.neutral,) * 2
        touched.append([part is not GaussianNoise.neutral for part in params])
    counts = torch.tensor(touched).float()
    assert 0.3 < (counts[:, 0] != counts[:, 1]).float().mean() < 0.7


def test_one_generator_decides():
    x, y = make_batch()

    def make(seed=None, part_seed=0):
        part = Mixup(generator=torch.Generator().manual_seed(part_seed))
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return Compose(part, GaussianNoise(), generator=generator)

    first, _ = make(seed=1)(x, y)
    torch.manual_seed(5)
    assert torch.equal(make(seed=1, part_seed=3)(x, y)[0], first)
    assert not torch.equal(make(seed=2)(x, y)[0], first)
    assert not torch.equal(make(part_seed=1)(x, y)[0], make(part_seed=2)(x, y)[0])


def test_a_checkpoint_continues_the_stream():
    x, y = make_batch()
    chain, other = Compose(Mixup(), GaussianNoise()), Compose(Mixup(), GaussianNoise())
    chain(x, y)
    other.load_state_dict(chain.state_dict())
    assert torch.equal(other(x, y)[0], chain(x, y)[0])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_act_alike_and_stay_tied_together(duplicate):
    x, y = make_batch()
    chain = Compose(Mixup(anneal=0.5), GaussianNoise())
    chain(x, y)
    other = duplicate(chain)
    assert torch.equal(other(x, y)[0], chain(x, y)[0])
    other.progress = 0.5
    assert other.parts[0].probability == 0.0
    assert chain.parts[0].probability == 1.0
    assert other.parts[0].generator is other.generator


def test_workers_of_a_loader_draw_differently_and_follow_progress():
    x, y = torch.zeros(8, 2), torch.zeros(8)
    chain = Compose(GaussianNoise(anneal=0.5))
    loader = DataLoader(
        TensorDataset(x, y), batch_size=4, num_workers=2, collate_fn=chain.as_collate_fn()
    )
    first, second = (batch for batch, _ in loader)
    assert first.any()
    assert not torch.equal(first, second)
    chain.progress = 1.0
    assert not any(batch.any() for batch, _ in loader)


def test_a_chain_acts_at_a_layer():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    x, y = make_batch()
    at = Compose(CMixup(paired=True), FOMA(), GaussianNoise()).at(net, "1")
    output, targets = at(x, y)
    assert len(output) == len(targets) == 8
    ((output.squeeze(1) - targets) ** 2).mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())
    assert len(at.params) == 3


def test_at_a_layer_every_part_is_told_the_inputs_of_the_model():
    class Watch(Shift):
        def draw(self, x, y):
            self.seen = self.observed
            return super().draw(x, y)

    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
    x, y = make_batch()
    chain = Compose(Watch(), Compose(Watch()))
    chain.at(net, "0")(x, y)
    for part in (chain.parts[0], chain.parts[1].parts[0]):
        assert part.seen is x
        assert part.observed is None


def test_inputs_are_not_modified():
    x, y = make_batch()
    copies = x.clone(), y.clone()
    Compose(FOMA(), Mixup(), GaussianNoise())(x, y)
    assert torch.equal(x, copies[0])
    assert torch.equal(y, copies[1])


def test_half_precision_is_kept():
    x, y = (part.half() for part in make_batch())
    new_x, new_y = Compose(FOMA(), Mixup(), GaussianNoise())(x, y)
    assert new_x.dtype == new_y.dtype == torch.float16
    assert new_x.isfinite().all()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ([Mixup()], r"got list\. Give them one by one"),
        (Mixup, r"got Mixup\. Make one of it: Mixup\(\)"),
        (nn.ReLU(), "must be augmentations, got ReLU"),
        (None, "must be augmentations, got NoneType"),
    ],
)
def test_parts_must_be_augmentations(part, message):
    with pytest.raises(ArgumentTypeError, match=message):
        Compose(Mixup(), part)

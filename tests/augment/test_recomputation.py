"""Under torch.utils.checkpoint: the gradients are those of the same run without it."""

import copy
import gc
import pickle

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from regaug import ADA, FOMA, Compose, GaussianNoise, Mixup
from regaug.exceptions import RegaugError

VARIANTS = pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "other"])
AUGMENTATIONS = {
    "mixup": Mixup,
    "mixup, sometimes": lambda: Mixup(p=0.5),
    "foma": FOMA,
    "foma, sometimes": lambda: FOMA(p=0.5),
    "chain": lambda: Compose(Mixup(), FOMA(p=0.5), GaussianNoise()),
}
EVERY = pytest.mark.parametrize("name", AUGMENTATIONS)


@pytest.fixture(scope="module", autouse=True)
def _quick_collections():
    """What was there before is no garbage of these tests: collections need not look at it."""
    gc.freeze()
    yield
    gc.unfreeze()


class Net(nn.Module):
    """Three blocks, the first two of them checkpointed, one by one or together."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.1))
        self.b = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.c = nn.Linear(8, 1)
        self.how = None

    def forward(self, x):
        if self.how is None:
            return self.c(self.b(self.a(x)))
        reentrant, nested = self.how
        if nested:
            return self.c(run(self.inner, reentrant, x))
        return self.c(self.inner(x))

    def inner(self, x):
        return run(self.b, self.how[0], run(self.a, self.how[0], x))


def run(function, reentrant, *args):
    return checkpoint(function, *args, use_reentrant=reentrant)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(12, 3, generator=generator, requires_grad=True)
    return x, torch.randn(12, 1, generator=generator)


def train(net, step, steps=3):
    """Return the gradients of some steps, and of two whose gradients are added up."""
    torch.manual_seed(1)  # of dropout
    found = []
    for _ in range(steps):
        step().backward()
        found.append(take_gradients(net))
    (step() + step()).backward()
    found.append(take_gradients(net))
    first, second = step(), step()
    for loss, keep in ((first, True), (second, False), (first, False)):
        loss.backward(retain_graph=keep)
    return [*found, take_gradients(net)]


def take_gradients(net):
    gradients = [parameter.grad.clone() for parameter in net.parameters()]
    net.zero_grad()
    return gradients


@EVERY
@VARIANTS
@pytest.mark.filterwarnings("ignore:None of the inputs")  # of an inner part, which has no say
@pytest.mark.parametrize(
    ("place", "nested"), [("input", False), ("a", False), (["a", "b"], False), ("b", True)]
)
def test_at_a_layer_of_a_checkpointed_part(batch, name, reentrant, nested, place):
    found = []
    for how in (None, (reentrant, nested)):
        net, augment = Net(), AUGMENTATIONS[name]()
        net.how, at = how, augment.at(net, place)
        found.append(train(net, lambda at=at, a=augment: F.mse_loss(*at(*batch)) * a.weight))
        gc.collect()
        assert not any(module._forward_hooks for module in net.modules())
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)


@EVERY
@VARIANTS
@pytest.mark.parametrize("place", [None, ["a", "b"]])
def test_in_a_step_that_is_checkpointed_as_a_whole(batch, name, reentrant, place):
    found = []
    for is_checkpointed in (False, True):
        net, augment = Net(), AUGMENTATIONS[name]()
        at = None if place is None else augment.at(net, place)

        def step(x, y, net=net, augment=augment, at=at):
            if at is not None:
                return F.mse_loss(*at(x, y))
            new_x, new_y = augment(x, y)
            return F.mse_loss(net(new_x), new_y)

        def loss(step=step, is_checkpointed=is_checkpointed):
            return run(step, reentrant, *batch) if is_checkpointed else step(*batch)

        found.append(train(net, loss))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


@VARIANTS
def test_a_training_step_that_is_not_ours(batch, reentrant):
    found = []
    for how in (None, (reentrant, False)):
        net = Net()
        net.how, at = how, FOMA().at(net, "a")
        found.append(
            train(net, lambda n=net, at=at: at.act_in(lambda x, y: F.mse_loss(n(x), y), *batch))
        )
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)


@VARIANTS
def test_the_clusters_of_ada_are_there_in_the_recomputation(batch, reentrant):
    found = []
    for how in (None, (reentrant, False)):
        net = Net()
        net.how, at = how, ADA(clusters=3).fit(*batch).at(net, "b")
        found.append(train(net, lambda at=at: F.mse_loss(*at(*batch))))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


def test_parts_in_a_row(batch):
    layers = [nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)]
    net = nn.Sequential(*layers)
    found = []
    for forward in (net, lambda x: checkpoint_sequential(net, 2, x, use_reentrant=False)):
        at = FOMA().at(net, "1")
        found.append(train(net, lambda at=at, f=forward: F.mse_loss(*at.call(f, *batch))))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


@VARIANTS
def test_the_stream_of_draws_and_the_last_draw_are_those_of_the_forward_passes(batch, reentrant):
    x, y = batch
    augment, alike = FOMA(), FOMA()
    losses = [run(lambda x: augment(x, y)[0].sum(), reentrant, x) for _ in range(2)]
    lams = [alike.draw(x, y).lam for _ in range(2)]
    losses[0].backward()
    assert augment.params.lam == lams[1]
    assert augment.draw(x, y).lam == alike.draw(x, y).lam


@VARIANTS
def test_what_was_annealed_in_between_does_not_count(batch, reentrant):
    x, y = batch
    found = []
    for is_checkpointed in (False, True):
        augment, weight = FOMA(anneal=0.5), nn.Parameter(torch.ones(3))

        def step(x, augment=augment, weight=weight):
            return (augment(weight * x, y)[0] ** 2).sum()

        loss = run(step, reentrant, x) if is_checkpointed else step(x)
        augment.progress = 1.0
        loss.backward()
        found.append(weight.grad)
        assert augment.progress == 1.0
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.filterwarnings("ignore:None of the inputs")
def test_nothing_is_kept_once_the_graph_is_gone(batch):
    from regaug.augment.recomputation import _kept

    net, augment = Net(), FOMA()
    for reentrant in (True, False):
        net.how = reentrant, True
        for _ in range(3):
            F.mse_loss(*augment.at(net, "a")(*batch)).backward()
            F.mse_loss(*augment.at(net, "a")(*batch))  # without a backward pass
    gc.collect()
    assert not _kept


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copy_of_the_model_has_nothing_of_it(batch, copied):
    net = Net().eval().train()
    net.how = False, False
    loss = F.mse_loss(*FOMA().at(net, "a")(*batch))
    other = copied(net).eval()
    loss.backward()
    assert torch.equal(other(batch[0]), net.eval()(batch[0]))


def test_without_gradients_nothing_is_remembered(batch):
    from regaug.augment.recomputation import _kept

    augment = FOMA()
    with torch.no_grad():
        augment(*batch)
        F.mse_loss(*augment.at(Net(), "a")(*batch))
    assert not _kept


@VARIANTS
def test_a_part_that_does_more_the_second_time_is_refused(batch, reentrant):
    x, y = batch
    augment, runs = Mixup(), []

    def step(x):
        runs.append(1)
        for _ in runs:
            x, _ = augment(x, y)
        return x.square().sum()

    with pytest.raises(RegaugError, match="asks Mixup for a draw that it did not ask for"):
        run(step, reentrant, x).backward()

"""How far training is: said by the loop, or counted by the augmentation itself."""

import copy
import pickle
import warnings

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from regaug import ADA, CEMS, FOMA, CMixup, Compose, GaussianNoise, Identity, Mixup, methods
from regaug.augment.progress import PATIENCE
from regaug.exceptions import ArgumentError, ArgumentTypeError

EVERY = [FOMA, Mixup, CMixup, CEMS, GaussianNoise, Identity, Compose, ADA]


def make_batch(n=12, d=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator), torch.randn(n, 1, generator=generator)


X, Y = make_batch()


def is_touched(augmentation):
    return augmentation(X, Y)[0] is not X


@pytest.mark.parametrize("make", EVERY)
def test_calls_drive_anneal_by_themselves(make):
    augmentation = make(anneal=0.5, total_steps=10).fit(X, Y)
    probabilities = []
    for _ in range(12):
        probabilities.append(augmentation.probability)
        augmentation(X, Y)
    expected = [1.0, 0.8, 0.6, 0.4, 0.2] + [0.0] * 7
    assert probabilities == pytest.approx(expected)
    assert (augmentation.progress, augmentation.total_steps) == (1.0, 10)


def test_counting_is_what_a_loop_would_say():
    counted, told = Mixup(anneal=0.7, total_steps=50), Mixup(anneal=0.7)
    for step in range(60):
        told.progress = min(step / 50, 1.0)
        assert counted.progress == told.progress
        assert torch.equal(counted(X, Y)[0], told(X, Y)[0])


@given(st.lists(st.one_of(st.just("call"), st.floats(0.0, 1.0)), max_size=20))
def test_what_is_said_holds_for_the_next_call_and_counting_goes_on_from_there(actions):
    augmentation, said, calls = Identity(anneal=0.7, total_steps=8), 0.0, 0
    for action in actions:
        if action == "call":
            augmentation(X, Y)
            calls += 1
        else:
            augmentation.progress = said = action
            calls = 0
        assert augmentation.progress == min(1.0, said + calls / 8)


def test_calls_outside_training_do_not_count():
    augmentation = FOMA(anneal=0.5, total_steps=10).eval()
    for _ in range(5):
        augmentation(X, Y)
    assert augmentation.progress == 0.0
    augmentation.train()(X, Y)
    assert augmentation.progress == 0.1


def test_a_call_that_fails_does_not_count():
    augmentation = FOMA(anneal=0.5, total_steps=10)
    with pytest.raises(ArgumentError):
        augmentation(X * torch.nan, Y)
    assert augmentation.progress == 0.0


def test_calls_at_a_layer_count():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    augmentation = Mixup(anneal=0.5, total_steps=10)
    at = augmentation.at(net, ["0", "input"])
    for _ in range(4):
        at(X, Y)
    assert augmentation.progress == 0.4
    net.eval()
    at(X, Y)
    assert augmentation.progress == 0.4


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("make", [Mixup, lambda **own: Compose(Mixup(p=0.7), FOMA(), **own)])
def test_what_is_recomputed_is_not_counted_twice(make, reentrant):
    net, found = nn.Linear(3, 1), []
    for is_checkpointed in (False, True):
        augmentation = make(anneal=0.5, total_steps=8)

        def step(x, y, augmentation=augmentation):
            new_x, new_y = augmentation(x, y)
            return F.mse_loss(net(new_x), new_y)

        x = X.clone().requires_grad_()
        gradients = []
        for number in range(6):
            loss = (
                checkpoint(step, x, Y, use_reentrant=reentrant) if is_checkpointed else step(x, Y)
            )
            loss.backward()
            assert augmentation.progress == (number + 1) / 8
            gradients.append(net.weight.grad.clone())
        net.zero_grad()
        found.append(gradients)
    torch.testing.assert_close(found[0], found[1])


def test_a_chain_counts_its_own_calls_for_all_parts():
    inner = Compose(GaussianNoise(anneal=1.0))
    chain = Compose(Mixup(anneal=0.5), inner, p=0.5, total_steps=10)
    for number in range(8):
        assert chain.progress == inner.progress == chain.parts[0].progress == number / 10
        chain(X, Y)
    assert inner.parts[0].probability == pytest.approx(0.2)


def test_a_chain_takes_over_the_steps_of_its_parts():
    chain = Compose(Mixup(anneal=0.5, total_steps=20), FOMA(), Mixup(total_steps=20))
    chain(X, Y)
    assert (chain.total_steps, chain.progress) == (20, 0.05)
    with pytest.raises(ArgumentError, match="`total_steps` must be the same .* got 10 and 20"):
        Compose(Mixup(total_steps=20), FOMA(total_steps=10))
    assert Compose(Mixup(total_steps=20), FOMA(total_steps=10), total_steps=5).total_steps == 5


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
@pytest.mark.parametrize("make", [Mixup, lambda **own: Compose(Mixup(), FOMA(), **own)])
def test_a_copy_counts_for_itself(make, copied):
    augmentation = make(anneal=0.5, total_steps=10)
    augmentation(X, Y)
    other = copied(augmentation)
    other(X, Y)
    assert (augmentation.progress, other.progress) == (0.1, 0.2)


@pytest.mark.parametrize("make", [Mixup, lambda **own: Compose(Mixup(), FOMA(anneal=0.9), **own)])
def test_a_saved_state_goes_on_with_the_same_strength(make):
    augmentation = make(anneal=0.8, total_steps=30)
    for _ in range(10):
        augmentation(X, Y)
    state = copy.deepcopy(augmentation.state_dict())
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    expected = [augmentation(X, Y)[0] for _ in range(15)]
    other = make(anneal=0.8, total_steps=30)
    other.load_state_dict(state)
    assert other.progress == 10 / 30
    assert all(torch.equal(other(X, Y)[0], one) for one in expected)


def test_a_saved_state_keeps_what_was_said():
    augmentation = Mixup(anneal=0.8)
    augmentation.progress = 0.3
    other = Mixup(anneal=0.8)
    other.load_state_dict(augmentation.state_dict())
    assert other.progress == 0.3


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_workers_of_a_loader_count_together(workers, persistent):
    if persistent and not workers:
        pytest.skip("there are no workers to persist")
    x, y = make_batch(64)
    augmentation = Mixup(anneal=0.5, total_steps=40)
    more = {"multiprocessing_context": "fork", "persistent_workers": persistent}
    loader = DataLoader(
        TensorDataset(x, y),
        8,
        num_workers=workers,
        collate_fn=augmentation.as_collate_fn(),
        generator=torch.Generator().manual_seed(0),
        **(more if workers else {}),
    )
    epochs = [list(loader) for _ in range(5)]
    # Two that come at the same time may count as one.
    assert augmentation.progress == pytest.approx(1.0, abs=0.1)
    unchanged = [torch.equal(new, old) for (new, _), old in zip(epochs[4], x.split(8), strict=True)]
    assert all(unchanged)
    assert not torch.equal(epochs[0][0][0], x[:8])


def call(augmentation, times):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            augmentation(X, Y)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Mixup(anneal=0.7),
        lambda: Compose(Mixup(), anneal=0.7),
        lambda: Compose(Mixup(), Compose(FOMA(k=1, anneal=0.5))),
    ],
    ids=["alone", "chain", "part"],
)
def test_anneal_without_progress_is_pointed_out_once(make):
    augmentation = make()
    assert call(augmentation, PATIENCE - 1) == []
    [message] = call(augmentation, 1)
    assert message.startswith(f"{type(augmentation).__name__} with `anneal` was called 100 times")
    assert "augment.progress = step / steps" in message
    assert "total_steps=steps" in message
    assert call(augmentation, 250) == []


def test_nothing_is_pointed_out_where_all_is_well():
    told = Mixup(anneal=0.7)
    told.progress = 0.0
    counted = Mixup(anneal=0.7, total_steps=50)
    for augmentation in (told, counted, Mixup(), Compose(Mixup()), Mixup(anneal=0.7).eval()):
        assert call(augmentation, 2 * PATIENCE) == []
    late = Mixup(anneal=0.7)
    call(late, 50)
    late.progress = 0.1
    assert call(late, 2 * PATIENCE) == []


def test_total_steps_without_anneal_leaves_the_strength_as_it_is():
    augmentation = Mixup(p=0.5, total_steps=10)
    augmentation(X, Y)
    assert (augmentation.progress, augmentation.probability) == (0.1, 0.5)


def test_the_default_device_does_not_matter():
    with torch.device("meta"):
        augmentation = Mixup(anneal=0.5, total_steps=10, generator=torch.Generator("cpu"))
    augmentation(X, Y)
    assert augmentation.progress == 0.1


def test_steps_are_the_trainings_to_know_not_a_methods():
    with pytest.raises(LookupError, match="Unknown setting 'total_steps'"):
        methods.get("mixup").settings(total_steps=10)


def test_total_steps_are_shown():
    assert "anneal=0.5, total_steps=10" in repr(FOMA(anneal=0.5, total_steps=10))
    assert "total_steps" not in repr(FOMA(anneal=0.5))


def test_bad_steps_are_named():
    with pytest.raises(ArgumentError, match="`total_steps` must be at least 1, got 0"):
        FOMA(total_steps=0)
    with pytest.raises(ArgumentTypeError, match="`total_steps` must be a whole number, got 1.5"):
        FOMA(total_steps=1.5)

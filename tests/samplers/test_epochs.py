"""The epochs of a sampler: every full iteration has batches of its own, and may be repeated."""

import copy
import pickle
import warnings
from itertools import islice

import lightning.pytorch as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning_fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from regaug import KernelPairSampler, RandomBatchSampler
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.samplers import SAMPLERS

Y = torch.randn(50, generator=torch.Generator().manual_seed(0))
EVERY = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


def of_epoch(sampler, epoch):
    """The batches of an epoch, from a sampler of its own that knows of no other."""
    fresh = type(sampler)(Y, 8, seed=sampler.seed)
    fresh.set_epoch(epoch)
    return [batch.tolist() for batch in fresh.epoch_batches()]


def make_loader(sampler, **options):
    """A loader whose batches are the indices of their rows."""
    rows = TensorDataset(torch.arange(50))
    return DataLoader(rows, batch_sampler=sampler, collate_fn=_indices, **options)


def _indices(samples):
    return [int(index) for (index,) in samples]


@EVERY
def test_every_iteration_has_batches_of_its_own(sampler):
    own = sampler(Y, 8)
    epochs = [list(own) for _ in range(4)]
    assert epochs == [of_epoch(own, epoch) for epoch in range(4)]
    assert all(one != two for i, one in enumerate(epochs) for two in epochs[:i])
    assert own.epoch == 4


@EVERY
def test_set_epoch_decides_and_goes_on_from_there(sampler):
    own = sampler(Y, 8)
    list(own)
    own.set_epoch(7)
    assert [list(own), list(own)] == [of_epoch(own, 7), of_epoch(own, 8)]
    own.set_epoch(0)
    assert [list(own), list(own)] == [of_epoch(own, 0), of_epoch(own, 1)]


@given(st.lists(st.sampled_from(["full", "look", "len", "set", "batches"]), max_size=12))
def test_the_epoch_is_that_of_the_last_setting_and_the_full_iterations_since(actions):
    own, epoch = RandomBatchSampler(Y, 8), 0
    for action in actions:
        if action == "full":
            assert list(own) == of_epoch(own, epoch)
            epoch += 1
        elif action == "look":
            assert next(iter(own)) == of_epoch(own, epoch)[0]
        elif action == "len":
            assert len(own) == 7
        elif action == "set":
            own.set_epoch(epoch := 5)
        else:
            assert [batch.tolist() for batch in own.epoch_batches()] == of_epoch(own, epoch)
        assert own.epoch == epoch


def test_whoever_counts_the_batches_ends_an_epoch_too():
    own = RandomBatchSampler(Y, 8)
    epochs = []
    for _ in range(3):
        iterator = iter(own)
        epochs.append([next(iterator) for _ in range(len(own))])  # never asks for one more
    assert epochs == [of_epoch(own, epoch) for epoch in range(3)]
    assert [batch for _, batch in zip(range(7), own, strict=False)] == of_epoch(own, 3)
    assert own.epoch == 4


def test_an_abandoned_iteration_does_not_count():
    own = RandomBatchSampler(Y, 8)
    for _ in range(5):  # looks at the first batch
        assert next(iter(own)) == of_epoch(own, 0)[0]
    assert list(islice(own, 6)) == of_epoch(own, 0)[:6]
    assert list(own) == of_epoch(own, 0)


def test_epochs_that_are_always_abandoned_are_pointed_out_once():
    own = RandomBatchSampler(Y, 8)
    for _ in range(2):
        list(islice(own, 3))
    with pytest.warns(UserWarning, match=r"epoch 0 for the third time.*set_epoch\(epoch\)"):
        list(islice(own, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            list(islice(own, 3))
        for epoch in range(5):  # what it asks for
            own.set_epoch(epoch)
            list(islice(own, 3))


def test_two_iterations_at_once_are_of_one_epoch():
    own = RandomBatchSampler(Y, 8)
    pairs = list(zip(own, own, strict=True))
    assert all(one == two for one, two in pairs)
    assert own.epoch == 1
    one, two = iter(own), iter(own)
    next(one)
    assert list(two) == of_epoch(own, 1)
    assert own.epoch == 2
    assert list(one) == of_epoch(own, 1)[1:]  # it ends late, and changes nothing
    assert own.epoch == 2


@pytest.mark.parametrize("epoch", [0, 5])
def test_a_setting_during_an_iteration_is_for_the_next_one(epoch):
    own = RandomBatchSampler(Y, 8)
    iterator = iter(own)
    next(iterator)
    own.set_epoch(epoch)
    assert list(iterator) == of_epoch(own, 0)[1:]
    assert list(own) == of_epoch(own, epoch)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_workers": 2, "multiprocessing_context": "fork"},
        {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
        {"num_workers": 1, "multiprocessing_context": "fork", "prefetch_factor": 50},
    ],
    ids=["here", "workers", "persistent", "all ahead"],
)
@pytest.mark.parametrize("sampler", [RandomBatchSampler, KernelPairSampler])
def test_a_loader_has_other_batches_in_every_epoch(sampler, options):
    own = sampler(Y, 8)
    loader = make_loader(own, **options)
    assert [list(loader) for _ in range(3)] == [of_epoch(own, epoch) for epoch in range(3)]
    own.set_epoch(1)
    assert [list(loader), list(loader)] == [of_epoch(own, 1), of_epoch(own, 2)]
    assert len(loader) == 7


def test_a_look_into_a_loader_with_workers_changes_nothing():
    own = RandomBatchSampler(Y, 8)
    loader = make_loader(own, num_workers=2, multiprocessing_context="fork")
    assert next(iter(loader)) == of_epoch(own, 0)[0]  # four batches have been asked for
    assert list(loader) == of_epoch(own, 0)


@EVERY
def test_ranks_stay_equal(sampler):
    ranks = [sampler(Y, 8, rank=rank, world_size=2) for rank in range(2)]
    next(iter(ranks[0]))  # one of them has a look, which must not bring them apart
    for epoch in range(3):
        shares = [list(rank) for rank in ranks]
        whole = {tuple(batch) for batch in of_epoch(ranks[0], epoch)}
        together = [tuple(batch) for share in shares for batch in share]
        assert len(together) == len(set(together)) == 6
        assert set(together) <= whole


@EVERY
@pytest.mark.parametrize("begun", [0, 3], ids=["between epochs", "within one"])
def test_a_training_goes_on_where_it_stopped(sampler, begun):
    own = sampler(Y, 8, seed=3)
    expected = [list(own) for _ in range(4)]
    stopped = sampler(Y, 8, seed=3)
    list(stopped), list(stopped)
    list(islice(stopped, begun))
    for again in (sampler(Y, 8, seed=3), sampler(Y, 8, seed=3)):
        again.load_state_dict(stopped.state_dict())
        assert [list(again), list(again)] == expected[2:]
        again.set_epoch(2)
        assert [list(again), list(again)] == expected[2:]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copy_goes_on_from_the_same_epoch(copied):
    own = RandomBatchSampler(Y, 8)
    list(own)
    other = copied(own)
    assert list(other) == list(own) == of_epoch(own, 1)


def test_bad_epochs_and_states_are_named():
    own = RandomBatchSampler(Y, 8)
    with pytest.raises(ArgumentError, match="`epoch` must be at least 0, got -1"):
        own.set_epoch(-1)
    with pytest.raises(ArgumentTypeError, match="`epoch` must be a whole number, got 1.5"):
        own.load_state_dict({"epoch": 1.5})
    with pytest.raises(ArgumentError, match="`state_dict` must be .* with an 'epoch', got {}"):
        own.load_state_dict({})


class Module(pl.LightningModule):
    """Notes the batches it is given."""

    def __init__(self):
        super().__init__()
        self.net, self.epochs = nn.Linear(1, 1), {}

    def training_step(self, batch, batch_idx):
        self.epochs.setdefault(self.current_epoch, []).append(batch)
        return self.net(torch.ones(1, 1)).sum()

    def validation_step(self, batch, batch_idx):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)


@pytest.mark.parametrize("limit", [7, 3], ids=["full", "short"])
def test_a_lightning_trainer_sets_the_epoch(limit):
    own, module = RandomBatchSampler(Y, 8), Module()
    trainer = pl.Trainer(
        max_epochs=4,
        limit_train_batches=limit,
        num_sanity_val_steps=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    own_validation = RandomBatchSampler(Y, 8)  # the sanity check looks at two batches of it
    trainer.fit(module, make_loader(own), make_loader(own_validation))
    assert module.epochs == {epoch: of_epoch(own, epoch)[:limit] for epoch in range(4)}


@pytest.mark.parametrize("limit", [7, 3], ids=["full", "short"])
def test_fabric_sets_the_epoch(limit):
    own = RandomBatchSampler(Y, 8)
    fabric = Fabric(accelerator="cpu", devices=1)
    loader = fabric.setup_dataloaders(make_loader(own), use_distributed_sampler=False)
    for epoch in range(4):
        assert list(islice(loader, limit)) == of_epoch(own, epoch)[:limit]

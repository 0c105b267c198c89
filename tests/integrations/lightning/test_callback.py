"""A Lightning module trained with the callback: what changes, and what is refused."""

import importlib
import os
import subprocess
import sys
from collections import namedtuple
from functools import partial

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from regaug import (
    ADA,
    CEMS,
    FOMA,
    CMixup,
    Compose,
    KernelPairSampler,
    Mixup,
    NearestBatchSampler,
    RandomBatchSampler,
    _random,
)
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    MissingExtraError,
    PlaceError,
    UnknownNameError,
)

pytest.importorskip("lightning")
pytest.importorskip("pytorch_lightning")

from regaug.integrations.lightning import AugmentCallback
from regaug.integrations.lightning.base import find_bases
from regaug.integrations.lightning.batches import with_sampler
from regaug.samplers import SAMPLERS

# Lightning's own: about torch's pytree, and about workers.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
]

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
PLACES = (None, "net.1")
QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
N, BATCH = 48, 16


def make_rows(n=N):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n, 3, generator=generator)
    return x, x[:, :1].sin() + 0.1 * torch.randn(n, 1, generator=generator)


def make_loader(x=None, y=None, **options):
    rows = make_rows() if x is None else (x, y)
    return DataLoader(TensorDataset(*rows), **{"batch_size": BATCH, **options})


def make_net():
    with _random.seeded(0):
        return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))


def make_module(package=PACKAGES[0], **methods):
    """Return a module as Lightning's documentation writes them, with notes of what it sees."""

    class Module(importlib.import_module(package).LightningModule):
        def __init__(self):
            super().__init__()
            self.net = make_net()
            self.trained, self.validated = [], []

        def training_step(self, batch, batch_idx):
            self.trained.append(batch)
            x, y = batch
            return F.mse_loss(self.net(x), y)

        def validation_step(self, batch, batch_idx):
            self.validated.append(batch)
            self.log("error", F.mse_loss(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    for name, method in methods.items():
        setattr(Module, name, method)
    return Module()


def make_trainer(*callbacks, package=PACKAGES[0], **options):
    trainer = importlib.import_module(package).Trainer
    return trainer(callbacks=list(callbacks), **{**QUIET, "max_epochs": 2, **options})


def fit(*callbacks, module=None, package=PACKAGES[0], loader=None, ckpt_path=None, **options):
    module = make_module(package) if module is None else module
    trainer = make_trainer(*callbacks, package=package, **options)
    loader = make_loader() if loader is None else loader
    trainer.fit(module, loader, make_loader(), ckpt_path=ckpt_path)
    return module


def weights(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def same(some, others):
    return len(some) == len(others) and all(
        torch.equal(a, b)
        for pair in zip(some, others, strict=True)
        for a, b in zip(*pair, strict=True)
    )


def is_as_before(module, trainer=None):
    hooks = [part for part in module.modules() if part._forward_hooks or part._forward_pre_hooks]
    return not hooks and not {"training_step", "forward"} & module.__dict__.keys()


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("place", PLACES)
def test_training_batches_change_and_validation_batches_do_not(package, place):
    plain = fit(package=package)
    augmented = fit(AugmentCallback(FOMA(), place), package=package)
    assert same(plain.validated, augmented.validated)
    assert len(plain.trained) == len(augmented.trained) == 6
    for (x, y), (new_x, new_y) in zip(plain.trained, augmented.trained, strict=True):
        assert torch.equal(x, new_x) == (place is not None)
        assert y.shape == new_y.shape
        assert not torch.equal(y, new_y)
    assert not torch.equal(weights(plain), weights(augmented))
    assert is_as_before(augmented)


@pytest.mark.parametrize("package", PACKAGES)
def test_test_and_predict_see_the_data_as_they_are(package):
    seen = []

    def step(self, batch, batch_idx):
        seen.append(batch)
        return batch[1]

    module = make_module(package, test_step=step, predict_step=step)
    trainer = make_trainer(AugmentCallback(FOMA()), package=package)
    trainer.fit(module, make_loader(), make_loader())
    trainer.test(module, make_loader())
    trainer.predict(module, make_loader())
    batches = [tuple(batch) for batch in make_loader()]
    assert same(seen, batches + batches)


def test_a_validation_step_may_be_the_training_step():
    def validation_step(self, batch, batch_idx):
        with torch.no_grad():
            self.training_step(batch, batch_idx)

    module = make_module(validation_step=validation_step)
    fit(AugmentCallback(FOMA()), module=module, num_sanity_val_steps=0, max_epochs=1)
    plain = list(make_loader())
    assert not same(module.trained[:3], plain)
    assert same(module.trained[3:], plain)


def train_by_hand(augmentation, place, epochs=2, accumulate=1):
    """Do what the callback should do, as a plain loop."""
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = list(make_loader())
    for epoch in range(epochs):
        for number, (x, y) in enumerate(batches):
            seed = _random.derive(_random.Stream.EPOCHS, 0, epoch, number, 0, 0)
            augmentation.generator.manual_seed(seed)
            augmentation.progress = (epoch + number / len(batches)) / epochs
            if place is None:
                x, y = augmentation(x, y)
                loss = F.mse_loss(net(x), y)
            else:
                loss = F.mse_loss(*augmentation.at(net, place.removeprefix("net."))(x, y))
            (augmentation.weight * loss / accumulate).backward()
            if (number + 1) % accumulate == 0 or number + 1 == len(batches):
                optimizer.step()
                optimizer.zero_grad()
    return weights(net)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "make", [FOMA, partial(FOMA, weight="lam", anneal=0.8), partial(Mixup, p=0.5)]
)
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_training_is_that_of_the_loop_written_out(place, make, accumulate):
    module = fit(AugmentCallback(make(), place), accumulate_grad_batches=accumulate)
    torch.testing.assert_close(
        weights(module), train_by_hand(make(), place, accumulate=accumulate), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("place", [*PLACES, ["net.0", "net.1", "input"]])
def test_the_same_seed_gives_the_same_training(place):
    augmentation = FOMA(generator=torch.Generator().manual_seed(7))
    state = augmentation.generator.get_state()
    callback = AugmentCallback(augmentation, place)
    first, second = fit(callback), fit(callback)
    assert torch.equal(weights(first), weights(second))
    assert torch.equal(augmentation.generator.get_state(), state)
    assert not torch.equal(weights(first), weights(fit(AugmentCallback(FOMA(), place))))


def test_the_global_generator_does_not_move():
    states = []
    for callbacks in ([], [AugmentCallback(ADA(clusters=2), sampler="nearest")]):
        torch.manual_seed(3)
        fit(*callbacks)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("hook", ["training_step", "validation_step", "on_train_start"])
def test_an_exception_leaves_nothing_behind(package, place, hook):
    def fail(self, *args):
        raise StoppedError

    module = make_module(package, **{hook: fail})
    callback = AugmentCallback(FOMA(), place, sampler="nearest")
    state = callback.augmentation.generator.get_state()
    trainer = make_trainer(callback, package=package, num_sanity_val_steps=0)
    with pytest.raises(StoppedError):
        trainer.fit(module, make_loader(), make_loader())
    assert is_as_before(module)
    assert "dataloader" not in trainer.fit_loop._data_source.__dict__
    assert torch.equal(callback.augmentation.generator.get_state(), state)


def test_a_training_step_of_the_objects_own_is_put_back():
    module = make_module()
    own = module.training_step = lambda batch: F.mse_loss(module.net(batch[0]), batch[1])
    fit(AugmentCallback(FOMA()), module=module)
    assert module.__dict__["training_step"] is own


@pytest.mark.parametrize("single", [False, True])
def test_a_training_step_gets_the_arguments_it_has(single):
    step = (lambda self, batch: self.loss(batch)) if single else (lambda self, a, b: self.loss(a))
    module = make_module(
        training_step=step, loss=lambda self, batch: F.mse_loss(self.net(batch[0]), batch[1])
    )
    first = fit(AugmentCallback(FOMA()), AugmentCallback(FOMA(), "net.1"), module=module)
    assert first.trainer.global_step == 6


def use_copy(self, batch, batch_idx):
    x, y = batch
    y = 2 * y - 1
    return F.mse_loss(self.net(x), y)


def use_other_dtype(self, batch, batch_idx):
    x, y = batch
    y = y.double().flatten()
    return (self.net(x).flatten().double() - y).square().mean()


def use_in_place(self, batch, batch_idx):
    x, y = batch
    y[:, 0] -= 1
    return F.mse_loss(self.net(x), y)


def use_view(self, batch, batch_idx):
    x, y = batch
    y = y.squeeze(1).detach()[:, None]
    return F.mse_loss(self.net(x), y)


def use_statistics(self, batch, batch_idx):
    x, y = batch
    self.log("mean", y.mean())
    if not y.isfinite().all():
        return None
    return F.mse_loss(self.net(x), y)


def use_afterwards(self, batch, batch_idx):
    x, y = batch
    output = self.net(x)
    y = 2 * y - 1
    return F.mse_loss(output, y)


@pytest.mark.parametrize("step", [use_copy, use_other_dtype, use_in_place])
def test_targets_that_are_used_before_the_layer_ran_are_an_error(step):
    module = make_module(training_step=step)
    with pytest.raises(PlaceError, match='before the layer .net.1. has run.*targets="keep"'):
        fit(AugmentCallback(FOMA(), "net.1"), module=module)
    assert is_as_before(module)


@pytest.mark.parametrize("seed", range(4))
def test_early_use_is_found_if_the_first_steps_act_elsewhere(seed):
    augmentation = FOMA(generator=torch.Generator().manual_seed(seed))
    with pytest.raises(PlaceError, match="before the layer .net.1. has run"):
        fit(
            AugmentCallback(augmentation, ["input", "net.1"]),
            module=make_module(training_step=use_copy),
            max_epochs=10,
        )


@pytest.mark.parametrize("step", [use_view, use_statistics, use_afterwards])
def test_other_uses_of_the_targets_are_none(step):
    module = fit(AugmentCallback(FOMA(), "net.1"), module=make_module(training_step=step))
    assert module.trainer.global_step == 6


@pytest.mark.parametrize("step", [use_copy, use_other_dtype, use_in_place])
@pytest.mark.parametrize("options", [{"place": "net.1", "targets": "keep"}, {}])
def test_kept_targets_and_those_at_the_inputs_may_be_used_at_any_time(step, options):
    module = fit(AugmentCallback(FOMA(), **options), module=make_module(training_step=step))
    assert module.trainer.global_step == 6


def test_the_loss_at_a_layer_sees_new_targets_through_a_view():
    def view(self, batch, batch_idx):
        x, y = batch
        y = y.squeeze(1)
        return F.mse_loss(self.net(x).squeeze(1), y)

    module = fit(AugmentCallback(FOMA(), "net.1"), module=make_module(training_step=view))
    expected = train_by_hand(FOMA(), "net.1")
    torch.testing.assert_close(weights(module), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_kept_targets_are_the_original_ones(place):
    plain, augmented = fit(), fit(AugmentCallback(FOMA(), place, targets="keep"))
    assert same(
        [(y,) for _, y in plain.trained],
        [(y,) for _, y in augmented.trained],
    )
    assert not torch.equal(weights(plain), weights(augmented))


@pytest.mark.parametrize("place", PLACES)
def test_an_augmentation_in_eval_mode_is_plain_training(place):
    augmentation = FOMA(weight="lam")
    augmentation(*make_rows())
    assert augmentation.params.weight != 1
    augmented = fit(AugmentCallback(augmentation.eval(), place))
    assert torch.equal(weights(augmented), weights(fit()))


def test_the_loss_may_be_in_a_dict():
    def step(self, batch, batch_idx):
        return {"loss": F.mse_loss(self.net(batch[0]), batch[1]), "other": 1}

    module = fit(AugmentCallback(FOMA(weight="lam2")), module=make_module(training_step=step))
    expected = train_by_hand(FOMA(weight="lam2"), None)
    torch.testing.assert_close(weights(module), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_a_module_may_call_its_optimizer_itself(place):
    def step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(F.mse_loss(self.net(batch[0]), batch[1]))
        optimizer.step()

    module = make_module(training_step=step)
    module.automatic_optimization = False
    fit(AugmentCallback(FOMA(), place), module=module)
    expected = train_by_hand(FOMA(), place)
    torch.testing.assert_close(weights(module), expected, rtol=0, atol=1e-6)
    with pytest.raises(ArgumentError, match='`weight` must be "one"'):
        fit(AugmentCallback(FOMA(weight="lam"), place), module=module)


def test_an_optimizer_that_runs_a_step_again_gets_the_same_batch():
    def optimizers(self):
        return torch.optim.LBFGS(self.parameters(), max_iter=3)

    module = make_module(configure_optimizers=optimizers)
    fit(AugmentCallback(FOMA()), module=module, max_epochs=1, limit_train_batches=1)
    assert len(module.trained) > 1
    assert same(module.trained[1:], module.trained[:1] * (len(module.trained) - 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
@pytest.mark.parametrize("what", ["module", "net"])
def test_a_layer_is_reached_in_what_is_compiled(what):
    module = make_module(forward=lambda self, x: self.net(x))
    compiled = module
    if what == "module":
        compiled = torch.compile(module, backend="aot_eager")
    else:
        module.net.compile(backend="aot_eager")
    fit(AugmentCallback(FOMA(), "net.1"), module=compiled)
    expected = train_by_hand(FOMA(), "net.1")
    torch.testing.assert_close(weights(module), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed", "64-true"])
def test_other_precisions_train(place, precision):
    options = {"precision": precision}
    if precision == "16-mixed":  # by default for GPUs only
        from lightning.pytorch.plugins import MixedPrecision

        scaler = torch.amp.GradScaler("cpu")
        options = {"plugins": MixedPrecision("16-mixed", "cpu", scaler)}
    plain = fit(max_epochs=10, **options)
    augmented = fit(AugmentCallback(FOMA(anneal=0.5), place), max_epochs=10, **options)
    start = F.mse_loss(make_net()(make_rows()[0]), make_rows()[1]).item()
    for module in (plain, augmented):
        assert float(module.trainer.callback_metrics["error"]) < 0.6 * start
    assert not torch.equal(weights(plain), weights(augmented))


Batch = namedtuple("Batch", "x y")


@pytest.mark.parametrize("kind", [tuple, list, Batch._make])
def test_a_pair_stays_what_it_is(kind):
    loader = make_loader(collate_fn=lambda rows: kind(map(torch.stack, zip(*rows, strict=True))))
    module = fit(AugmentCallback(FOMA()), loader=loader)
    assert type(module.trained[0]) is type(kind([0, 0]))


@pytest.mark.parametrize("place", PLACES)
def test_batches_of_any_kind_need_two_functions(place):
    def collate(rows):
        x, y = map(torch.stack, zip(*rows, strict=True))
        return {"inputs": x, "labels": y, "name": "some"}

    def step(self, batch, batch_idx):
        assert batch["name"] == "some"
        return F.mse_loss(self.net(batch["inputs"]), batch["labels"])

    callback = AugmentCallback(
        FOMA(),
        place,
        get=lambda batch: (batch["inputs"], batch["labels"]),
        set=lambda batch, x, y: {**batch, "inputs": x, "labels": y},
    )
    module = fit(
        callback, module=make_module(training_step=step), loader=make_loader(collate_fn=collate)
    )
    expected = train_by_hand(FOMA(), place)
    torch.testing.assert_close(weights(module), expected, rtol=0, atol=1e-6)


class TwoInputs(nn.Module):
    """The net of the others, for two inputs in a dict."""

    def __init__(self):
        super().__init__()
        self.net = make_net()

    def forward(self, x):
        return self.net(torch.cat([x["a"], x["b"]], dim=1))


def split_inputs(rows):
    x, y = map(torch.stack, zip(*rows, strict=True))
    return {"a": x[:, :1], "b": x[:, 1:]}, y


def make_two_inputs(**methods):
    def validate(self, batch, batch_idx):
        pass

    module = make_module(validation_step=validate, **methods)
    module.net = TwoInputs()
    return module


@pytest.mark.parametrize(
    ("make", "sampler"),
    [(FOMA, None), (FOMA, "nearest"), (partial(ADA, clusters=3), None), (Mixup, None)],
)
def test_several_inputs_are_augmented_as_one(make, sampler):
    module = fit(
        AugmentCallback(make(), sampler=sampler),
        module=make_two_inputs(),
        loader=make_loader(collate_fn=split_inputs),
    )
    expected = fit(AugmentCallback(make(), sampler=sampler))
    torch.testing.assert_close(weights(module), weights(expected), rtol=0, atol=1e-6)
    assert list(module.trained[0][0]) == ["a", "b"]


def test_several_inputs_reach_a_layer():
    module = fit(
        AugmentCallback(FOMA(), "net.net.1"),
        module=make_two_inputs(),
        loader=make_loader(collate_fn=split_inputs),
    )
    torch.testing.assert_close(
        weights(module), weights(fit(AugmentCallback(FOMA(), "net.1"))), rtol=0, atol=1e-6
    )


def test_several_targets_are_for_the_inputs():
    def collate(rows):
        x, y = map(torch.stack, zip(*rows, strict=True))
        return x, {"first": y, "second": y[:, 0]}

    def step(self, batch, batch_idx):
        self.trained.append(batch)
        return F.mse_loss(self.net(batch[0]), batch[1]["first"])

    modules = [make_two_inputs(training_step=step) for _ in range(2)]
    for module in modules:
        module.net = make_net()
    loader = make_loader(collate_fn=collate)
    fit(AugmentCallback(Mixup(), sampler="random"), module=modules[0], loader=loader)
    for _, y in modules[0].trained:
        assert torch.equal(y["first"][:, 0], y["second"])
    with pytest.raises(ArgumentTypeError, match="targets must be one tensor .* got a dict"):
        fit(AugmentCallback(Mixup(), "net.1"), module=modules[1], loader=loader)


def test_a_batch_that_is_no_pair_is_refused_with_the_way_out():
    x, y = make_rows()
    loader = DataLoader(TensorDataset(x, y, y), BATCH)
    with pytest.raises(ArgumentTypeError, match=r"list of Tensor, Tensor, Tensor.*get=lambda"):
        fit(AugmentCallback(FOMA()), loader=loader)
    with pytest.raises(ArgumentTypeError, match=r"`get\(batch\)` must be \(x, y\).* got a Tensor"):
        fit(AugmentCallback(FOMA(), get=lambda batch: batch[0], set=lambda *batch: batch))
    with pytest.raises(ArgumentError, match="`get` and `set` go together"):
        AugmentCallback(FOMA(), get=lambda batch: batch)


def test_the_sampler_chooses_the_batches_of_every_epoch():
    x, y = make_rows()
    callback = AugmentCallback(Compose(), sampler="nearest")
    module = fit(callback, loader=make_loader(drop_last=True, batch_size=20), max_epochs=3)
    sampler = NearestBatchSampler(y, 20, drop_last=True)
    expected = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        expected += [(x[batch], y[batch]) for batch in sampler]
    assert same(module.trained, expected)
    assert not same(expected[:2], expected[2:4])


@pytest.mark.parametrize(
    "sampler",
    [
        RandomBatchSampler,
        partial(KernelPairSampler, bandwidth=0.3),
        RandomBatchSampler(make_rows()[1], 4),
        lambda y, batch_size, **options: RandomBatchSampler(y, batch_size // 2, **options),
    ],
    ids=["class", "partial", "object", "function"],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_sampler_may_be_given_in_several_ways(sampler, workers):
    made = sampler
    if callable(sampler):
        made = sampler(make_rows()[1], BATCH, seed=0, drop_last=False)
    module = fit(
        AugmentCallback(Compose(), sampler=sampler),
        loader=make_loader(num_workers=workers),
        max_epochs=1,
    )
    x, y = make_rows()
    made.set_epoch(0)
    assert same(module.trained, [(x[batch], y[batch]) for batch in made])


class OwnLoader(DataLoader):
    pass


def test_the_new_loader_is_like_the_old_one():
    generator = torch.Generator()
    options = {
        "num_workers": 1,
        "collate_fn": torch.utils.data.default_collate,
        "timeout": 30.0,
        "worker_init_fn": print,
        "generator": generator,
        "prefetch_factor": 3,
        "persistent_workers": True,
        "multiprocessing_context": "fork",
    }
    loader = OwnLoader(TensorDataset(*make_rows()), BATCH, **options)
    trainer = make_trainer(AugmentCallback(FOMA(), sampler="nearest"), fast_dev_run=True)
    trainer.fit(make_module(), loader, make_loader())
    new = trainer.train_dataloader
    assert new is not loader
    assert type(new) is OwnLoader
    assert new.dataset is loader.dataset
    assert isinstance(new.batch_sampler, NearestBatchSampler)
    assert {name: getattr(new, name) for name in options} == {
        name: getattr(loader, name) for name in options
    }


def test_a_loader_that_a_module_makes_in_setup_is_taken_over():
    def setup(self, stage):
        self.rows = make_rows()

    module = make_module(setup=setup, train_dataloader=lambda self: make_loader(*self.rows))
    trainer = make_trainer(AugmentCallback(Compose(), sampler="nearest"), max_epochs=1)
    trainer.fit(module, val_dataloaders=make_loader())
    x, y = make_rows()
    assert same(module.trained, [(x[batch], y[batch]) for batch in NearestBatchSampler(y, BATCH)])


class Stream(IterableDataset):
    def __iter__(self):
        return zip(*make_rows(), strict=True)


@pytest.mark.parametrize(
    ("loader", "error", "words"),
    [
        (DataLoader(Stream(), BATCH), ArgumentTypeError, "by their index.* got a Stream"),
        (make_loader(batch_size=None), ArgumentTypeError, "batch_size=None"),
        ([make_loader(), make_loader()], ArgumentTypeError, "one torch DataLoader.* got a list"),
        (
            DataLoader(TensorDataset(*make_rows()), batch_sampler=[[0, 1], [2, 3]]),
            ArgumentError,
            "the batch size, which the train loader's own batch sampler, a list, does not tell",
        ),
    ],
)
def test_a_loader_that_cannot_take_a_sampler_is_refused(loader, error, words):
    with pytest.raises(error, match=f"`sampler` needs.*{words}"):
        fit(AugmentCallback(FOMA(), sampler="nearest"), loader=loader)


def test_a_loader_with_other_arguments_is_refused():
    class Odd(DataLoader):
        def __init__(self, rows):
            super().__init__(TensorDataset(*rows), BATCH)

    with pytest.raises(ArgumentTypeError, match="`sampler` cannot be put into a Odd"):
        fit(AugmentCallback(FOMA(), sampler="nearest"), loader=Odd(make_rows()))


def test_a_stream_needs_no_sampler():
    module = fit(AugmentCallback(FOMA()), loader=DataLoader(Stream(), BATCH))
    assert len(module.trained) == 6


@pytest.mark.parametrize(
    "make",
    [
        partial(ADA, clusters=3),
        partial(CEMS, d="two_nn_data", neighbors=8),
        partial(FOMA, k="two_nn_data"),
        lambda: Compose(ADA(clusters=3)),
    ],
)
def test_what_an_augmentation_learns_is_learned_from_the_training_rows(make):
    callback = AugmentCallback(make(), sampler="nearest")
    fit(callback)
    expected = make().fit(*make_rows()).state_dict()
    found = callback.augmentation.state_dict()
    learned = [name for name in expected if not name.endswith("_extra_state")]
    assert learned
    assert all(torch.equal(found[name], expected[name]) for name in learned)
    with pytest.raises(ArgumentTypeError, match="which learns from the training rows, needs"):
        fit(AugmentCallback(make()), loader=DataLoader(Stream(), BATCH))


def progress_of_every_batch(**options):
    seen = []

    class Noting(FOMA):
        def draw(self, x, y):
            seen.append(self.progress)
            return super().draw(x, y)

    fit(AugmentCallback(Noting()), **options)
    return seen


def test_progress_follows_epochs_and_steps():
    assert progress_of_every_batch(max_epochs=2) == pytest.approx([n / 6 for n in range(6)])
    assert progress_of_every_batch(max_epochs=-1, max_steps=4) == [0, 0.25, 0.5, 0.75]
    # Whichever ends training first.
    assert progress_of_every_batch(max_epochs=4, max_steps=4) == [0, 0.25, 0.5, 0.75]
    assert progress_of_every_batch(max_epochs=2, limit_train_batches=2) == [0, 0.25, 0.5, 0.75]
    assert progress_of_every_batch(max_epochs=2, loader=DataLoader(Stream(), BATCH)) == (
        [0, 0, 0, 0.5, 0.5, 0.5]
    )


def test_annealing_needs_an_end():
    class Stop(importlib.import_module(PACKAGES[0]).Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            trainer.should_stop = True

    module = fit(AugmentCallback(FOMA()), Stop(), max_epochs=-1)
    assert module.trainer.global_step == 3
    with pytest.raises(ArgumentError, match="`anneal` .* max_epochs or max_steps"):
        fit(AugmentCallback(Compose(FOMA(anneal=0.5))), Stop(), max_epochs=-1)
    counting = AugmentCallback(Compose(FOMA(anneal=0.5), total_steps=10))
    assert fit(counting, Stop(), max_epochs=-1).trainer.global_step == 3


def test_an_augmentation_that_counts_is_left_to_count():
    seen = []

    class Noting(Mixup):
        def draw(self, x, y):
            seen.append(self.progress)
            return super().draw(x, y)

    callback = AugmentCallback(Noting(total_steps=8))
    for _ in range(2):  # every training begins anew
        fit(callback, max_epochs=2)
        assert seen == [n / 8 for n in range(6)]
        seen.clear()


@pytest.mark.parametrize(
    "make",
    [
        lambda: AugmentCallback(FOMA(anneal=0.9), sampler="nearest"),
        lambda: AugmentCallback(FOMA(anneal=0.9, total_steps=12), sampler="nearest"),
        lambda: AugmentCallback(FOMA(p=0.5), ["net.0", "net.1"], sampler="nearest"),
        lambda: AugmentCallback(ADA(clusters=3), "net.1"),
    ],
)
@pytest.mark.parametrize(("package", "workers"), [(PACKAGES[0], 1), (PACKAGES[1], 0)])
def test_a_checkpoint_continues_to_the_same_weights(make, workers, package, tmp_path, monkeypatch):
    def run(callback, stop, ckpt_path=None):
        class Stop(importlib.import_module(package).Callback):
            def on_train_epoch_end(self, trainer, pl_module):
                trainer.should_stop = trainer.current_epoch + 1 == stop

        loader = make_loader(num_workers=workers)
        return fit(
            callback, Stop(), package=package, loader=loader, ckpt_path=ckpt_path, max_epochs=4
        )

    whole = run(make(), 4)
    run(make(), 2).trainer.save_checkpoint(tmp_path / "half.ckpt")
    other = make()
    other.augmentation.generator.manual_seed(5)  # the saved one counts
    with monkeypatch.context() as patch:
        patch.setattr(ADA, "fit", None)  # and what has been learned is not learned again
        again = run(other, 4, tmp_path / "half.ckpt")
    assert again.trainer.current_epoch == 4
    assert len(again.trained) == len(whole.trained) / 2
    assert torch.equal(weights(again), weights(whole))


def test_a_checkpoint_of_another_augmentation_is_refused(tmp_path):
    fit(AugmentCallback(Compose(FOMA()))).trainer.save_checkpoint(tmp_path / "some.ckpt")
    callback = AugmentCallback(Compose(FOMA(), FOMA()))
    with pytest.raises(CheckpointError, match="not the one of this callback"):
        fit(callback, max_epochs=3, ckpt_path=tmp_path / "some.ckpt")


def test_appended_rows_make_larger_batches_at_the_inputs_only():
    module = fit(AugmentCallback(FOMA(append=True)))
    assert {len(x) for x, _ in module.trained} == {len(y) for _, y in module.trained} == {2 * BATCH}
    with pytest.raises(ArgumentError, match="`append` changes the number of rows"):
        fit(AugmentCallback(FOMA(append=True), "net.1"))
    with pytest.raises(ArgumentError, match="`paired` changes the number of rows"):
        fit(AugmentCallback(Compose(CMixup(paired=True)), "net.1"))
    with pytest.raises(ArgumentError, match='`targets` must be "joint".* 32 rows of 16'):
        fit(AugmentCallback(FOMA(append=True), targets="keep"))


@pytest.mark.parametrize("swap", [False, True])
def test_two_callbacks_act_in_one_step_inputs_first(swap):
    callbacks = [AugmentCallback(FOMA()), AugmentCallback(FOMA(weight="lam"), "net.1")]
    factors = [callback.augmentation for callback in callbacks]
    module = fit(*(reversed(callbacks) if swap else callbacks), max_epochs=1, limit_train_batches=1)
    assert factors[0].params.lam != factors[1].params.lam
    assert is_as_before(module)

    net, [(x, y), *_] = make_net(), list(make_loader())
    numbers = (1, 0) if swap else (0, 1)
    inputs, layer = (
        FOMA(
            generator=_random.make_generator(
                _random.derive(_random.Stream.EPOCHS, 0, 0, 0, 0, number)
            ),
            weight=weight,
        )
        for number, weight in zip(numbers, ("one", "lam"), strict=True)
    )
    x, y = inputs(x, y)
    loss = F.mse_loss(*layer.at(net, "1")(x, y))
    (layer.weight * loss).backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    torch.testing.assert_close(weights(module), weights(net), rtol=0, atol=1e-6)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_layer_gives_the_same_training(reentrant):
    def training_step(self, batch, batch_idx):
        x, y = batch
        hidden = checkpoint(self.net[:2], x.requires_grad_(), use_reentrant=reentrant)
        return F.mse_loss(self.net[2](hidden), y)

    found = [
        weights(fit(AugmentCallback(FOMA(weight="lam"), "net.1"), module=module))
        for module in (make_module(), make_module(training_step=training_step))
    ]
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-6)


def test_a_method_may_act_at_both_places():
    callback = AugmentCallback("foma-rho", "both", sampler="random")
    module = fit(callback, module=make_module(places=("net.1",)), max_epochs=1)
    loader = with_sampler(make_loader(), SAMPLERS["random"], callback._get, seed=callback._seed)
    net, augment = make_net(), FOMA(rho=0.9, anneal=0.7)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number, (x, y) in enumerate(loader):
        seed = _random.derive(_random.Stream.EPOCHS, callback._seed, 0, number, 0, 0)
        augment.generator.manual_seed(seed)
        augment.progress = number / len(loader)
        F.mse_loss(*augment.at(net, "1")(*augment(x, y))).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.testing.assert_close(weights(module), weights(net), rtol=0, atol=1e-6)
    assert is_as_before(module)


def test_two_layers_act_in_one_step():
    fit(AugmentCallback(FOMA(), "net.0"), AugmentCallback(FOMA(), "net.1"))
    with pytest.raises(PlaceError, match="before the layer"):
        fit(AugmentCallback(FOMA(), "net.1"), AugmentCallback(FOMA(), "net.0"))


def test_a_named_method_takes_settings_and_a_seed():
    own = {"sigma": 0.5, "p": 1.0, "anneal": None}
    callback = AugmentCallback("noise", method_settings=own)
    assert (callback.augmentation.sigma, callback.augmentation.anneal) == (0.5, None)
    seen = [
        weights(fit(AugmentCallback("noise", method_settings=changes, seed=seed)))
        for changes, seed in ((own, 1), (own, 1), (own, 2), ({**own, "sigma": 0.1}, 1))
    ]
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert not torch.equal(seen[0], seen[3])
    placed = AugmentCallback("mixup", "net.1", method_settings={"place": "input"})
    assert placed.place == "net.1"
    with pytest.raises(ArgumentError, match="`method_settings` must be None for an augmentation"):
        AugmentCallback(FOMA(), method_settings={"rho": 0.5})


def test_a_method_is_its_sampler_augmentation_and_place():
    module = fit(AugmentCallback("c-mixup"))
    assert isinstance(module.trainer.train_dataloader.batch_sampler, KernelPairSampler)
    assert module.trainer.train_dataloader.batch_sampler.bandwidth == 0.3
    assert {len(x) for x, _ in module.trained} == {BATCH}
    callback = AugmentCallback("foma-rho", "net.1", sampler="random")
    assert isinstance(fit(callback).trainer.train_dataloader.batch_sampler, RandomBatchSampler)
    with pytest.raises(PlaceError, match="name a layer as `place`"):
        fit(AugmentCallback("manifold-mixup"))
    fit(AugmentCallback("manifold-mixup"), module=make_module(places=("net.0", "net.1")))


def test_what_cannot_be_used_is_refused_with_a_hint():
    with pytest.raises(ArgumentTypeError, match="`aug` must be an augmentation"):
        AugmentCallback(FOMA)
    with pytest.raises(UnknownNameError, match="Did you mean 'foma-rho'"):
        AugmentCallback("foma-roh")
    with pytest.raises(ArgumentError, match="`targets` must be one of"):
        AugmentCallback(FOMA(), targets="new")
    with pytest.raises(UnknownNameError, match="Did you mean 'nearest'"):
        AugmentCallback(FOMA(), sampler="nearst")
    with pytest.raises(ArgumentTypeError, match="`sampler` must be a name.* got a list"):
        AugmentCallback(FOMA(), sampler=[[0, 1]])
    with pytest.raises(ArgumentError, match="`place` must name at least one layer"):
        fit(AugmentCallback(FOMA(), []))
    with pytest.raises(UnknownNameError, match="Unknown layer 'net.7'"):
        fit(AugmentCallback(FOMA(), "net.7"))


@pytest.mark.parametrize(
    ("targets", "words"),
    [("joint", "the layer 'other' has run, or does not run it"), ("keep", "'other' did not run")],
)
def test_a_layer_that_does_not_run_is_named(targets, words):
    module = make_module()
    module.other = nn.Linear(1, 1)
    with pytest.raises(PlaceError, match=words):
        fit(AugmentCallback(FOMA(), "other", targets=targets), module=module)


def test_a_missing_package_gives_the_command(monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r'pip install "regaug\[lightning\]"'):
        find_bases()


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("ours_first", [True, False])
def test_the_order_of_imports_does_not_matter(package, ours_first):
    imports = [
        "from regaug.integrations.lightning import AugmentCallback",
        f"import {package} as pl",
    ]
    code = "\n".join(
        [
            *(imports if ours_first else reversed(imports)),
            "import torch",
            "from regaug import FOMA",
            "from torch.utils.data import DataLoader, TensorDataset",
            "class Module(pl.LightningModule):",
            "    def __init__(self):",
            "        super().__init__()",
            "        self.net = torch.nn.Linear(2, 1)",
            "    def training_step(self, batch):",
            "        return (self.net(batch[0]) - batch[1]).square().mean()",
            "    def configure_optimizers(self):",
            "        return torch.optim.SGD(self.parameters(), lr=0.1)",
            "callback = AugmentCallback(FOMA(), 'net', sampler='nearest')",
            f"trainer = pl.Trainer(max_epochs=1, callbacks=[callback], **{QUIET})",
            "rows = TensorDataset(torch.randn(8, 2), torch.randn(8, 1))",
            "trainer.fit(Module(), DataLoader(rows, 4))",
            "assert 0 < callback.augmentation.params.lam < 1",
            "assert isinstance(callback, pl.Callback) or " + str(ours_first),
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr

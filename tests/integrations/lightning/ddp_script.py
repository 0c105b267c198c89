"""What test_distributed.py runs in two processes: trainings whose outcome each of them writes."""

import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning_fabric import Fabric
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from regaug import FOMA, NearestBatchSampler, _random
from regaug.exceptions import ArgumentError
from regaug.integrations.lightning import AugmentCallback
from regaug.training.state import write_state

N, BATCH, EPOCHS = 80, 8, 3  # 10 batches an epoch, 5 for each process
QUIET = {
    "accelerator": "cpu",
    "devices": 2,
    "strategy": "ddp",
    "max_epochs": EPOCHS,
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def make_rows():
    """Return inputs, targets, and the number of every row, by which a batch is told."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(N, 3, generator=generator)
    return x, x[:, :1].sin(), torch.arange(N)


def make_loader(**options):
    return DataLoader(TensorDataset(*make_rows()), **options or {"batch_size": BATCH})


def make_sampled_loader():
    return make_loader(batch_sampler=NearestBatchSampler(make_rows()[1], BATCH))


def make_net():
    with _random.seeded(0):
        return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))


def train_plainly():
    """Train with torch alone."""
    net, loader, seen = make_net(), make_sampled_loader(), []
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(EPOCHS):
        loader.batch_sampler.set_epoch(epoch)
        for x, y, rows in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            seen.append(rows.tolist())
    return net, seen


def train_on_fabric():
    """Train with Fabric, which calls set_epoch itself."""
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    net, seen = make_net(), []
    model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    loader = fabric.setup_dataloaders(make_sampled_loader(), use_distributed_sampler=False)
    for _ in range(EPOCHS):
        for x, y, rows in loader:
            optimizer.zero_grad()
            fabric.backward(F.mse_loss(model(x), y))
            optimizer.step()
            seen.append(rows.tolist())
    return net, seen


class Module(LightningModule):
    """A module that notes the rows of its training batches."""

    def __init__(self):
        super().__init__()
        self.net, self.seen = make_net(), []

    def training_step(self, batch):
        x, y, rows = batch
        self.seen.append(rows.tolist())
        return F.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Notes(Callback):
    """Notes what is drawn, and stops after an epoch."""

    def __init__(self, augmentation, stop):
        self.augmentation, self.stop, self.drawn = augmentation, stop, []

    def on_train_batch_end(self, trainer, *_):
        self.drawn.append(self.augmentation.params.lam)

    def on_train_epoch_end(self, trainer, pl_module):
        trainer.should_stop = trainer.current_epoch + 1 == self.stop


def train_with_trainer(place, *, sampler, stop=EPOCHS, ckpt_path=None, **options):
    augmentation = FOMA(anneal=0.9)
    callback = AugmentCallback(
        augmentation,
        place,
        sampler=sampler,
        get=lambda batch: (batch[0], batch[1]),
        set=lambda batch, x, y: (x, y, batch[2]),
    )
    module, notes = Module(), Notes(augmentation, stop)
    trainer = Trainer(callbacks=[callback, notes], **{**QUIET, **options})
    trainer.fit(module, make_loader(), ckpt_path=ckpt_path)
    return module, notes.drawn, trainer


def main(folder):
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    def note(name, net, seen, **more):
        weights = {name: value.detach().clone() for name, value in net.state_dict().items()}
        write_state(folder / f"{name} {rank}", {"weights": weights, "seen": seen, **more})

    note("torchrun", *train_plainly())
    note("fabric", *train_on_fabric())
    ours = {"sampler": "nearest", "use_distributed_sampler": False}
    for name, place, options in (
        ("inputs", None, ours),
        ("layer", "net.1", ours),
        ("own sampler", None, {"sampler": None}),
    ):
        module, drawn, _ = train_with_trainer(place, **options)
        note(name, module.net, module.seen, drawn=drawn)
    for name, place in (("inputs", None), ("layer", "net.1")):
        _, _, trainer = train_with_trainer(place, stop=1, **ours)
        trainer.save_checkpoint(folder / f"{name}.ckpt")
        module, drawn, _ = train_with_trainer(place, ckpt_path=folder / f"{name}.ckpt", **ours)
        note(f"{name} again", module.net, module.seen, drawn=drawn)
    try:
        train_with_trainer(None, sampler="nearest")
    except ArgumentError as error:
        write_state(folder / f"refused {rank}", {"words": str(error)})
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Lightning's, about workers
    main(Path(sys.argv[1]))

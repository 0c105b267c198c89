"""Train a Lightning module on the diabetes table with and without FOMA, and print the errors.

    python examples/lightning_callback.py

The module knows nothing of the augmentation: one line, marked, adds it to the trainer. One split
says little about which row is better; `regaug.compare` asks that question properly.
"""

import logging
import warnings

import lightning.pytorch as pl
import torch
import torch.nn.functional as F  # noqa: N812
from sklearn.datasets import load_diabetes
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from regaug import FOMA
from regaug.integrations.lightning import AugmentCallback

EPOCHS = 30
# Lightning tells about devices and workers; neither matters for a table of 442 rows.
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")


class Regressor(pl.LightningModule):
    """A small net, as Lightning's documentation would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 64), nn.LeakyReLU(0.1), nn.Linear(64, 1))

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """Return the loss of a batch."""
        x, y = batch
        return F.mse_loss(self.net(x), y)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Note the error of a batch."""
        x, y = batch
        self.log("error", F.mse_loss(self.net(x), y))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def make_loaders() -> tuple[DataLoader[Tensor], DataLoader[Tensor]]:
    """Return training and validation rows, standardized by the training rows."""
    data, target = load_diabetes(return_X_y=True)
    rows = torch.tensor(data), torch.tensor(target)[:, None]
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    train, validation = order[:310], order[310:]
    x, y = (((t - t[train].mean(0)) / t[train].std(0)).float() for t in rows)
    return (
        DataLoader(TensorDataset(x[train], y[train]), batch_size=31, shuffle=True),
        DataLoader(TensorDataset(x[validation], y[validation]), batch_size=132),
    )


def train(*callbacks: pl.Callback) -> float:
    """Train one net; return its validation error in standard deviations of the target."""
    torch.manual_seed(0)
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        callbacks=list(callbacks),  # <- the line
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Regressor(), *make_loaders())
    return float(trainer.callback_metrics["error"].sqrt())


def main() -> None:
    """Compare plain training with FOMA at the inputs and at a layer."""
    print("diabetes, 310 training rows, root mean squared error of 132 validation rows:")
    print(f"  plain training              {train():.3f}")
    inputs = AugmentCallback(FOMA(rho=0.9, anneal=0.7))
    print(f"  FOMA at the inputs          {train(inputs):.3f}")
    layer = AugmentCallback(FOMA(rho=0.9, anneal=0.7), place="net.1", sampler="nearest")
    print(f"  FOMA at a layer, near rows  {train(layer):.3f}")


if __name__ == "__main__":
    main()

"""
Lightning: one callback
=======================

``AugmentCallback`` augments the training batches of a Lightning ``Trainer``. The module stays
as it is, and validation sees the data as they are.
"""

import logging
import warnings

import lightning.pytorch as pl
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from regaug import FOMA
from regaug.integrations.lightning import AugmentCallback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")
EPOCHS = 12


class Regressor(pl.LightningModule):
    """A small net that notes its errors."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
        self.errors = []

    def training_step(self, batch, _):
        x, y = batch
        return F.mse_loss(self.net(x), y)

    def on_train_epoch_end(self):
        with torch.no_grad():
            self.errors.append(F.mse_loss(self.net(test_x), test_y).sqrt().item())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def make_rows(n, noise, seed):
    """Rows near a plane of two dimensions in eight columns."""
    rng = np.random.default_rng(seed)
    inner = rng.uniform(-1.7, 1.7, (n, 2))
    directions = np.linalg.qr(np.random.default_rng(9).normal(size=(8, 2)))[0]
    x = 2 * inner @ directions.T + noise * rng.normal(size=(n, 8))
    y = inner.sum(1, keepdims=True) + noise * rng.normal(size=(n, 1))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


x, y = make_rows(96, 0.5, seed=0)
test_x, test_y = make_rows(1000, 0.5, seed=1)

# %%
# The line that is new is the callback. It can bring its own batches too: with
# ``sampler="nearest"`` the train loader is made anew.


def train(callbacks):
    torch.manual_seed(0)
    module = Regressor()
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        callbacks=callbacks,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True))
    return module.errors


foma = AugmentCallback(FOMA(k=2, lam_range=(0.0, 0.3)))
errors = {
    "plain": train([]),
    "FOMA": train([foma]),
    "FOMA, nearest batches": train([AugmentCallback("foma", method_settings={"k": 2})]),
}

# %%
# One training each, so these curves show that it runs, not which is better: a study says that
# (``regaug.Problem.from_lightning``).

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
for (name, own), color in zip(errors.items(), ("0.4", "#0072b2", "#d55e00"), strict=True):
    axis.plot(range(1, EPOCHS + 1), own, "o-", ms=3, color=color, label=name)
axis.set(xlabel="epoch", ylabel="RMSE on new rows")
axis.legend(frameon=False)
plt.show()

"""Which augmentation helps a LightningModule? Its step, optimizer and loaders stay as they are."""

import lightning.pytorch as pl
import torch
import torch.nn.functional as F  # noqa: N812
from sklearn.datasets import load_diabetes
from torch.utils.data import TensorDataset

import regaug


class Regressor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(10, 64), torch.nn.ReLU())
        self.head = torch.nn.Linear(64, 1)

    def training_step(self, batch, batch_idx):
        return F.mse_loss(self.head(self.body(batch[0])), batch[1])

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", F.mse_loss(self.head(self.body(batch[0])), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def make_data(split):
    x, y = (torch.tensor(own).float() for own in load_diabetes(return_X_y=True))
    rows = torch.randperm(442, generator=torch.Generator().manual_seed(split))
    parts = train, _, _ = rows.split([266, 88, 88])
    x, y = ((own - own[train].mean(0)) / own[train].std(0) for own in (x, y[:, None]))
    sets = (TensorDataset(x[part], y[part]) for part in parts)
    return pl.LightningDataModule.from_datasets(*sets, batch_size=32)


if __name__ == "__main__":
    problem = regaug.Problem.from_lightning(Regressor, make_data, epochs=10, places=["body"])
    print(regaug.compare(problem, methods=["mixup", "foma-rho"], trials=1))

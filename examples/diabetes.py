"""Train a small net on scikit-learn's diabetes table with and without FOMA, and print both errors.

    python examples/diabetes.py [seeds]

The two lines a training loop needs are marked. Ten seeds take a few seconds; the differences
between them are larger than the one between the methods, which is why both means have an error.
"""

import sys

import torch
import torch.nn.functional as F  # noqa: N812
from sklearn.datasets import load_diabetes
from torch import Tensor, nn

from regaug import FOMA, RandomBatchSampler

EPOCHS, BATCH_SIZE = 60, 32


def split(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return train and test parts, standardized by the training rows; targets in their units."""
    data, target = load_diabetes(return_X_y=True)
    x, y = torch.tensor(data, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    train, test = order[:310], order[310:]
    mean, std = x[train].mean(0), x[train].std(0)
    return (x[train] - mean) / std, y[train], (x[test] - mean) / std, y[test]


def train_and_test(seed: int, augment: FOMA | None) -> float:
    """Train one net; return its root mean squared error on the test rows."""
    x, y, test_x, test_y = split(seed)
    center, spread = y.mean(), y.std()
    y = (y - center) / spread
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(10, 128),
        nn.LeakyReLU(0.1),
        nn.Linear(128, 128),
        nn.LeakyReLU(0.1),
        nn.Linear(128, 1),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    batches = RandomBatchSampler(y, BATCH_SIZE, seed=seed)
    for epoch in range(EPOCHS):
        for indices in batches:
            batch_x, batch_y = x[indices], y[indices]
            if augment is not None:
                augment.progress = epoch / EPOCHS  # line one: drives `anneal`
                batch_x, batch_y = augment(batch_x, batch_y)  # line two
            loss = F.mse_loss(net(batch_x).squeeze(1), batch_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        prediction = net(test_x).squeeze(1) * spread + center
    return F.mse_loss(prediction, test_y).sqrt().item()


def main(seeds: int = 10) -> None:
    """Compare plain training and FOMA over several splits."""
    print(f"diabetes, 310 training and 132 test rows, {seeds} random splits, test RMSE:")
    for name in ("plain training", "with FOMA"):
        errors = []
        for seed in range(seeds):
            generator = torch.Generator().manual_seed(seed)
            augment = (
                FOMA(rho=0.9, anneal=0.7, generator=generator) if name == "with FOMA" else None
            )
            errors.append(train_and_test(seed, augment))
        result = torch.tensor(errors)
        print(f"  {name:15} {result.mean():6.2f} +- {result.std() / seeds**0.5:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))

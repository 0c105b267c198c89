"""
Near a plane and off it
=======================

FOMA takes a batch of inputs and targets for a piece of a plane. Where it is one, and the noise is
off it, shrinking the small directions takes out noise. Where the target bends, it takes out what is
to be learned. Both happen with the same settings: real trainings on two data sets that differ in
their target alone.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from regaug import FOMA, RandomBatchSampler

COLUMNS, ROWS, EPOCHS, SEEDS = 20, 120, 60, 6


def make_inner(n, rng):
    """Points of a square, and the plane in 20 columns that they lie in."""
    directions = np.linalg.qr(np.random.default_rng(9).normal(size=(COLUMNS, 2)))[0]
    inner = rng.uniform(-1, 1, (n, 2))
    return inner, 4 * inner @ directions.T


def make_plane(n, rng):
    """The target is linear: the rows ``[x, y]`` lie in a plane."""
    inner, x = make_inner(n, rng)
    return x, inner.sum(1)


def make_bent(n, rng):
    """The target goes up and down: the rows lie in no plane."""
    inner, x = make_inner(n, rng)
    return x, np.cos(3 * inner[:, 0])


def sample(make, n, seed, noise):
    rng = np.random.default_rng(seed)
    x, y = make(n, rng)
    rows = x + noise * rng.normal(size=x.shape), y + noise * rng.normal(size=n)
    return [torch.tensor(own, dtype=torch.float32) for own in rows]


def train(make, seed, augment):
    """Return the error on new rows whose targets have no noise."""
    x, y = sample(make, ROWS, seed, noise=0.5)
    test_x, _ = sample(make, 1000, 1000 + seed, noise=0.5)
    _, test_y = make(1000, np.random.default_rng(1000 + seed))
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for batch in RandomBatchSampler(y, 60, seed=seed):
            new_x, new_y = augment(x[batch], y[batch]) if augment else (x[batch], y[batch])
            loss = F.mse_loss(net(new_x)[:, 0], new_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return (net(test_x)[:, 0] - torch.tensor(test_y)).square().mean().sqrt().item()


# %%
# Six trainings of each sort, on other rows each time. Every line is one draw of the rows:
# plain training on the left, FOMA on the right.

PROBLEMS = {"near a plane": make_plane, "off it": make_bent}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axis, (title, make) in zip(axes, PROBLEMS.items(), strict=True):
    plain = np.array([train(make, seed, None) for seed in range(SEEDS)])
    with_foma = np.array(
        [train(make, seed, FOMA(k=2, lam_range=(0.0, 0.3))) for seed in range(SEEDS)]
    )
    change = 100 * (np.exp(np.log(with_foma / plain).mean()) - 1)
    better = with_foma < plain
    for a, b, down in zip(plain, with_foma, better, strict=True):
        axis.plot([0, 1], [a, b], "o-", color="#0072b2" if down else "#d55e00", lw=1)
    axis.set(title=f"{title}: {change:+.0f} %, better in {better.sum()} of {SEEDS}")
    axis.set(xticks=[0, 1], xticklabels=["plain training", "FOMA, k = 2"], xlim=(-0.3, 1.3))
    axis.set_ylim(bottom=0)
axes[0].set_ylabel("RMSE on new rows")

# %%
# What it does to the targets
# ---------------------------
# One batch of each, against the truth that the noise hides. On the plane the new targets are closer
# to the truth than the noisy ones; where the target bends they are flat.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axis, (title, make) in zip(axes, PROBLEMS.items(), strict=True):
    x, y = sample(make, ROWS, 0, noise=0.5)
    _, truth = make(ROWS, np.random.default_rng(0))
    _, new_y = FOMA(k=2, lam_range=(0.15, 0.15))(x, y)
    axis.axline((0, 0), slope=1, color="0.7", lw=1)
    axis.scatter(truth, y, s=14, color="0.75", label="with noise")
    axis.scatter(truth, new_y, s=14, color="#0072b2", label="after FOMA")
    axis.set(title=title, xlabel="target without noise", xlim=(-2.2, 2.2), ylim=(-2.8, 2.8))
axes[0].set_ylabel("target that is learned from")
axes[0].legend(frameon=False)
plt.show()

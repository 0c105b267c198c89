"""
An image problem
================

Images of a disk, and the target is its area. A small convolutional network learns from 64 of
them, with mixtures of the images, and with mixtures at a layer.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from regaug import Mixup, RandomBatchSampler

SIZE, EPOCHS = 16, 40


def make_images(n, seed):
    """Return images of disks with noise, ``(n, 1, 16, 16)``, and their areas."""
    rng = np.random.default_rng(seed)
    radius, (across, down) = rng.uniform(2, 6, n), rng.uniform(6, 10, (2, n))
    grid = np.arange(SIZE)
    distance = np.hypot(grid[None, :, None] - down[:, None, None], grid - across[:, None, None])
    images = (distance < radius[:, None, None]) + 0.4 * rng.normal(size=distance.shape)
    area = (radius**2 - 17) / 10  # about standardized
    return torch.tensor(images[:, None]).float(), torch.tensor(area[:, None]).float()


x, y = make_images(64, seed=0)
test_x, test_y = make_images(500, seed=1)

# %%
# An image has any shape that a batch of inputs may have. A mixture of two disks is no disk; its
# target is between theirs.

mixup = Mixup(generator=torch.Generator().manual_seed(4))
new_x, new_y = mixup(x, y)
figure, axes = plt.subplots(2, 6, figsize=(10, 3.8), layout="constrained")
for column in range(6):
    for row, (images, targets) in enumerate(((x, y), (new_x, new_y))):
        axes[row, column].imshow(images[column, 0].numpy(), cmap="gray", vmin=-0.5, vmax=1.5)
        axes[row, column].set_title(f"{targets[column].item():+.2f}", fontsize="small")
        axes[row, column].set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("samples")
axes[1, 0].set_ylabel("mixtures")

# %%
# Three trainings of each sort, gray, and their mean. At a layer the mixture is one of features.


def train(seed, mixup, places):
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(144, 1),
    )  # fmt: skip
    step = mixup.at(net, places) if mixup else lambda x, y: (net(x), y)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for batch in RandomBatchSampler(y, 32, seed=seed):
            prediction, target = step(x[batch], y[batch])
            optimizer.zero_grad()
            F.mse_loss(prediction, target).backward()
            optimizer.step()
    with torch.no_grad():
        return F.mse_loss(net(test_x), test_y).sqrt().item()


ways = {"plain": None, "mixup of images": ["input"], "mixup at a layer": ["1", "3"]}
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for place, (name, places) in enumerate(ways.items()):
    errors = [train(seed, Mixup(1.0, p=0.5) if places else None, places) for seed in range(3)]
    axis.plot(errors, [place] * 3, "o", color="0.6")
    axis.plot(np.mean(errors), place, "D", color="#0072b2")
    print(f"{name:16} mean RMSE {np.mean(errors):.3f}")
axis.set(yticks=range(3), yticklabels=ways, ylim=(-0.6, 2.6), xlabel="RMSE on 500 new images")
axis.set_xlim(0, 0.35)
axis.invert_yaxis()
plt.show()

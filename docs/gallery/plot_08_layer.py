"""
At a layer of a network
=======================

Inputs such as images or series lie on bent surfaces; what a hidden layer makes of them may be
straighter. Every augmentation acts at any named layer, without an edit of the network:
``augment.at(net, "layer")``.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from regaug import FOMA, Mixup

rng = np.random.default_rng(0)
angle = torch.from_numpy(rng.uniform(0, 2 * np.pi, 256)).float()
x = torch.stack([angle.cos(), angle.sin()], dim=1)
y = (2 * angle).sin()[:, None]

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

# %%
# In a training
# -------------
# One call runs the network, augments what the layer ``"1"`` puts out together with the targets,
# and returns the prediction and the new targets. With a list, one of the places is drawn per
# step.

at_layer = Mixup(alpha=0.5, p=0.5).at(net, ["input", "1"])
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
losses = []
for _ in range(300):
    batch = torch.from_numpy(rng.integers(0, 256, 32))
    prediction, new_y = at_layer(x[batch], y[batch])
    loss = F.mse_loss(prediction, new_y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

# %%
# What it does there
# ------------------
# Samples on a circle, and mixtures of them at the inputs: they lie inside the circle, where no
# sample ever is. What the layer puts out has 32 numbers for each sample; it is drawn along its two
# widest directions. FOMA keeps the two widest directions of these numbers and the target together.

with torch.no_grad():
    hidden = net[:2](x)
    mean, directions = hidden.mean(0), torch.linalg.svd(hidden - hidden.mean(0)).Vh[:2]
    inputs, _ = Mixup(alpha=2.0)(x, y)
    mixed, _ = Mixup(alpha=2.0)(hidden, y)
    foma = FOMA(k=2, lam_range=(0.2, 0.2))
    shrunk, _ = foma(hidden, y)
views = {
    "mixup of inputs": (x, inputs),
    "mixup at the layer": tuple((own - mean) @ directions.T for own in (hidden, mixed)),
    "FOMA at the layer, k = 2": tuple((own - mean) @ directions.T for own in (hidden, shrunk)),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, (title, (old, new)) in zip(axes, views.items(), strict=True):
    axis.scatter(*old.T, s=10, color="0.8", label="before")
    axis.scatter(*new.T, s=8, color="#0072b2", label="after")
    axis.set(title=title, xticks=[], yticks=[], aspect="equal")
axes[0].legend(frameon=False, loc="center")

# %%
# Nothing is left in the network: in ``eval()`` and in every other call it is as it was.

net.eval()
with torch.no_grad():
    error = F.mse_loss(net(x), y).sqrt()
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.semilogy(losses, color="#0072b2", lw=1)
axis.set(xlabel="step", ylabel="loss of the batch", title=f"RMSE on all samples {error:.3f}")
plt.show()

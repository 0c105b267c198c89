"""
What FOMA does to a curve
=========================

FOMA takes a batch of samples, inputs and target side by side, as one cloud of points, finds the
direction in which the cloud is widest, and shrinks all others by a factor. What comes out
depends on who shares a batch.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from regaug import FOMA, NearestBatchSampler, RandomBatchSampler

rng = np.random.default_rng(0)
x = torch.from_numpy(rng.uniform(-2.6, 2.6, (120, 1)))
y = x[:, 0].sin() + 0.08 * torch.from_numpy(rng.normal(size=120))

# %%
# One batch, step by step
# -----------------------
# The batch is a matrix with a row ``[input, target]`` for every sample. Its first singular
# direction is kept (``k=1``); what the samples have beyond it is multiplied by ``lam``, here
# 0.3.

batch = next(iter(NearestBatchSampler(y, 20, seed=4)))
augment = FOMA(k=1, lam_range=(0.3, 0.3), center=True)
new_x, new_y = augment(x[batch], y[batch])

rows = torch.column_stack([x[batch], y[batch]])
center = rows.mean(0)
direction = torch.linalg.svd(rows - center).Vh[0]
ends = torch.stack([center - 1.5 * direction, center + 1.5 * direction])

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.scatter(x, y, s=16, color="0.8", label="the data")
axis.plot(*ends.T, "--", color="0.3", lw=1, label="the widest direction")
for old, new in zip(rows, torch.column_stack([new_x, new_y]), strict=True):
    axis.plot(*torch.stack([old, new]).T, color="#0072b2", lw=0.8)
axis.scatter(*rows.T, s=36, facecolors="none", edgecolors="#d55e00", label="the batch")
axis.scatter(new_x, new_y, s=20, color="#0072b2", label="what becomes of it")
axis.set(
    xlabel="input",
    ylabel="target",
    ylim=(-1.7, 1.7),
    title="A batch with near targets, k = 1, $\\lambda$ = 0.3",
)
axis.legend(loc="upper left", frameon=False)

# %%
# A whole epoch
# -------------
# Random batches hold samples from everywhere, and the widest direction of all is a straight
# line through the whole curve. Batches with near targets lie on pieces of the curve; where two
# pieces have the same height they still share one line.

samplers = {
    "random batches": RandomBatchSampler(y, 20),
    "batches with near targets": NearestBatchSampler(y, 20),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for axis, (title, sampler) in zip(axes, samplers.items(), strict=True):
    made = [torch.column_stack(augment(x[own], y[own])) for own in sampler]
    new = torch.cat(made)
    off = (new[:, 1] - new[:, 0].sin()).abs().mean()
    axis.scatter(x, y, s=16, color="0.8", label="before")
    axis.scatter(*new.T, s=14, color="#0072b2", label="after")
    axis.set(title=f"{title}: {off:.2f} off the sine", xlabel="input")
    axis.legend(loc="upper left", frameon=False)
axes[0].set_ylabel("target")
plt.show()

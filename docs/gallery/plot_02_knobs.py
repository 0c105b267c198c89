r"""
The knobs of FOMA: lambda, rho and k
====================================

Two numbers decide what FOMA does to a batch: the cut :math:`k`, how many of the singular
directions stay as they are, and the factor :math:`\lambda` of the others. ``rho`` finds the cut
from the singular values; ``alpha`` says how the factor is drawn.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.stats import beta

from regaug import FOMA
from regaug.functional import foma, rank_at_share

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 60)
ellipse = np.column_stack([2.2 * np.cos(angle), 0.9 * np.sin(angle)])
turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
rows = torch.from_numpy(ellipse @ turn.T)
x, y = rows[:, :1], rows[:, 1:]

# %%
# The factor
# ----------
# With one direction kept, 1 leaves the batch as it is and 0 leaves nothing but the line. Above
# 1 the small directions grow.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True, layout="constrained")
for axis, lam in zip(axes, (0.0, 0.4, 1.0, 1.6), strict=True):
    new_x, new_y = foma(x, y, lam=lam, k=1)
    axis.scatter(x, y, s=14, color="0.8")
    axis.scatter(new_x, new_y, s=14, color="#0072b2")
    axis.set(title=f"$\\lambda$ = {lam:g}", xlabel="input", aspect="equal")
axes[0].set_ylabel("target")

# %%
# The cut
# -------
# In more columns there is more to cut. These 10 columns have singular values that fall off;
# ``rho`` is the share of their sum that may stay: the bars up to the cut.

wide = torch.from_numpy(rng.normal(size=(60, 10)) * 0.72 ** np.arange(10))
values = torch.linalg.svdvals(wide)
shares = (0.3, 0.6, 0.9)
figure, axes = plt.subplots(1, 3, figsize=(12, 3), sharey=True, layout="constrained")
for axis, rho in zip(axes, shares, strict=True):
    k = int(rank_at_share(values, rho))
    kept = np.arange(10) < k
    axis.bar(np.arange(1, 11), values.numpy(), color=np.where(kept, "#d55e00", "#0072b2"))
    axis.set(title=f"rho = {rho:g}: {k} stay, {10 - k} are scaled", xlabel="singular value")
axes[0].set_ylabel("size")

# %%
# The draws
# ---------
# In training the factor is drawn for every batch, from Beta(alpha, alpha). A small ``alpha``
# draws mostly 0 or 1, so it does *not* switch FOMA off: half of the batches lose all of their
# small directions. To have less of it take ``p``, the share of the batches that are touched.

figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
t = np.linspace(0.005, 0.995, 400)
for alpha, color in ((0.2, "#d55e00"), (1.0, "0.4"), (4.0, "#0072b2")):
    augment = FOMA(alpha, k=1)
    drawn = [augment.draw(x, y).lam for _ in range(2000)]
    axis.hist(drawn, bins=40, range=(0, 1), density=True, color=color, alpha=0.3)
    axis.plot(t, beta.pdf(t, alpha, alpha), color=color, label=f"alpha = {alpha:g}")
axis.set(xlabel="$\\lambda$", ylabel="density", ylim=(0, 4), title="2,000 draws each")
axis.legend(frameon=False)
plt.show()

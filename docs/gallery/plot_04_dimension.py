r"""
The intrinsic dimension
=======================

How many numbers does it take to say where a row lies? FOMA's cut and CEMS's tangent planes need
to know. TwoNN finds out from distances alone: with the distances :math:`r_1 \le r_2` of a
point to its two nearest neighbors, :math:`-\log` of the share of points with a larger ratio
:math:`r_2 / r_1` is a straight line over :math:`\log (r_2 / r_1)`, and its slope is the
dimension.
"""

import matplotlib.pyplot as plt
import numpy as np

from regaug import linear_dimension, two_nn
from regaug.data.datasets.synthetic import make_manifold

# %%
# A swiss roll is a rolled-up sheet: three columns, two dimensions.

roll = make_manifold("swiss-roll", n=2000)
found = two_nn(roll.x)

figure = plt.figure(figsize=(10, 4), layout="constrained")
left = figure.add_subplot(1, 2, 1, projection="3d")
left.scatter(*roll.x.T, s=4, c=roll.y[:, 0], cmap="viridis")
left.set(title="swiss roll, colored by its target", xticklabels=[], yticklabels=[], zticklabels=[])
right = figure.add_subplot(1, 2, 2)
right.plot(found.log_mu, found.neg_log_survival, ".", ms=2, color="#0072b2", label="points")
reach = np.array([0, np.quantile(found.log_mu, 0.95)])
right.plot(reach, found.dimension * reach, color="#d55e00", label=f"slope {found.dimension:.2f}")
right.set(xlabel="$\\log(r_2 / r_1)$", ylabel="$-\\log$ of the share above")
right.legend(frameon=False)

# %%
# Noise has as many dimensions as there are columns, and it is all that the nearest neighbors
# see once it is wider than the distances between them. So the estimate grows with the noise, and
# with the number of points. The count of singular values that make up at most 90 % of their sum
# is the same at every noise here: it sees neither the noise nor that the sheet is rolled up.

levels = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6])
figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
for n, color in ((300, "#009e73"), (1000, "#0072b2"), (3000, "#d55e00")):
    clouds = [make_manifold("swiss-roll", n=n, noise=level).x for level in levels]
    estimates = [two_nn(cloud).dimension for cloud in clouds]
    axis.plot(levels, estimates, "o-", color=color, label=f"TwoNN, {n} points")
linear = [linear_dimension(cloud, shares=(0.9,))[0] for cloud in clouds]
axis.plot(levels, linear, "s:", color="0.4", label="singular values, 90 %")
axis.axhline(2, color="0.7", lw=1, zorder=0)
axis.set(xlabel="standard deviation of the noise", ylabel="dimension", ylim=(1, 3.4))
axis.legend(frameon=False, loc="lower right")
plt.show()

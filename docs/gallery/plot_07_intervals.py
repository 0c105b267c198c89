"""
Ensembles and intervals
=======================

``regaug.fit`` returns an ensemble of nets whose intervals are calibrated on rows that its
members have not seen. Here the noise is the same everywhere, and we know the truth, so that we
can count.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import regaug

rng = np.random.default_rng(0)


def make_rows(n):
    """Return rows of a sine with noise of 0.3; there are none between 1 and 2."""
    x = rng.uniform(-3, 3, 2 * n)
    x = x[(x < 1) | (x > 2)][:n]
    return pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=len(x))})


train = make_rows(200)
model = regaug.fit(train, target="y", method="mixup", members=4, seed=0)

# %%
# The mean, the interval that should hold nine values of ten, and how much the members disagree:
# most beyond the ends, and more in the gap than beside it.

grid = pd.DataFrame({"x": np.linspace(-3.6, 3.6, 200)})
found = model.predict(grid, interval=0.9)
mean, low, high = (np.ravel(own) for own in (found.mean, found.low, found.high))
figure, axes = plt.subplots(
    2, 1, figsize=(8, 5.5), sharex=True, height_ratios=(3, 1), layout="constrained"
)
axes[0].fill_between(grid["x"], low, high, color="#0072b2", alpha=0.2, label="90 % interval")
axes[0].plot(grid["x"], mean, color="#0072b2", label="mean of the ensemble")
axes[0].plot(grid["x"], np.sin(2 * grid["x"]), "--", color="0.3", lw=1, label="the truth")
axes[0].plot(train["x"], train["y"], ".", ms=4, color="#d55e00", label="training rows")
axes[0].set(ylabel="target", ylim=(-2.4, 2.9))
axes[0].legend(frameon=False, ncols=4, loc="upper center", fontsize="small")
axes[1].fill_between(grid["x"], np.ravel(found.spread), color="0.6")
axes[1].set(xlabel="input", ylabel="disagreement")

# %%
# Do they hold what they promise? On 2,000 new rows from where training rows were:

test = make_rows(2000)
levels = (0.5, 0.8, 0.9)
held = []
for level in levels:
    found = model.predict(test[["x"]], interval=level)
    low, high = np.ravel(found.low), np.ravel(found.high)
    held.append(np.mean((low <= test["y"]) & (test["y"] <= high)))
figure, axis = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
axis.plot([0.4, 1], [0.4, 1], color="0.7", lw=1, label="as promised")
axis.plot(levels, held, "o-", color="#0072b2", label="counted")
axis.set(xlabel="promised share", ylabel="share of new rows inside", aspect="equal")
axis.legend(frameon=False)
plt.show()

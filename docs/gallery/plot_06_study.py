"""
A study, read step by step
==========================

``regaug.compare`` trains every method on several splits of the data and says what can be told
from that, and what cannot. This is a small one: a minute of work would say more than these
seconds do.
"""

import matplotlib.pyplot as plt
import numpy as np

import regaug

data = regaug.data.load("synthetic-sine", n=60, noise=0.3)
study = regaug.compare(data, methods=["erm", "mixup", "foma-rho"], trials=1, splits=3)

# %%
# What it says in the end
# -----------------------
# The table and the verdict are what the command line prints as well.

print(study)

# %%
# The same numbers as a picture
# -----------------------------
# Every split has its own test rows. The errors of the splits differ more than the methods do,
# so what is compared is the change against plain training *on the same split*.

names = ["erm", "mixup", "foma-rho"]
rows = {row.name: row for row in study.comparison.rows}
errors = {name: np.array(rows[name].errors) for name in names}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for place, name in enumerate(names):
    left.plot(np.full(3, place), errors[name], "o", color="#0072b2")
for split in range(3):
    left.plot(range(3), [errors[name][split] for name in names], color="0.8", zorder=0)
left.set(
    xticks=range(3), xticklabels=names, ylabel="RMSE on test rows", title="errors of three splits"
)
left.set_ylim(bottom=0)

for place, name in enumerate(names[1:]):
    changes = 100 * (errors[name] / errors["erm"] - 1)
    right.plot(changes, np.full(3, place), "o", color="0.7")
    right.plot(changes.mean(), place, "D", color="#d55e00")
right.axvline(0, color="0.4", lw=1)
right.set(yticks=[0, 1], yticklabels=names[1:], ylim=(-0.6, 1.6), xlabel="change against erm, %")
right.set_title("the change on each split, and its mean")

# %%
# Can it be told apart?
# ---------------------
# The interval of a change allows for test rows that splits share, and its p-value for the
# number of methods. The smallest change that this study could have seen is said too: below it,
# *not told apart* means that nobody knows, not that nothing happens.

for row in study.comparison.rows:
    print(f"{row.name:10} tier {row.tier}  mean RMSE {row.mean:.3f}")
print(f"smallest change that would have been seen: {study.comparison.smallest_change:.0f} %")
print("checks:", ", ".join(check.code for check in study.checks) or "none")
plt.show()

"""
Every method on one data set
============================

One toy data set, a noisy spiral arm, through every method that makes samples. Gray are the
samples, colored the new ones of one epoch. Each method has its own batches and its default
settings, only that it acts on every batch and that steps are large enough to be seen.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import regaug

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 1, 160))
angle = 1.2 * np.pi * t
points = np.column_stack([(0.4 + t) * np.cos(angle), (0.4 + t) * np.sin(angle)])
points += 0.03 * rng.normal(size=points.shape)
points = (points - points.mean(0)) / points.std(0)  # as a training would
x, y = torch.from_numpy(points[:, :1]), torch.from_numpy(points[:, 1])

# %%
# A method is a sampler, an augmentation and a place under one name. ``manifold-mixup`` acts at a
# hidden layer, ``rare`` draws the same samples more often and ``feature-mix`` needs more than one
# input: they make no points in this plane. The lines of FOMA go through the origin.

SETTINGS = {
    "noise": {"sigma": 0.1},
    "foma": {"k": 1, "lam_range": (0.2, 0.2)},
    "foma-rho": {"rho": 0.8, "lam_range": (0.2, 0.2)},
    "cems": {"sigma": 0.2},
    "teacher-rows": {"teacher": "gp"},
}
LEFT_OUT = {"erm", "manifold-mixup", "feature-mix", "rare"}
names = [name for name in regaug.methods.names() if name not in LEFT_OUT]


def run_epoch(name):
    """Return the new samples of one epoch."""
    settings = {"p": 1.0, "anneal": None, **SETTINGS.get(name, {})}
    ready = regaug.methods.get(name).prepare(settings)
    augment = ready.fit(x, y).augmentation
    made = [augment(x[own], y[own]) for own in ready.sampler(y, 32)]
    return torch.cat([torch.column_stack(new) for new in made])


figure, axes = plt.subplots(3, 4, figsize=(12, 8.6), sharex=True, sharey=True, layout="constrained")
for axis, name in zip(axes.flat, names, strict=False):
    new = run_epoch(name)
    axis.scatter(x, y, s=10, color="0.8")
    axis.scatter(*new.T, s=9, color="#0072b2")
    axis.set(title=name, xlim=(-2.4, 2.4), ylim=(-2.2, 2.2))
for axis in axes.flat[len(names) :]:
    axis.axis("off")
figure.supxlabel("input")
figure.supylabel("target")
plt.show()

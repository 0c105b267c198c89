"""
A method of your own
====================

An augmentation says how to draw parameters and how to apply them. With a name it is a method,
and everything that takes a method takes it: studies, ``regaug.fit``, Lightning, skorch, scikit-
learn.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import regaug
from regaug.augment import Augmentation
from regaug.methods import Between, Method

# %%
# Turn every batch by a small angle in the plane of the first input and the target: nonsense for
# most data, but easy to see. ``draw`` has the randomness, ``transform`` none.


class Turn(Augmentation[float]):
    """Turn the first input and the target by an angle."""

    neutral = 0.0  # the parameters that leave a batch as it is

    def __init__(self, width=0.2, **shared):
        super().__init__(**shared)  # p, append, anneal, total_steps, generator
        self.width = width

    def draw(self, x, y):
        return self.width * (2 * torch.rand((), generator=self.generator).item() - 1)

    def transform(self, x, y, params):
        flat_x, flat_y = x.flatten(1), y.reshape(len(y), -1)
        cosine, sine = np.cos(params), np.sin(params)
        first = cosine * flat_x[:, :1] - sine * flat_y[:, :1]
        target = sine * flat_x[:, :1] + cosine * flat_y[:, :1]
        new_x = torch.cat([first, flat_x[:, 1:]], dim=1)
        new_y = torch.cat([target, flat_y[:, 1:]], dim=1)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)


# %%
# The contract is a function. It tries shapes, dtypes, ugly batches, copies, layers and
# gradients, and says in words what is wrong: here nothing is.

regaug.testing.check_augmentation(Turn())

# %%
# A name, the defaults, and what a search may change:

turn = Method(
    "turn a batch by a small angle",
    Turn,
    {"sampler": "random", "place": "input", "p": 1.0, "anneal": 0.7, "width": 0.2},
    {"p": Between(0.05, 1.0), "width": Between(0.01, 0.5, log=True)},
)
regaug.methods.register("turn", turn, replace=True)

# %%
# What it makes of a curve, in five batches of all points. It is trained by its name as any
# other.

rng = np.random.default_rng(0)
x = torch.from_numpy(np.sort(rng.uniform(-2, 2, (60, 1)), axis=0)).float()
y = (2 * x[:, 0]).sin()
augment = regaug.methods.get("turn").prepare({"anneal": None}).augmentation
figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
for number in range(5):
    new_x, new_y = augment(x, y)
    label = "turned" if number == 0 else None
    axis.plot(new_x, new_y, ".", ms=5, color="#0072b2", alpha=0.5, label=label)
axis.plot(x, y, color="#d55e00", label="the samples")
axis.set(xlabel="input", ylabel="target")
axis.legend(frameon=False)
plt.show()

model = regaug.fit(regaug.data.load("synthetic-sine", n=60), method="turn", members=1)
print(model)

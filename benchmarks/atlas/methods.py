"""Which settings of the methods pay on real tables: one by one, and a portfolio for each method.

    python -m benchmarks.atlas.methods run [jobs] [splits]   all candidates, resumable
    python -m benchmarks.atlas.methods show                  writes results/atlas/methods.md

All are trained with the default recipe. Beside settings that a study may draw there are those that
FOMA's theory asks for: a tangent plane through the mean of the batch, batches of neighbors in the
joint space of inputs and targets, and a strength that follows the noise.
"""

import sys
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from benchmarks.atlas.candidates import (
    HEAD,
    Tried,
    changes,
    known_predictions,
    portfolio,
    relative_times,
    row,
    train,
)
from benchmarks.atlas.protocol import Cell, cells, lines, measure, publish
from regaug import methods, samplers
from regaug.data.scaling import StandardizedSplit
from regaug.samplers.base import BatchSampler, Indices, group_by_key
from regaug.training.recipe import default_recipe
from regaug.training.stacked.groundwork import Groundwork

PLAIN = {"plain training": Tried(), "plain training, other seeds": Tried(seed=1)}
# Of every method, beside its defaults and its first settings.
DRAWS = 5
FOMA: dict[str, dict[str, Any]] = {
    "center": {"center": True},
    "center, random batches": {"center": True, "sampler": "random"},
    "random batches": {"sampler": "random"},
    "joint neighbors": {"sampler": "joint"},
    "joint neighbors, center": {"sampler": "joint", "center": True},
    "joint neighbors, center, half": {"sampler": "joint", "center": True, "p": 0.5},
    "strength follows the noise": {"center": True, "sampler": "joint", "lam_range": "noise"},
    "strength follows the noise, random": {"sampler": "random", "lam_range": "noise"},
}


class JointSampler(BatchSampler):
    """Batches of nearest rows in the joint space of inputs and targets."""

    points: ClassVar[
        dict[int, np.ndarray]
    ] = {}  # of the training rows of each split, by their targets

    def _order(self, rng: np.random.Generator) -> Indices:
        return group_by_key(self.joint, self.batch_size, rng, key=lambda distance: distance)

    def __init__(self, y: torch.Tensor, batch_size: int, **options: Any) -> None:
        super().__init__(y, batch_size, **options)
        self.joint = self.points[y.data_ptr()]


samplers.register("joint", JointSampler)


def settings(splits: Sequence[StandardizedSplit]) -> dict[str, Tried]:
    """Return what is tried on these splits."""
    for split in splits:
        both = torch.cat([split.train.x.flatten(1), split.train.y], dim=1).double()
        JointSampler.points[split.train.y.data_ptr()] = both.numpy()
    # What a line leaves of the variance: the noise, and what is curved.
    noise = Groundwork.of(splits[0], default_recipe(len(splits[0].train))).rest ** 2
    tried = dict(PLAIN)
    for name in methods.usual():
        if name == "erm":
            continue
        known = methods.get(name)
        tried[f"{name}: defaults"] = _tried(name, {})
        for own in known.starts:
            tried[f"{name}: {_words(own)}"] = _tried(name, own)
        for number in range(DRAWS):
            rng = np.random.default_rng([number, zlib.crc32(name.encode())])
            own = {key: choice.draw(rng) for key, choice in known.space.items()}
            tried[f"{name}: {_words(own)}"] = _tried(name, own)
    for words, changed in FOMA.items():
        own = dict(changed)
        if own.get("lam_range") == "noise":
            own["lam_range"] = (max(0.0, 1.0 - noise), 1.0)
        tried[f"foma-rho: {words}"] = _tried("foma-rho", own)
    return tried


def _tried(name: str, own: dict[str, Any]) -> Tried:
    return Tried(name, {"method_settings": methods.get(name).settings(**own)})


def _words(own: dict[str, Any]) -> str:
    parts = [f"{key} {v:.2g}" if isinstance(v, float) else f"{key} {v}" for key, v in own.items()]
    return ", ".join(parts)


def run(cell: Cell) -> dict[str, Any]:
    return train("methods", cell, settings)


def show() -> None:
    """Write what each setting is worth, and the portfolios."""
    known = lines("methods")
    names = list(known[0]["rmse"])
    own = changes(known, names)
    times = np.median(relative_times(known), axis=0)
    found = known_predictions("methods", known)
    out = [
        "# Settings of the methods",
        "",
        "`python -m benchmarks.atlas.methods run`, then `show`: eight nets of the default recipe",
        f"with each setting on {len(own)} tables ({len(known)} splits). Changes of the test RMSE",
        "against plain training are geometric means over tables; time: the median.",
        "",
        *HEAD,
        *(row(name, own[:, i], times[i]) for i, name in enumerate(names)),
        "",
        "## Portfolios",
        "",
        "Of every method the settings whose ensemble is the best; of plain training the same with",
        "other seeds.",
        "",
    ]
    for method in (name for name in methods.usual() if name != "erm" and found):
        among = [i for i, name in enumerate(names) if name.startswith(f"{method}: ")]
        out += [f"**{method}.** " + portfolio(found, names, among, [])[0], ""]
    publish("methods", out)


if __name__ == "__main__":
    command, *others = sys.argv[1:]
    if command == "show":
        show()
    else:
        jobs, splits = [*others, *["2", "0"][len(others) :]]
        wanted = [cell for cell in cells() if str(cell.split) in splits.split(",")]
        measure("methods", run, wanted, jobs=int(jobs))

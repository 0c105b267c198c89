"""Which rule for the shares of a blend gives the lowest error, with many rows and with few.

    python -m benchmarks.atlas.shares           try the rules, write shares.json
    python -m benchmarks.atlas.shares again     what the present rule makes of the same models

What candidates predict is what ``python -m benchmarks.atlas.fits blend`` has kept. A rule sees what
they predict for some of the rows out of fold, and is judged by the test rows. ``again`` writes the
errors of ``nets`` and ``auto`` in blend.jsonl anew, as a fit would give them; how many rows their
intervals hold is not known then.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.atlas.fits import blend_file
from benchmarks.atlas.protocol import PREDICTIONS, RESULTS, Cell, lines, rmse
from regaug.ensemble.blend import choose_shares

Floats = NDArray[np.float64]
Rule = Callable[[Floats], Floats]
# Rows that decide (0: all of them).
ROWS, DRAWS = (20, 40, 90, 0), 4


def by_error(errors: Floats, *, temperature: float = 32.0, most: int = 200) -> Floats:
    """Return the weights of ``regaug.ensemble.weights``."""
    squares = np.square(errors).mean(axis=1)
    rows = min(most, errors.shape[1])
    weights: Floats = np.exp(-rows / temperature * (squares / squares.min() - 1))
    return weights / weights.sum()


def least_squares(errors: Floats, *, prior: float = 10.0) -> Floats:
    """Return the mix with the least squared error, drawn to equal shares by so many more rows."""
    models = len(errors)
    squares = np.square(errors).mean(axis=1)
    toward = np.sqrt(prior * squares.min()) * (np.eye(models) - 1.0 / models)
    strong = 1e3 * np.sqrt(errors.shape[1] * squares.max())
    system = np.vstack([errors.T, toward, np.full(models, strong)])
    weights: Floats = nnls(system, np.append(np.zeros(len(system) - 1), strong))[0]
    return weights / weights.sum()


def equal(errors: Floats) -> Floats:
    return np.full(len(errors), 1.0 / len(errors))


# How nets are averaged, and these and the baselines. The first rule is what others are against.
RULES: dict[str, Rule] = {
    "least squares, 10 rows for equal shares": least_squares,
    "least squares": partial(least_squares, prior=0.0),
    "least squares, 30 rows for equal shares": partial(least_squares, prior=30.0),
    "by error, 200 rows at most / 32": by_error,
    "by error, 200 / 16": partial(by_error, temperature=16.0),
    "by error, 200 / 64": partial(by_error, temperature=64.0),
    "by error, 100 / 32": partial(by_error, most=100),
    "by error, any number / 32": partial(by_error, most=10**9),
    "equal": equal,
}


def error(found: dict[str, Any], chosen: NDArray[np.int64], rule: Rule) -> float:
    """Return the test error of the blend whose shares some rows decide."""
    nets, target = int(found["nets"]), found["target"][chosen]
    known, test = found["known"][:, chosen], found["test"]
    spread = target.std(axis=0)
    errors = ((known - target) / np.where(spread > 0, spread, 1.0)).reshape(len(known), -1)
    own = by_error(errors[:nets])
    shares = rule(np.vstack([own @ errors[:nets], errors[nets:]]))
    weights = np.concatenate([shares[0] * own, shares[1:]])
    return rmse(np.einsum("k,knm->nm", weights, test), found["test_target"])


def show() -> None:
    """Write and print the change of every rule against the first one, in per cent."""
    tables = [dict(np.load(file)) for file in sorted(PREDICTIONS.glob("blend-*.npz"))]
    result = []
    for n in ROWS:
        places = [
            [np.sort(draw.permutation(len(found["target"]))[: n or None]) for draw in draws]
            for found in tables
            for draws in [[np.random.default_rng(seed) for seed in range(DRAWS if n else 1)]]
        ]
        logs = {
            name: [
                np.mean([np.log(error(found, chosen, rule)) for chosen in own])
                for found, own in zip(tables, places, strict=True)
            ]
            for name, rule in RULES.items()
        }
        first = np.array(next(iter(logs.values())))
        for name, own in logs.items():
            change = 100 * (np.array(own) - first)
            spread = change.std(ddof=1) / len(change) ** 0.5
            mean = {"change": round(change.mean(), 2), "standard error": round(spread, 2)}
            tenth = len(change) // 20
            trimmed = round(np.sort(change)[tenth : len(change) - tenth].mean(), 2)
            rows = n or "all"
            result.append(
                {"rows": rows, "rule": name, **mean, "without the extreme tenth": trimmed}
            )
            print(result[-1])
    (RESULTS / "shares.json").write_text(json.dumps(result, indent=1) + "\n")


@dataclass(frozen=True)
class Kept:
    """What a model has predicted: rows out of fold, and the test rows."""

    predicted: torch.Tensor
    test: Floats


def again() -> None:
    """Give the models that were fitted the shares that they would have now."""
    result = []
    for line in lines("blend"):
        found = dict(np.load(blend_file(Cell(line["table"], line["split"]))))
        nets, target = int(found["nets"]), torch.from_numpy(found["target"])
        models = [
            Kept(torch.from_numpy(known), test)
            for known, test in zip(found["known"], found["test"], strict=True)
        ]
        for name, own in {"nets": [], "auto": models[nets:]}.items():
            shares = choose_shares(models[:nets], own, target)
            blend = sum(share * model.test for model, share in shares)
            line["rmse"][name] = rmse(np.asarray(blend), found["test_target"])
        kept = {name: line[name] for name in ("table", "split", "rmse", "seconds")}
        result.append(json.dumps(kept))
    (RESULTS / "blend.jsonl").write_text("\n".join(result) + "\n")


if __name__ == "__main__":
    again() if sys.argv[1:] == ["again"] else show()

"""Which rule for the shares of a blend gives the lowest error, with many rows and with few.

    python -m benchmarks.atlas.shares     try the rules, write shares.json

What candidates predict is what ``python -m benchmarks.atlas.fits blend`` has kept. A rule sees what
they predict for some of the rows out of fold, and is judged by the test rows.
"""

import json
from typing import Any

import numpy as np
import torch

from benchmarks.atlas.protocol import PREDICTIONS, RESULTS, rmse
from regaug.ensemble import weights

# Rows that decide (0: all of them), and what is tried; the first rule is what others are against.
ROWS, DRAWS = (20, 40, 90, 0), 4
RULES = [
    {"_PRIOR_ROWS": prior, "_LUCK": luck} for prior in (0.0, 10.0, 20.0) for luck in (0.0, 0.1, 0.2)
]


def error(found: dict[str, Any], chosen: np.ndarray) -> float:
    """Return the test error of the blend whose shares some rows decide."""
    nets, target = int(found["nets"]), torch.from_numpy(found["target"][chosen])
    known, test = (torch.from_numpy(found[part]) for part in ("known", "test"))
    known = known[:, torch.from_numpy(chosen)]
    own = weights.similar_weights(known[:nets], target)[:, None, None]
    mixed, mixed_test = ((own * part[:nets]).sum(dim=0)[None] for part in (known, test))
    models = torch.cat([weights.without_luck(mixed, target), known[nets:]])
    shares = weights.blend_weights(models, target)[:, None, None]
    blend = (shares * torch.cat([mixed_test, test[nets:]])).sum(dim=0)
    return rmse(blend.numpy(), found["test_target"])


def show() -> None:
    """Write and print the change of every rule against no prior and no luck, in per cent."""
    tables = [dict(np.load(file)) for file in sorted(PREDICTIONS.glob("blend-*.npz"))]
    result = []
    for n in ROWS:
        logs = []
        for rule in RULES:
            for name, value in rule.items():
                setattr(weights, name, value)
            logs.append(
                [
                    np.log(
                        error(found, np.sort(draw.permutation(len(found["target"]))[: n or None]))
                    )
                    for found in tables
                    for draw in map(np.random.default_rng, range(DRAWS if n else 1))
                ]
            )
        changes = 100 * (np.array(logs) - logs[0])
        for rule, own in zip(RULES, changes, strict=True):
            spread = own.reshape(len(tables), -1).mean(axis=1).std(ddof=1) / len(tables) ** 0.5
            mean = {"change": round(own.mean(), 2), "standard error": round(spread, 2)}
            result.append({"rows": n, **rule, **mean})
            print(result[-1])
    (RESULTS / "shares.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    show()

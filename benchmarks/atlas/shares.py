"""Which rule for the shares of a blend gives the lowest error, with many rows and with few.

    python -m benchmarks.atlas.shares make FOLDER [jobs]   fit the candidates, resumable
    python -m benchmarks.atlas.shares show FOLDER          try the rules, write shares.json

Candidates are fitted on the first splits of every table, as :func:`regaug.fit` does. A rule sees
what they predict for some of the rows out of fold, and is judged by the test rows.
"""

import json
import multiprocessing
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.atlas.protocol import RESULTS, Cell, cells, rmse, rows
from regaug.ensemble import leave_out, weights
from regaug.ensemble.blend import fit_candidates
from regaug.ensemble.candidates import Candidate
from regaug.ensemble.prepared import Prepared

# Rows that decide (0: all of them), and what is tried; the first rule is what others are against.
ROWS, DRAWS = (20, 40, 90, 0), 4
RULES = [
    {"_PRIOR_ROWS": prior, "_LUCK": luck} for prior in (0.0, 10.0, 20.0) for luck in (0.0, 0.1, 0.2)
]


def make(cell: Cell, folder: Path) -> None:
    file = folder / f"{cell.table}-{cell.split}.npz"
    if file.exists():
        return
    torch.set_num_threads(1)
    table, _, test = rows(cell)
    ready = Prepared.of(leave_out(table, test), seed=cell.split)
    nets, baselines, target = fit_candidates(ready, seed=cell.split)
    x, bounds = ready.preparation(table.frame.iloc[test]), ready.bounds(log=ready.may_log)

    def predicted(own: Candidate) -> np.ndarray:
        return bounds.clamp(own.models.scale.inverse(own.models(x))).mean(dim=0).numpy()

    np.savez_compressed(
        file,
        nets=len(nets),
        names=[own.tried.method for own in [*nets, *baselines]],
        known=np.stack([own.predicted.numpy() for own in [*nets, *baselines]]),
        target=target.numpy(),
        test=np.stack([predicted(own) for own in [*nets, *baselines]]),
        test_target=table.y[test],
    )


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


def show(folder: Path) -> None:
    """Write and print the change of every rule against no prior and no luck, in per cent."""
    tables = [dict(np.load(file)) for file in sorted(folder.glob("*.npz"))]
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
    what, place, *others = sys.argv[1:]
    Path(place).mkdir(parents=True, exist_ok=True)
    if what == "make":
        todo = [cell for cell in cells() if cell.split < 2]
        with multiprocessing.get_context("spawn").Pool(int((others or ["2"])[0])) as pool:
            pool.map(partial(make, folder=Path(place)), todo, chunksize=1)
    else:
        show(Path(place))

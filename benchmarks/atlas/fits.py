"""Models of ``regaug.fit`` on the atlas.

    python -m benchmarks.atlas.fits METHOD [jobs] [results] [splits]
    python -m benchmarks.atlas.fits blend [jobs] [results] [splits]

``METHOD`` is what ``regaug.fit`` takes: a method, ``auto``, ``nets`` or a baseline. ``blend`` fits
the candidates of a blend once for each cell, and makes of them what ``auto``, ``nets`` and every
baseline are; what the candidates predict is kept for ``benchmarks.atlas.shares``. ``results`` is
the name of the results file, that of the method by default: give another one to a measurement of an
older revision. ``splits`` are numbers such as 0,1; all by default.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.atlas.protocol import PREDICTIONS, Cell, cells, measure, rmse, rows
from regaug import fit
from regaug.ensemble import Ensemble, leave_out


def run(cell: Cell, method: str) -> dict[str, Any]:
    """Fit a model to the rows to learn from; some of them it puts aside for its intervals."""
    table, _, test = rows(cell)
    model = fit(leave_out(table, test), method=method, seed=cell.split)
    return {**judge(model, table.frame.iloc[test], table.y[test]), "model": str(model)}


def judge(model: Ensemble, frame: Any, target: np.ndarray) -> dict[str, float]:
    prediction = model.predict(frame, interval=0.9)
    is_covered = (prediction.low.numpy() <= target) & (target <= prediction.high.numpy())
    return {"rmse": rmse(prediction.mean.numpy(), target), "covered": float(is_covered.mean())}


def run_blend(cell: Cell) -> dict[str, Any]:
    # Not in the revisions that `run` may be asked to measure.
    from regaug.ensemble.blend import Candidates, fit_candidates, make_blend
    from regaug.ensemble.prepared import Prepared

    table, _, test = rows(cell)
    ready = Prepared.of(leave_out(table, test), seed=cell.split)
    candidates = fit_candidates(ready, seed=cell.split)
    nets, baselines, target = candidates.nets, candidates.baselines, candidates.target
    frame, wanted = table.frame.iloc[test], table.y[test]
    whole = make_blend(ready, "auto", candidates)
    found = {"auto": judge(whole, frame, wanted)["rmse"]}
    parts = {"nets": (nets, [])} | {own.tried.method: ([], [own]) for own in baselines}
    for name, own in parts.items():
        model = make_blend(ready, name, Candidates(*own, target))
        found[name] = judge(model, frame, wanted)["rmse"]
    x, bounds = ready.preparation(frame), ready.bounds(log=ready.may_log)
    everything = [*nets, *baselines]
    values = [own.models.scale.inverse(own.models(x)) for own in everything]
    PREDICTIONS.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        blend_file(cell),
        nets=len(nets),
        names=[own.tried.method for own in everything],
        known=np.stack([own.predicted.numpy() for own in everything]),
        target=target.numpy(),
        test=np.stack([bounds.clamp(own).mean(dim=0).numpy() for own in values]),
        test_target=wanted,
    )
    covered = judge(whole, frame, wanted)["covered"]
    return {"rmse": found, "covered": covered, "model": str(whole)}


def blend_file(cell: Cell) -> Path:
    return PREDICTIONS / f"blend-{cell.table}-{cell.split}.npz"


if __name__ == "__main__":
    method, *others = sys.argv[1:]
    jobs, name, splits = [*others, *["2", method, "0,1,2,3"][len(others) :]]
    wanted = [cell for cell in cells() if str(cell.split) in splits.split(",")]
    do = run_blend if method == "blend" else partial(run, method=method)
    measure(name, do, wanted, jobs=int(jobs))

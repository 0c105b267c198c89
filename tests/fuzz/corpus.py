"""What is changed: small tables of every kind, a model, a study and checkpoints."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from regaug.data import read_table, standardize
from regaug.data.base import Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.scaling import Scaler
from regaug.ensemble import Component, Ensemble, fit_ensemble
from regaug.ensemble.component import Predictors
from regaug.ensemble.diagnosis import Diagnosis, write_diagnosis
from regaug.ensemble.evidence import Evidence
from regaug.ensemble.preparation import Preparation
from regaug.ensemble.scale import Bounds, TargetScale
from regaug.metrics import Scores, evaluate
from regaug.models import MLP
from regaug.runs.record import RunRecord, Sample
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.studies.budget import Budget
from regaug.studies.config import StudyConfig
from regaug.studies.facts import describe, write_facts
from regaug.studies.targets import Targets, write_targets
from regaug.training import Settings, fit
from regaug.training.baselines import Rows, fit_predictor

SETTINGS = Settings(epochs=3, batch_size=16, learning_rate=0.01, seed=4)


def make_frame() -> pd.DataFrame:
    """Make a table with a column of every type and some gaps."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(30, 200, 24).round(1),
            "city": rng.choice(["Oslo", "Łódź", "N/A"], 24),
            "sold": (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(24), "D")).astype(str),
            "garden": rng.random(24) < 0.4,
            "rent": [f"{value:,.2f} €" for value in rng.uniform(500, 3000, 24)],
        }
    )
    frame["price"] = (3 * frame["size"] + rng.normal(0, 10, 24)).round(2)
    frame.loc[3, "size"] = np.nan
    return frame


def write_tables(folder: Path) -> list[Path]:
    """Write the table in every form that is read."""
    frame, folder = make_frame(), Path(folder)
    text = frame.to_csv(index=False)
    (folder / "a.csv").write_text(text, "utf-8")
    (folder / "b.csv").write_text(frame.to_csv(index=False, sep=";", decimal=","), "utf-16")
    (folder / "c.tsv").write_text(
        frame.to_csv(index=False, sep="\t", quoting=1), "iso8859-2", "replace"
    )
    (folder / "d.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    frame.to_json(folder / "e.jsonl", orient="records", lines=True)
    frame.to_parquet(folder / "f.parquet")
    frame.to_feather(folder / "g.feather")
    frame.to_excel(folder / "h.xlsx", index=False)
    return sorted(folder.iterdir())


def write_model(folder: Path) -> None:
    """Write a model of a table: two nets and two kinds of baselines."""
    data = read_table(make_frame(), target="price")
    nets = fit_ensemble(data, settings=Settings(epochs=1), members=2, hidden=(4,))
    scale = nets.scale
    x = torch.randn(24, len(nets.preparation.scaler.mean), generator=torch.manual_seed(0)).double()
    y = torch.from_numpy(np.asarray(data.y))
    rows = Rows(x[:16], scale.transform(y[:16])), Rows(x[16:], scale.transform(y[16:]))
    others = [
        Component(name, 0.25, Predictors((fit_predictor(name, *rows).predictor,), scale))
        for name in ("ridge", "gp")
    ]
    net = nets.components[0]
    first = Component(net.method, 0.5, net.models, net.settings)
    Ensemble(**{**vars(nets), "method": "auto", "components": (first, *others)}).save(folder)


def write_study(folder: Path) -> None:
    """Write a study without a training: runs made of random numbers."""
    split = make_manifold("sine", n=50).split(seed=0)
    config = StudyConfig(
        *("houses", ("erm", "mixup"), ("mean",), 2, 2, "rmse", 0.25), rows=50, columns=1
    )
    budget = Budget(("erm", "mixup"), ("mean",), 2, 2, 1, (4, 4), notes=("a note",))
    store = Store(folder, config.to_dict(), about={"budget": budget.to_dict(), "source": "a.csv"})
    write_targets(folder, [Targets.of(split) for _ in range(2)])
    write_facts(folder, describe(split, "1 number column", given={"source": "a.csv"}))
    rng = np.random.default_rng(0)
    for method in ("erm", "mixup", "mean"):
        for number in range(2):
            for trial in [None] if method == "mean" else range(2):
                store.add(_record(split, Run("houses", method, number, 0, None, None), trial, rng))
    write_diagnosis(folder, _diagnosis(split))


def _record(split: Split, run: Run, trial: int | None, rng: np.random.Generator) -> RunRecord:
    settings = None if trial is None else Settings(epochs=4, batch_size=16 + trial)
    predictions = {}
    for part in ("validation", "test"):
        own = split.parts[part].y.numpy()
        predictions[part] = (own + rng.normal(size=own.shape)).astype(np.float32)
    scores: dict[str, Scores] = {
        part: evaluate(torch.from_numpy(own).double(), split.parts[part].y.double())
        for part, own in predictions.items()
    }
    shown = split.test.y[:5].tolist()
    return RunRecord(
        run=Run(run.problem, run.method, run.split, run.seed, settings, trial),
        scores=scores,
        ending="finished",
        best_epoch=0 if trial is None else 2,
        epochs=0 if trial is None else 3,
        seconds=0.5,
        sizes=(len(split.train), len(split.validation), len(split.test)),
        made_by={"regaug": "0.1.0"},
        curves={} if trial is None else {"loss": [1.0, 0.5, None], "validation": [1.0, 0.5, 0.6]},
        sample=Sample(shown, shown),
        predictions=predictions,
        predict_seconds=1e-6,
    )


def _diagnosis(split: Split) -> Diagnosis:
    x, y = split.train.x.double(), split.train.y.double()
    scale = TargetScale.fit(y)
    rows = Rows(x[:20], scale.transform(y[:20])), Rows(x[20:], scale.transform(y[20:]))
    ridge = Component("ridge", 1.0, Predictors((fit_predictor("ridge", *rows).predictor,), scale))
    preparation = Preparation(None, Scaler.fit(x))
    model = Ensemble(("y",), "ridge", preparation, (ridge,), Bounds.fit(y), scale)
    return Diagnosis.of(model, Evidence(preparation(x), y))


def train(folder: Path, epochs: int = 3) -> None:
    """Train a small net with checkpoints, from where they end."""
    split = standardize(make_manifold("paraboloid", n=60, noise=0.3).split(seed=0))
    settings = Settings(epochs=6, batch_size=16, learning_rate=0.01, seed=4, stop_after=epochs)
    fit(MLP(2, hidden=(4, 4)), split, "mixup", settings, checkpoint=folder)

"""A study as pandas frames: its leaderboard, and all its runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from regaug.runs.record import RunRecord
from regaug.studies.details import SHOWN, Details
from regaug.studies.statistics import Comparison

if TYPE_CHECKING:
    import pandas as pd


def leaderboard_frame(comparison: Comparison, details: Mapping[str, Details]) -> "pd.DataFrame":
    """Return a line for every method and baseline, with its other metrics, times and epochs."""
    import pandas as pd

    frame = pd.DataFrame(comparison.to_dict()["rows"]).drop(columns="errors")
    known = [details.get(name, Details()) for name in frame["name"]]
    for metric in dict.fromkeys(metric for own in known for metric in own.scores):
        frame[metric] = [own.scores.get(metric) for own in known]
    for name in ("fit_seconds", "predict_seconds", "single", "epochs"):
        frame[name] = [getattr(own, name) for own in known]
    columns = {(name, metric) for own in known for name in own.targets for metric in SHOWN}
    for target, metric in sorted(columns):
        values = [own.targets.get(target, {}).get(metric) for own in known]
        frame[f"{metric}_{target}"] = values
    return frame


def runs_frame(
    records: Sequence[RunRecord], chosen: Mapping[str, Sequence[RunRecord]], metric: str
) -> "pd.DataFrame":
    """Return a line for every run, and whether it is the chosen one of its method and split."""
    import pandas as pd

    return pd.DataFrame(
        {
            "method": own.run.method,
            "stage": own.run.stage,
            "split": own.run.split,
            "trial": own.run.trial,
            "seed": own.run.seed,
            **{f"{part}_{metric}": own.score(part, metric) for part in ("validation", "test")},
            "is_chosen": any(own is one for one in chosen.get(own.run.method, ())),
            "best_epoch": own.best_epoch,
            "epochs": own.epochs,
            "ending": own.ending,
            "seconds": own.seconds,
        }
        for own in records
    )

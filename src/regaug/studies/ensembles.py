"""What the rows of a study are worth: ensembles, chosen and weighted by a split's validation rows.

A method is worth what the ensemble of its runs is worth; all nets together, and these with the
baselines, are rows of their own. Weights are those of :mod:`regaug.ensemble.weights`. Nothing that
one split has chosen is judged on another.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regaug.ensemble.contents import AUTO, NETS
from regaug.ensemble.weights import weigh
from regaug.exceptions import StoreError
from regaug.metrics import Scores, evaluate
from regaug.runs.record import RunRecord
from regaug.studies.config import StudyConfig
from regaug.studies.selection import Selection, choose, reach
from regaug.studies.steps import Steps
from regaug.studies.targets import TARGETS, Targets

_PARTS = ("validation", "test")
# From the net that somebody would train without any search to the best there is.
_STEPS = ("default recipe, single net", "best recipe", "ensemble", "augmentation", "blend")


@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows of a study are worth, split by split.

    Attributes:
        scores: Scores on the test rows of every split; None where nothing has worked.
        used: The records that these are made of.
        steps: How the error came down; None without ensembles, or without a first stage.
    """

    scores: Mapping[str, Sequence[Scores | None]]
    used: Mapping[str, Sequence[Sequence[RunRecord]]]
    steps: Steps | None = None


@dataclass(frozen=True, eq=False)
class Mixture:
    """Predictions ``(n, m)`` of a mixture of models, float64."""

    validation: Tensor
    test: Tensor


def judge(
    config: StudyConfig, selection: Selection, targets: Sequence[Targets] | None = None
) -> Rows:
    """Return what every row of a study is worth.

    Without ``targets``, or where a run has not kept its predictions, there are no ensembles: a
    method is worth what the run is worth that each split has chosen. So it is with a regressor: new
    rows that differ from run to run would make an ensemble better, which is no merit of theirs.
    """
    singles = {
        name: [record.scores.get("test") for record in own]
        for name, own in selection.chosen.items()
    }
    is_single = config.kind == "estimator"
    if targets is None or is_single or not _has_predictions(selection):
        return Rows(
            singles, {name: [[one] for one in own] for name, own in selection.chosen.items()}
        )
    if len(targets) != config.splits:
        raise StoreError(
            f"{TARGETS} has the targets of {len(targets)} splits, and the study has "
            f"{config.splits}. Delete it, and run the command that started the study again."
        )
    baselines = [name for name in config.baselines if name in selection.chosen]
    rows: dict[str, list[Scores | None]] = {name: [] for name in config.methods}
    used: dict[str, list[Sequence[RunRecord]]] = {
        name: list(own) for name, own in selection.tried.items()
    }
    blended = [name for name in baselines if name != "mean"]  # not worth a share, as in a fit
    combined = [NETS, *([AUTO] if blended else [])]
    rows |= {name: [] for name in combined}
    used |= {name: [] for name in combined}
    for split, own in enumerate(targets):
        for method in config.methods:
            rows[method].append(_score(_average(selection.tried[method][split], own), own))
        nets = [record for tried in selection.tried.values() for record in tried[split]]
        nets += selection.recipes[split] if selection.recipes else []
        beside = [selection.chosen[name][split] for name in blended]
        average = _average(nets, own)
        rows[NETS].append(_score(average, own))
        used[NETS].append(nets)
        if blended:
            rows[AUTO].append(_score(_blend(average, beside, own), own))
            used[AUTO].append([*nets, *beside])
    for name in baselines:
        rows[name], used[name] = singles[name], [[one] for one in selection.chosen[name]]
    return Rows(rows, used, _steps(config, selection, rows))


def _has_predictions(selection: Selection) -> bool:
    """Tell whether every run that has learned something has kept what it predicts."""
    groups = [*selection.recipes, *selection.chosen.values()]
    groups += [tried for own in selection.tried.values() for tried in own]
    return all(
        not record.scores or record.predictions.keys() >= set(_PARTS)
        for records in groups
        for record in records
    )


def _average(records: Sequence[RunRecord], targets: Targets) -> Mixture | None:
    """Return the weighted mean of models; None if none of them has learned."""
    members = [_member(record, targets) for record in records if record.scores]
    return _mix(members, targets) if members else None


def _blend(nets: Mixture | None, beside: Sequence[RunRecord], targets: Targets) -> Mixture:
    """Return the mixture of all nets, as one model, and the baselines."""
    members = [_member(record, targets) for record in beside]
    return _mix([*members, *([] if nets is None else [nets])], targets)


def _member(record: RunRecord, targets: Targets) -> Mixture:
    """Return what a run predicts, not far beyond what it has seen."""
    values = []
    for part in _PARTS:
        predicted, wanted = record.predictions[part], getattr(targets, part)
        if predicted.shape != tuple(wanted.shape):
            raise StoreError(
                f"{TARGETS} does not fit the runs: {wanted.shape[0]} {part} rows of "
                f"{wanted.shape[1]} targets, and a run has predicted {predicted.shape[0]} of "
                f"{predicted.shape[1]}. Delete it, and run the command that started the study "
                "again."
            )
        values.append(targets.clamp(torch.from_numpy(predicted)))
    return Mixture(*values)


def _mix(members: Sequence[Mixture], targets: Targets) -> Mixture:
    """Return the mean of models, with weights that the validation rows give them."""
    predicted = torch.stack([own.validation for own in members])
    weights = weigh(predicted, targets.validation)
    means = [
        torch.einsum("k,knm->nm", weights, torch.stack([getattr(own, part) for own in members]))
        for part in _PARTS
    ]
    return Mixture(*means)


def _score(mixture: Mixture | None, targets: Targets) -> Scores | None:
    return None if mixture is None else evaluate(mixture.test, targets.test, targets.groups)


def _steps(
    config: StudyConfig,
    selection: Selection,
    rows: Mapping[str, Sequence[Scores | None]],
) -> Steps | None:
    if not selection.recipes:
        return None
    first = [tried[0].scores.get("test") for tried in selection.recipes]
    best = [choose(tried, config.metric).scores.get("test") for tried in selection.recipes]
    own_rows = (rows[config.reference], rows[NETS], *([rows[AUTO]] if AUTO in rows else []))
    steps = dict(zip(_STEPS, (first, best, *own_rows), strict=False))
    if any(math.isfinite(reach(tried[0].run)) for tried in selection.recipes):
        del steps[_STEPS[0]]  # the default recipe has not been trained to the end everywhere
    errors = {
        name: [None if own is None else own.value(config.metric) for own in scores]
        for name, scores in steps.items()
    }
    is_known = any(all(value is not None for value in own) for own in errors.values())
    return Steps.from_errors(errors, metric=config.metric) if is_known else None

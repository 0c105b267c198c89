"""What rows are worth: ensembles by validation rows, judged on test rows, split by split."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regaug.ensemble.weights import weigh
from regaug.exceptions import StoreError
from regaug.metrics import METRICS, Scores, evaluate
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig
from regaug.studies.ensembles import judge
from regaug.studies.selection import select
from regaug.studies.targets import Targets
from regaug.training.settings import Settings

N, SPLITS, TRIALS, RECIPES = 24, 3, 4, 5
CONFIG = StudyConfig(
    "p", ("erm", "mixup"), ("mean", "ridge"), TRIALS, SPLITS, "rmse", 0.25, recipes=RECIPES
)


def make_targets(split, groups=None):
    rng = np.random.default_rng((1, split))
    y = torch.from_numpy(rng.normal(size=(2, N, 1)))
    return Targets(y[0], y[1], torch.tensor([-2.0]), torch.tensor([2.0]), groups)


TARGETS = [make_targets(split) for split in range(SPLITS)]


def make_record(run, targets, noise, shift=0.0):
    rng = np.random.default_rng(run.seed)
    parts = {"validation": targets.validation, "test": targets.test}
    predicted = {
        part: (y.numpy() + shift + noise * rng.normal(size=y.shape)).astype(np.float32)
        for part, y in parts.items()
    }
    scores = {
        part: evaluate(torch.from_numpy(predicted[part]).double(), y) for part, y in parts.items()
    }
    sizes = (60, N, N)
    record = RunRecord(run, scores, "finished", 1, 2, 0.5, sizes, {})
    return replace(record, predictions=predicted)


def make_records(config=CONFIG, targets=TARGETS):
    records, seed = [], 0
    for split in range(config.splits):
        places = [("erm", number, "recipe") for number in range(config.recipes)]
        places += [(m, number, "method") for m in config.methods for number in range(config.trials)]
        places += [(name, None, None) for name in config.baselines]
        for method, trial, stage in places:
            seed += 1
            settings = None if trial is None else Settings(batch_size=16 + trial)
            run = Run("p", method, split, seed, settings, trial, stage=stage)
            noise = {"mixup": 0.6, "ridge": 0.4}.get(method, 0.8) + 0.05 * (trial or 0)
            records.append(make_record(run, targets[split], noise))
    return records


RECORDS = make_records()


def judged(records=RECORDS, config=CONFIG, targets=TARGETS):
    return judge(config, select(config, records), targets)


def of(method, split, stage="method", records=RECORDS):
    return [
        own
        for own in records
        if (own.run.method, own.run.split, own.run.stage) == (method, split, stage)
    ]


def stacked(records, part):
    """Predictions with at most the range beyond the training targets: -2 to 2."""
    return torch.stack(
        [torch.from_numpy(own.predictions[part]).double().clamp(-6.0, 6.0) for own in records]
    )


def mean_of(records, split):
    """The slow, obvious ensemble: its predictions of validation and test rows."""
    weights = weigh(stacked(records, "validation"), TARGETS[split].validation)
    return [
        sum(w * each for w, each in zip(weights, stacked(records, part), strict=True))
        for part in ("validation", "test")
    ]


def nets_of(split):
    return [*of("erm", split), *of("mixup", split), *of("erm", split, "recipe")]


def check_score(scores, predicted, split):
    expected = evaluate(predicted, TARGETS[split].test)
    for metric in METRICS:
        assert scores.value(metric) == pytest.approx(expected.value(metric), rel=1e-9)


@pytest.mark.parametrize("method", CONFIG.methods)
def test_a_method_is_worth_the_ensemble_of_its_second_stage(method):
    rows = judged()
    for split in range(SPLITS):
        own = of(method, split)
        assert len(own) == TRIALS
        check_score(rows.scores[method][split], mean_of(own, split)[1], split)
        assert rows.used[method][split] == own


def test_all_nets_are_a_row_of_their_own_and_so_is_the_blend_with_the_baselines():
    rows = judged()
    assert list(rows.scores) == ["erm", "mixup", "nets", "auto", "mean", "ridge"]
    for split in range(SPLITS):
        nets = nets_of(split)
        assert len(nets) == RECIPES + 2 * TRIALS
        validation, test = mean_of(nets, split)
        check_score(rows.scores["nets"][split], test, split)
        beside, wanted = of("ridge", split, None), TARGETS[split].validation
        weights = weigh(torch.cat([validation[None], stacked(beside, "validation")]), wanted)
        others = torch.cat([test[None], stacked(beside, "test")])
        check_score(rows.scores["auto"][split], (weights[:, None, None] * others).sum(0), split)
        assert set(map(id, rows.used["auto"][split])) == set(map(id, [*nets, *beside]))


def test_baselines_have_their_own_scores():
    rows = judged()
    for split in range(SPLITS):
        (ridge,) = of("ridge", split, None)
        assert rows.scores["ridge"][split] is ridge.scores["test"]


def test_an_ensemble_is_better_than_its_single_nets_here():
    rows, selection = judged(), select(CONFIG, RECORDS)
    for method in CONFIG.methods:
        for split in range(SPLITS):
            single = selection.chosen[method][split].scores["test"].rmse
            assert rows.scores[method][split].rmse < single


def test_test_targets_decide_nothing():
    other = [replace(own, test=torch.flip(own.test, dims=[0])) for own in TARGETS]
    rows, changed = judged(), judged(targets=other)
    for split in range(SPLITS):
        check_score(rows.scores["erm"][split], mean_of(of("erm", split), split)[1], split)
        expected = evaluate(mean_of(of("erm", split), split)[1], other[split].test)
        assert changed.scores["erm"][split].rmse == pytest.approx(expected.rmse)


def test_a_wild_prediction_is_clamped_before_it_enters():
    def spoil(record):
        if record.run.stage is None:
            return record
        predicted = {part: own.copy() for part, own in record.predictions.items()}
        predicted["test"][0] = 1e30
        return replace(record, predictions=predicted)

    rows = judged([spoil(own) for own in RECORDS])
    for split in range(SPLITS):
        assert rows.scores["mixup"][split].rmse < 2.0


def test_steps_lead_from_a_single_net_to_the_blend():
    rows = judged()
    assert rows.steps.names == (
        "default recipe, single net",
        "best recipe",
        "ensemble",
        "augmentation",
        "blend",
    )
    first, best, scores = [], [], rows.scores
    for split in range(SPLITS):
        recipes = of("erm", split, "recipe")
        first.append(recipes[0].scores["test"].rmse)
        chosen = min(recipes, key=lambda own: own.scores["validation"].rmse)
        best.append(chosen.scores["test"].rmse)
    rest = [[own.rmse for own in scores[name]] for name in ("erm", "nets", "auto")]
    errors = [first, best, *rest]
    for change, before, after in zip(rows.steps.changes, errors, errors[1:], strict=False):
        expected = np.mean(np.log(np.array(after) / np.array(before)))
        assert change == pytest.approx(expected)


def test_without_baselines_there_is_no_blend_and_without_recipes_there_are_no_steps():
    config = replace(CONFIG, baselines=())
    rows = judged(make_records(config), config)
    assert list(rows.scores) == ["erm", "mixup", "nets"]
    assert rows.steps.names[-1] == "augmentation"
    config = replace(CONFIG, recipes=0)
    rows = judged(make_records(config), config)
    assert rows.steps is None
    assert len(rows.used["nets"][0]) == 2 * TRIALS


def failed(record):
    return replace(record, scores={}, predictions={}, ending="diverged")


def test_runs_that_failed_are_left_out_of_an_ensemble():
    records = [failed(own) if own.run.trial == 1 else own for own in RECORDS]
    rows = judged(records)
    for split in range(SPLITS):
        known = [own for own in of("erm", split) if own.run.trial != 1]
        check_score(rows.scores["erm"][split], mean_of(known, split)[1], split)


def test_a_method_without_a_net_that_worked_has_failed_and_the_blend_goes_on():
    def is_bad(run):
        return run.method == "mixup" or (run.split == 0 and run.stage is not None)

    rows = judged([failed(own) if is_bad(own.run) else own for own in RECORDS])
    assert rows.scores["mixup"] == [None] * 3
    assert rows.scores["nets"][0] is None
    assert rows.scores["nets"][1] is not None
    assert all(own is not None for own in rows.scores["auto"])
    assert rows.steps.names == ("blend",)  # the only one that worked on every split


@pytest.mark.parametrize("metric", ["mae", "r2", "pearson"])
def test_another_metric_scores_and_leaves_the_weights(metric):
    config = replace(CONFIG, metric=metric)
    rows = judged(config=config)
    assert rows.steps.metric == metric
    for split in range(SPLITS):
        check_score(rows.scores["erm"][split], mean_of(of("erm", split), split)[1], split)


def test_groups_have_scores_of_their_own():
    groups = np.array(list("abcd") * (N // 4))
    rows = judged(targets=[replace(own, groups=groups) for own in TARGETS])
    for name in ("erm", "nets", "auto"):
        assert all(own.groups.keys() == set("abcd") for own in rows.scores[name])


@pytest.mark.parametrize("how", ["targets", "record"])
def test_without_targets_or_predictions_the_single_best_stands_in(how):
    records, targets = RECORDS, None
    if how == "record":
        records = [replace(RECORDS[0], predictions={}), *RECORDS[1:]]
        targets = TARGETS
    rows, selection = judged(records, targets=targets), select(CONFIG, records)
    assert set(rows.scores) == {*CONFIG.methods, *CONFIG.baselines}
    assert rows.steps is None
    for name, own in selection.chosen.items():
        assert rows.scores[name] == [one.scores["test"] for one in own]
        assert rows.used[name] == [[one] for one in own]


def test_targets_of_other_splits_are_refused():
    with pytest.raises(StoreError, match="targets of 2 splits, and the study has 3"):
        judged(targets=TARGETS[:2])
    other = [replace(own, test=own.test[1:]) for own in TARGETS]
    with pytest.raises(StoreError, match="does not fit the runs: 23 test rows of 1 targets"):
        judged(targets=other)


def test_copies_of_plain_training_with_the_same_predictions_are_equal():
    by_place = {(own.run.trial, own.run.split): own for s in range(SPLITS) for own in of("erm", s)}

    def copy(record):
        if record.run.method != "mixup":
            return record
        same = by_place[record.run.trial, record.run.split]
        return replace(record, scores=same.scores, predictions=same.predictions)

    rows = judged([copy(own) for own in RECORDS])
    assert rows.scores["mixup"] == rows.scores["erm"]
    assert isinstance(rows.scores["erm"][0], Scores)

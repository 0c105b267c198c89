"""What came out of a run: kept whole, with scores that say which way is better."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.data import standardize
from regaug.data.base import Part, Split
from regaug.metrics import Scores, evaluate
from regaug.runs import record as module
from regaug.runs.record import RunRecord, Sample
from regaug.runs.run import Run
from regaug.training.results import Epoch, RunResult
from regaug.training.settings import Settings
from regaug.training.state import pack, unpack

numbers = st.floats() | st.integers(-9, 9)
names = st.text(max_size=4) | st.sampled_from(["$x", "$float", "$$"])
optional = st.none() | numbers


def scores_of(groups):
    return st.builds(
        Scores,
        n=st.integers(1, 99),
        rmse=numbers,
        mae=numbers,
        mape=optional,
        n_zero=st.integers(0, 9),
        r2=optional,
        pearson=optional,
        groups=groups,
    )


scores = scores_of(st.dictionaries(names, scores_of(st.just({})), max_size=2))
pairs = st.lists(st.tuples(*[st.tuples(optional, optional).map(list)] * 2), max_size=3)
curves = st.lists(optional, max_size=4)
records = st.builds(
    RunRecord,
    run=st.sampled_from(
        [
            Run("$p", "ridge", 0, 7),
            Run("p", "erm", 1, 3, Settings(method_settings={"k": (1, 2)}), 0, True),
        ]
    ),
    scores=st.dictionaries(st.sampled_from(["validation", "test", "$more"]), scores, max_size=2),
    ending=st.sampled_from(["finished", "early", "diverged"]),
    best_epoch=st.integers(0, 9),
    epochs=st.integers(0, 9),
    seconds=st.floats(0, 1e6),
    predict_seconds=st.none() | st.floats(0, 1.0),
    sizes=st.tuples(*[st.integers(0, 9)] * 3),
    made_by=st.dictionaries(names, st.text(max_size=3), max_size=2),
    chosen=st.dictionaries(names, optional | st.text(max_size=3), max_size=2),
    curves=st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("loss", "train", "validation", "test"), curves)
    ),
    sample=pairs.map(
        lambda own: Sample(*map(list, zip(*own, strict=True))) if own else Sample([], [])
    ),
)


@given(records)
def test_a_record_comes_back_from_a_line_of_json(record):
    line = json.dumps(pack("record", record.to_dict())[0], allow_nan=False)
    again = RunRecord.from_dict(unpack(json.loads(line), {}))
    # As text, for which NaN is equal to NaN.
    assert repr(again) == repr(record)
    assert again.run == record.run


WHOLE = RunRecord(
    run=Run("houses", "erm", 0, 0, Settings(), 1),
    scores={"test": Scores(5, 1.0, 0.5, None, 0, 0.25, None)},
    ending="early",
    best_epoch=2,
    epochs=3,
    seconds=0.5,
    sizes=(3, 1, 1),
    made_by={"torch": "2"},
    curves={"test": [1.0, None]},
    sample=Sample([[1.0]], [[None]]),
    predictions={"validation": np.float32([[1.5]]), "test": np.float32([[2.5]])},
).to_dict()
WRONG = [
    {"run": None},
    {"run": {}},
    {"run": {**WHOLE["run"], "settings": {"epochs": 5}}},
    {"scores": []},
    {"scores": {"test": {}}},
    {"scores": {"test": {**WHOLE["scores"]["test"], "rmse": "low"}}},
    {"scores": {"test": {**WHOLE["scores"]["test"], "rmse": None}}},
    {"scores": {"test": {**WHOLE["scores"]["test"], "groups": 3}}},
    {"scores": {"test": {**WHOLE["scores"]["test"], "groups": {"a": {"rmse": 1}}}}},
    {"ending": "perhaps"},
    {"ending": ["early"]},
    {"best_epoch": 1.5},
    {"epochs": None},
    {"seconds": "long"},
    {"predict_seconds": "long"},
    {"sizes": [1, 2]},
    {"sizes": 7},
    {"made_by": "torch"},
    {"chosen": 7},
    {"curves": {"test": 7}},
    {"curves": {"test": ["a"]}},
    {"curves": {"best": [1.0]}},
    {"sample": {"true": [[1.0]]}},
    {"sample": {"true": [1.0], "predicted": [[1.0]]}},
    {"sample": []},
    {"predictions": []},
    {"predictions": None},
    {"predictions": {"test": [[2.5]]}},
    {"predictions": {"test": "1x1:"}},
    {"predictions": {"test": "1x1:AADAfw=="}},  # NaN
    {"predictions": {"test": "2x1:AAAgQAAAIEA="}},  # of two rows, and there is one
    {"predictions": {"train": "1x1:AAAgQA=="}},
    {"predictions": {"validation": "1x1:AAAgQA==", "test": "1x2:AAAgQAAAIEA="}},
    {"run": {**WHOLE["run"], "stage": "third"}},
]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_values_of_another_type_are_no_record(change):
    assert repr(RunRecord.from_dict(WHOLE).to_dict()) == repr(WHOLE)
    with pytest.raises((AttributeError, LookupError, TypeError, ValueError)):
        RunRecord.from_dict(WHOLE | change)


@pytest.mark.parametrize(
    "name", [name for name in WHOLE if name not in ("predictions", "predict_seconds")]
)
def test_a_record_without_one_of_its_values_is_none(name):
    with pytest.raises(LookupError):
        RunRecord.from_dict({key: value for key, value in WHOLE.items() if key != name})


def test_a_record_from_before_predictions_were_kept_has_none():
    older = {key: value for key, value in WHOLE.items() if key != "predictions"}
    record = RunRecord.from_dict(older)
    assert record.predictions == {}
    assert repr(record.to_dict()) == repr(older)


def make_split(n=5):
    x = torch.arange(n, dtype=torch.float32)[:, None]
    part = Part(x, 2 * x, np.arange(n))
    return Split(part, part, part)


def make_result(split, *, ending="finished", best_epoch=2):
    target = split.test.y
    history = tuple(Epoch(1 / epoch, 0.123456789, math.nan, None) for epoch in (1, 2, 3))
    return RunResult(
        method="erm",
        settings=Settings(method_settings={"penalty": 3}),
        history=history,
        best_epoch=best_epoch,
        ending=ending,
        scores={part: evaluate(target + 1, target) for part in ("validation", "test")},
        predictions={"validation": target + 1, "test": target + 1, "more": target},
        weights={},
        seconds=0.123456,
        made_by={"regaug": "0"},
    )


RUN = Run("line", "erm", 0, 0, Settings())


def test_the_curves_and_a_sample_are_kept_if_they_are_asked_for():
    split = make_split()
    result = make_result(split)
    whole, short = (RunRecord.of(RUN, result, split, details=d) for d in (True, False))
    assert whole.curves["train"] == [0.12346] * 3
    assert whole.curves["validation"] == whole.curves["test"] == [None] * 3  # NaN, not asked for
    assert whole.sample.true == split.test.y.tolist()
    assert whole.sample.predicted == (split.test.y + 1).tolist()
    assert whole.predictions.keys() == {"validation", "test"}
    assert whole.predictions["test"].tolist() == (split.test.y + 1).tolist()
    assert whole.predictions["test"].dtype == np.float32
    assert (short.curves, short.sample, short.predictions) == ({}, Sample(), {})
    assert whole.epochs == short.epochs == 3
    assert whole.sizes == (5, 5, 5)
    assert whole.scores == short.scores == result.scores
    assert whole.seconds == 0.1235
    assert whole.chosen == {}


def test_a_sample_of_rows_that_have_a_scale_is_in_the_targets_own_units():
    split = make_split()
    result, scaled = make_result(split), standardize(split)
    sample = RunRecord.of(RUN, result, scaled, details=True).sample
    expected = RunRecord.of(RUN, result, split, details=True).sample
    np.testing.assert_allclose(sample.true, expected.true, atol=1e-5)
    assert sample.predicted == expected.predicted


def test_a_baseline_keeps_what_it_has_chosen():
    split = make_split()
    record = RunRecord.of(Run("line", "ridge", 0, 0), make_result(split), split, details=True)
    assert record.chosen == {"penalty": 3}


def test_of_a_large_test_part_200_rows_are_kept_from_end_to_end():
    split = make_split(2000)
    sample = RunRecord.of(RUN, make_result(split), split, details=True).sample
    assert len(sample.true) == len(sample.predicted) == 200
    assert (sample.true[0], sample.true[-1]) == ([0.0], [3998.0])


def test_predictions_of_very_many_rows_are_not_kept(monkeypatch):
    split = make_split()
    for most, kept in ((10, {"validation", "test"}), (9, set())):
        monkeypatch.setattr(module, "MOST_NUMBERS", most)
        record = RunRecord.of(RUN, make_result(split), split, details=True)
        assert record.predictions.keys() == kept


def test_a_run_that_diverged_before_it_learned_anything_has_no_scores():
    split = make_split()
    nothing = RunRecord.of(
        RUN, make_result(split, ending="diverged", best_epoch=0), split, details=True
    )
    raised = RunRecord.diverged(RUN, split)
    for record in (nothing, raised):
        assert (record.ending, record.scores, record.sample) == ("diverged", {}, Sample())
        assert record.predictions == {}
        assert record.score("test", "rmse") is None
        for metric in ("rmse", "r2"):
            assert record.validation_error(metric) == math.inf
    late = RunRecord.of(RUN, make_result(split, ending="diverged"), split, details=True)
    assert late.validation_error("rmse") == 1.0


def test_validation_errors_are_lower_for_what_is_better():
    split = make_split()
    record = RunRecord.of(RUN, make_result(split), split, details=False)
    scores = record.scores["validation"]
    assert record.validation_error("mae") == scores.mae == record.score("validation", "mae")
    assert record.validation_error("pearson") == -scores.pearson
    assert record.score("train", "rmse") is None

"""Other metrics and times of the rows."""

import json
import math

import pytest

from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.details import Details, describe_rows


def make_record(rmse, mape, *, seconds=1.0, split=0):
    scores = {} if rmse is None else {"test": Scores(9, rmse, 2 * rmse, mape, 0, 0.5, None)}
    run = Run("houses", "ridge", split, 0)
    return RunRecord(run, scores, "finished", 0, 0, seconds, (6, 2, 2), {})


def test_means_over_the_splits_of_all_metrics_but_the_one_that_decides():
    chosen = {"ridge": [make_record(1.0, 10.0, seconds=1.0), make_record(3.0, 20.0, seconds=2.0)]}
    found = describe_rows(chosen, "rmse")["ridge"]
    assert found.scores == {"mae": 4.0, "mape": 15.0, "r2": 0.5}  # nobody knows Pearson's R
    assert (found.fit_seconds, found.predict_seconds) == (1.5, None)
    assert "rmse" in describe_rows(chosen, "mae")["ridge"].scores


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_metric_that_a_split_does_not_have_is_left_out(missing):
    chosen = {"ridge": [make_record(1.0, 10.0), make_record(3.0, missing)]}
    assert set(describe_rows(chosen, "rmse")["ridge"].scores) == {"mae", "r2"}
    failed = {"ridge": [make_record(1.0, 10.0), make_record(None, None)]}
    assert describe_rows(failed, "rmse")["ridge"].scores == {}


def test_details_are_plain_values_in_a_file():
    details = Details({"mae": 1.0}, 0.5)
    assert Details(**json.loads(json.dumps(details.to_dict()))) == details
    assert describe_rows({"erm": []}, "rmse") == {}

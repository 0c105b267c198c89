"""Other metrics and times of the rows."""

import json
import math
from dataclasses import replace

import pytest

from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.details import Details, describe_rows


def make_record(rmse, mape, *, seconds=1.0, predict_seconds=None, split=0):
    scores = {} if rmse is None else {"test": Scores(9, rmse, 2 * rmse, mape, 0, 0.5, None)}
    run = Run("houses", "ridge", split, 0)
    own = RunRecord(run, scores, "finished", 0, 0, seconds, (6, 2, 2), {})
    return replace(own, predict_seconds=predict_seconds)


def describe(chosen, metric="rmse"):
    scores = {name: [one.scores.get("test") for one in own] for name, own in chosen.items()}
    used = {name: [[one] for one in own] for name, own in chosen.items()}
    return describe_rows(scores, used, metric=metric)


def test_means_over_the_splits_of_all_metrics_but_the_one_that_decides():
    chosen = {"ridge": [make_record(1.0, 10.0, seconds=1.0), make_record(3.0, 20.0, seconds=2.0)]}
    found = describe(chosen)["ridge"]
    assert found.scores == {"mae": 4.0, "mape": 15.0, "r2": 0.5}  # nobody knows Pearson's R
    assert (found.fit_seconds, found.predict_seconds) == (1.5, None)
    assert "rmse" in describe(chosen, "mae")["ridge"].scores


def test_a_row_is_predicted_by_all_nets_of_a_split():
    one, two = (make_record(1.0, 10.0, predict_seconds=value) for value in (1e-6, 3e-6))
    unknown, scores = make_record(1.0, 10.0), {"erm": [one.scores["test"]] * 2}

    def seconds(*used):
        return describe_rows(scores, {"erm": used}, metric="rmse")["erm"].predict_seconds

    assert seconds([one, two], [two]) == pytest.approx(3.5e-6)
    assert seconds([one, unknown], [two]) == 3e-6
    assert seconds([unknown], [unknown]) is None


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_metric_that_a_split_does_not_have_is_left_out(missing):
    chosen = {"ridge": [make_record(1.0, 10.0), make_record(3.0, missing)]}
    assert set(describe(chosen)["ridge"].scores) == {"mae", "r2"}
    failed = {"ridge": [make_record(1.0, 10.0), make_record(None, None)]}
    assert describe(failed)["ridge"].scores == {}


def test_details_are_plain_values_in_a_file():
    details = Details({"mae": 1.0}, 0.5)
    assert Details(**json.loads(json.dumps(details.to_dict()))) == details
    assert describe({"erm": []}) == {}


def test_a_method_has_the_time_of_all_its_nets_and_the_epochs_of_all_its_runs():
    ensemble = [Scores(9, 1.0, 1.0, None, 0, 0.5, None), Scores(9, 2.0, 1.0, None, 0, 0.5, None)]
    first, second = ([make_record(s + 2.0, None, split=s) for _ in range(3)] for s in (0, 1))
    chosen = {"erm": [first[0], second[0]]}
    rows = {"erm": ensemble, "nets": ensemble}
    used = {"erm": [first, second], "nets": [first, second]}
    records = [replace(one, epochs=7) for one in (*first, *second)]
    tried = {"erm": [records[:3], records[3:]]}
    found = describe_rows(rows, used, metric="rmse", chosen=chosen, tried=tried)
    assert (found["erm"].fit_seconds, found["erm"].epochs, found["erm"].single) == (3.0, 42, 2.5)
    assert (found["nets"].single, found["nets"].epochs) == (None, None)


def test_a_single_net_that_failed_leaves_no_mean():
    record = make_record(None, None)
    found = describe_rows(
        {"erm": [None]}, {"erm": [[record]]}, metric="rmse", chosen={"erm": [record]}
    )
    assert found["erm"] == Details({}, 1.0)

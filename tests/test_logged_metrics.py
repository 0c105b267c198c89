"""Metrics that somebody else computes: their names, their values, what a study makes of them."""

import json
import math

import pytest

from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.metrics import (
    METRICS,
    RARE_METRICS,
    LoggedScores,
    Scores,
    as_signed,
    check_metric,
    is_logged,
    logged_metric,
    read_scores,
)
from regaug.studies.statistics import analyze


def test_any_logged_name_is_a_metric_that_going_through_the_table_does_not_meet():
    low, high = METRICS[logged_metric("test_loss", "min")], METRICS[logged_metric("val/r2", "max")]
    assert (low.title, low.higher_is_better, low.unit) == ("test_loss", False, "percent")
    assert (high.title, high.higher_is_better, high.unit) == ("val/r2", True, "points")
    assert list(METRICS) == ["rmse", "mae", "mape", "r2", "pearson", *RARE_METRICS]
    assert "min:test_loss" in METRICS
    assert not any(map(is_logged, METRICS))


@pytest.mark.parametrize("name", ["rsme", "min:", "test_loss", "most:test_loss"])
def test_other_names_are_still_unknown(name):
    assert name not in METRICS
    with pytest.raises(KeyError):
        METRICS[name]
    with pytest.raises(ArgumentError, match="`metric` must be one of 'rmse'"):
        check_metric(name)


def test_a_logged_metric_cannot_score_predictions():
    with pytest.raises(ArgumentError, match="got one that a module logs"):
        METRICS["min:test_loss"].function(None, None)


def test_scores_know_the_logged_value_alone_and_survive_a_file():
    scores = LoggedScores.of(0.25, n=7)
    again = read_scores(json.loads(json.dumps(scores.to_dict())))
    for own in (scores, again):
        assert (own.value("min:test_loss"), own.value("rmse"), own.n) == (0.25, None, 7)
        assert (own.groups, own.targets) == ({}, ())
    assert read_scores(LoggedScores.of(math.nan, n=7).to_dict()).value("min:test_loss") is None
    plain = Scores(3, 1.0, 1.0, None, 0, None, None)
    assert type(read_scores(plain.to_dict())) is Scores
    with pytest.raises(ArgumentTypeError, match="`logged`"):
        read_scores({"n": 7, "logged": "0.25"})


def test_errors_below_zero_are_compared_by_their_differences():
    errors = {"erm": [-1.0, 0.5, 0.2, 0.1], "mixup": [-1.5, 0.0, -0.3, -0.4]}
    with pytest.raises(ArgumentError, match="must not be negative"):
        analyze(errors, metric="min:nll", test_share=0.25)
    found = analyze(errors, metric=as_signed("min:nll"), test_share=0.25)
    row = found.row("mixup")
    assert (found.unit, found.title, found.rows[0].name) == ("points", "nll", "mixup")
    assert row.change == pytest.approx(-0.5)
    assert row.low < 0 < row.high or row.high < 0  # the interval is not cut at zero
    assert as_signed(as_signed("min:nll")) == "signed-min:nll"

"""How many rows lie in their intervals: counted on rows that the intervals were not made from."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from regaug.data import read_table
from regaug.ensemble import fit
from regaug.ensemble.coverage import FOLDS, LEVELS, _folds, observe_coverage
from regaug.ensemble.evidence import Evidence


def make_frame(n=300, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] + noise * rng.normal(size=n)
    return frame.assign(place=np.arange(n) // 10, when=np.arange(n))


@pytest.fixture(scope="module")
def model():
    return fit(read_table(make_frame(), target="y", drop=["place", "when"]), method="ridge")


def test_new_rows_are_counted_in_the_intervals_of_the_model(model):
    frame = make_frame(200, seed=1)
    evidence = Evidence(
        model.preparation(frame), torch.tensor(frame[["y"]].to_numpy()), made_intervals=False
    )
    for own in observe_coverage(model, evidence):
        expected = model.predict(frame, interval=own.level).coverage[0]
        assert own.inside[0] / own.rows == pytest.approx(expected)
        assert own.rows == 200


def test_rows_with_more_noise_than_before_are_found_out(model):
    frame = make_frame(200, seed=1, noise=5.0)
    y = torch.tensor(frame[["y"]].to_numpy())
    found = observe_coverage(model, Evidence(model.preparation(frame), y, made_intervals=False))
    assert all(own.inside[0] / own.rows < 0.6 * own.level for own in found if own.level > 0.3)


def test_the_rows_of_the_intervals_are_looked_at_with_those_of_the_others(model):
    evidence = model.evidence
    folds = _folds(evidence)
    assert len(folds) == FOLDS
    assert sorted(row for own, _ in folds for row in own) == list(range(len(evidence)))
    assert all(not set(own) & set(others) for own, others in folds)
    # By hand, at one level, from the predictions.
    mean, _, spread = (part[:, 0] for part in _parts(model, evidence))
    off = (
        model.scale.transform(evidence.y)[:, 0] - model.scale.transform(mean[:, None])[:, 0]
    ).abs()
    sizes = (off / torch.hypot(model.calibration.floor, spread)).numpy()
    inside = 0
    for own, others in folds:
        known = sorted(sizes[others])
        inside += (sizes[own] <= known[math.ceil(0.8 * (len(known) + 1)) - 1]).sum()
    found = next(own for own in observe_coverage(model, evidence) if own.level == 0.8)
    assert found.inside == (inside,)


def _parts(model, evidence):
    from regaug.ensemble.component import combine

    return combine(model.components, evidence.x, bounds=model.bounds, scale=model.scale)


def test_it_is_near_the_level_where_the_rows_are_alike(model):
    for own in observe_coverage(model, model.evidence):
        deviation = math.sqrt(own.level * (1 - own.level) / own.rows)
        assert abs(own.inside[0] / own.rows - own.level) < 4 * deviation + 1 / own.rows


def test_groups_stay_whole_and_the_future_is_looked_at_from_the_past():
    by_group = fit(read_table(make_frame(), target="y", group="place", drop="when"), method="ridge")
    evidence = by_group.evidence
    assert evidence.rule == "group"
    for own, others in _folds(evidence):
        assert not set(evidence.groups[own]) & set(evidence.groups[others])
    by_time = fit(read_table(make_frame(), target="y", time="when", drop="place"), method="ridge")
    ((later, earlier),) = _folds(by_time.evidence)
    assert max(earlier) < min(later)
    assert len(later) + len(earlier) == len(by_time.evidence)


def test_levels_that_there_are_too_few_rows_for_are_left_out():
    few = fit(
        read_table(make_frame(30).drop(columns=["place", "when"]), target="y"), method="ridge"
    )
    levels = [own.level for own in observe_coverage(few, few.evidence)]
    assert 0.5 in levels
    assert 0.95 not in levels
    assert set(levels) <= set(LEVELS)


def test_a_single_group_says_nothing_of_others(model):
    evidence = Evidence(
        model.evidence.x, model.evidence.y, np.full(len(model.evidence), "a"), "group"
    )
    assert observe_coverage(model, evidence) == []

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.metrics import METRICS
from regaug.studies.changes import holm
from regaug.studies.statistics import Comparison, analyze

NAMES = ("erm", *(f"copy-{i}" for i in range(1, 9)))
ERRORS = st.floats(1e-3, 1e3)


@st.composite
def tables(draw, values=ERRORS):
    splits = draw(st.integers(1, 6))
    names = ("erm", "mixup", "foma", "ridge")[: draw(st.integers(2, 4))]
    column = st.lists(values, min_size=splits, max_size=splits)
    return {name: draw(column) for name in names}


def analyze_table(table, **options):
    baselines = [name for name in table if name == "ridge"]
    return analyze(table, baselines=baselines, test_share=0.25, **options)


def numbers(row):
    """All numbers of a row but those that depend on the unit or the order of the splits."""
    found = (row.change, row.change_low, row.change_high, row.p, row.p_holm, row.rank, row.won)
    return [math.nan if value is None else value for value in found]


def assert_same(row, other):
    np.testing.assert_allclose(numbers(row), numbers(other), rtol=1e-6, atol=1e-6)


# Closed forms


def test_change_is_the_corrected_test_on_log_ratios_by_hand():
    ratios = np.array([0.9, 0.8, 1.1, 0.7])
    erm = np.array([1.0, 2.0, 3.0, 4.0])
    row = analyze({"erm": erm, "foma": ratios * erm}, test_share=0.5).row("foma")
    logs = np.log(ratios)
    mean = logs.sum() / 4
    variance = ((logs - mean) ** 2).sum() / 3 * (1 / 4 + 0.5)
    t = 3.182446305284263  # 97.5 % quantile of Student's t with 3 degrees of freedom
    ends = mean + np.array([-t, t]) * math.sqrt(variance)
    assert row.change == pytest.approx(100 * (ratios.prod() ** 0.25 - 1))
    assert [row.change_low, row.change_high] == pytest.approx(list(100 * (np.exp(ends) - 1)))
    assert row.p == pytest.approx(2 * stats.t.sf(abs(mean) / math.sqrt(variance), 3))


def test_two_splits_have_the_p_value_of_a_cauchy_variable():
    erm, foma = [1.0, 1.0], [math.exp(0.3), math.exp(0.1)]
    row = analyze({"erm": erm, "foma": foma}, test_share=0.5).row("foma")
    t = 0.2 / math.sqrt(0.02 * (1 / 2 + 0.5))
    assert row.p == pytest.approx(1 - 2 / math.pi * math.atan(t))


def test_interval_of_the_mean_by_hand():
    row = analyze({"erm": [1.0, 2.0, 3.0]}, test_share=0.25).row("erm")
    half = 4.302652729911275 * math.sqrt(1.0 * (1 / 3 + 0.25))
    assert row.mean == 2.0
    assert row.low == pytest.approx(max(0.0, 2.0 - half))
    assert row.high == pytest.approx(2.0 + half)


@pytest.mark.parametrize("metric", ["rmse", "pearson"])
def test_independent_draws_have_the_usual_paired_test(metric):
    rng = np.random.default_rng(0)
    erm, foma = rng.uniform(0.2, 0.9, size=(2, 12))
    row = analyze({"erm": erm, "foma": foma}, metric=metric, test_share=0.25, independent=True).row(
        "foma"
    )
    scale = np.log if metric == "rmse" else np.asarray
    expected = stats.ttest_rel(scale(foma), scale(erm))
    low, high = expected.confidence_interval(0.95)
    assert row.p == pytest.approx(expected.pvalue)
    if metric == "rmse":
        low, high = 100 * np.expm1(low), 100 * np.expm1(high)
    assert (row.change_low, row.change_high) == pytest.approx((low, high))


def test_the_family_is_the_augmentations_alone():
    rng = np.random.default_rng(0)
    names = ("erm", "mixup", "foma", "ridge", "mean")
    errors = dict(zip(names, rng.uniform(1, 2, size=(5, 6)), strict=True))
    found = analyze(errors, baselines=["ridge", "mean"], test_share=0.25)
    p = {name: found.row(name).p for name in ("mixup", "foma")}
    assert {name: found.row(name).p_holm for name in p} == holm(p)
    for name in ("erm", "ridge", "mean"):
        assert found.row(name).p_holm is None
        assert not found.row(name).is_significant
    assert found.row("ridge").p is not None
    without = analyze({name: errors[name] for name in names[:3]}, test_share=0.25)
    assert without.row("foma").p_holm == found.row("foma").p_holm


def test_a_combined_row_is_neither_an_augmentation_nor_a_baseline():
    rng = np.random.default_rng(0)
    names = ("erm", "mixup", "foma", "ridge", "nets", "auto")
    errors = dict(zip(names, rng.uniform(1, 2, size=(6, 6)), strict=True))
    options = {"baselines": ["ridge"], "test_share": 0.25}
    found = analyze(errors, combined=["nets", "auto"], **options)
    without = analyze({name: errors[name] for name in names[:4]}, **options)
    for name in ("nets", "auto"):
        row = found.row(name)
        assert (row.is_combined, row.is_baseline, row.is_net) == (True, False, False)
        assert (row.p_holm, row.is_significant, row.rank, row.won) == (None, False, None, None)
        assert row.p is not None
        assert row.tier is not None
    assert [row.name for row in found.augmentations] == [r.name for r in without.augmentations]
    for name in names[:4]:
        assert_same(found.row(name), without.row(name))
    assert found.smallest_change == without.smallest_change


def test_the_statistics_without_a_split_are_those_of_the_others():
    rng = np.random.default_rng(1)
    names = ("erm", "mixup", "ridge", "auto")
    errors = dict(zip(names, rng.uniform(1, 2, size=(4, 5)), strict=True))
    options = {"baselines": ["ridge"], "combined": ["auto"], "test_share": 0.3, "level": 0.9}
    fewer = {name: np.delete(values, 2) for name, values in errors.items()}
    assert analyze(errors, **options).without_split(2) == analyze(fewer, **options)


def test_a_file_of_an_older_version_is_analyzed_anew():
    options = {"baselines": ["ridge"], "test_share": 0.25}
    found = analyze({"erm": [1.0, 2.0], "ada": [1.5, None], "ridge": [2.0, 2.0]}, **options)
    values = json.loads(json.dumps(found.to_dict()))
    assert type(found).from_dict(values) == found
    del values["pairs"], values["smallest_change"]
    for row in values["rows"]:
        del row["tier"], row["is_combined"]
    assert type(found).from_dict(values) == found


def test_the_reference_is_not_compared_with_itself():
    row = analyze({"erm": [1.0, 2.0], "foma": [1.0, 1.0]}, test_share=0.25).row("erm")
    assert (row.change, row.change_low, row.change_high, row.p) == (None, None, None, None)


def test_rank_and_won_share_ties():
    errors = {"erm": [1.0, 2.0, 3.0], "mixup": [1.0, 1.0, 4.0], "foma": [2.0, 3.0, 4.0]}
    found = analyze({**errors, "ridge": [0.1] * 3}, baselines=["ridge"], test_share=0.25)
    assert found.row("erm").rank == pytest.approx((1.5 + 2 + 1) / 3)
    assert found.row("mixup").rank == pytest.approx((1.5 + 1 + 2.5) / 3)
    assert found.row("foma").rank == pytest.approx((3 + 3 + 2.5) / 3)
    assert [found.row(name).won for name in errors] == pytest.approx([0.5, 0.5, 0.0])
    assert (found.row("ridge").rank, found.row("ridge").won) == (None, None)


# Metrics that grow as predictions improve


@pytest.mark.parametrize("metric", ["r2", "pearson"])
def test_a_higher_value_is_better_where_it_measures_agreement(metric):
    errors = {"erm": [0.1, 0.2, -0.1], "foma": [0.3, 0.41, 0.1]}
    found = analyze(errors, metric=metric, test_share=0.25)
    assert [row.name for row in found.rows] == ["foma", "erm"]
    assert found.unit == "points"
    row = found.row("foma")
    assert row.change == pytest.approx(0.61 / 3)
    assert 0 < row.change_low < row.change_high
    assert (row.rank, row.won) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "least", "most"), [("rmse", 0, None), ("r2", None, 1), ("pearson", -1, 1)]
)
def test_an_interval_does_not_leave_what_the_metric_can_be(metric, least, most):
    row = analyze({"erm": [0.0, 0.9]}, metric=metric, test_share=0.25).row("erm")
    assert row.low == least if least is not None else row.low < -1
    assert row.high == most if most is not None else row.high > 1


# Ugly input


def test_equal_errors_have_no_change_and_p_one():
    row = analyze({"erm": [1.0, 2.0, 3.0], "foma": [1.0, 2.0, 3.0]}, test_share=0.25).row("foma")
    assert (row.change, row.change_low, row.change_high) == (0.0, 0.0, 0.0)
    assert (row.p, row.p_holm, row.is_significant) == (1.0, 1.0, False)


def test_errors_that_differ_by_rounding_are_equal():
    erm = np.array([1.0, 2.0, 3.0])
    assert analyze({"erm": erm, "foma": erm * (1 + 1e-12)}, test_share=0.25).row("foma").p == 1.0


def test_the_same_change_on_every_split_is_certain():
    row = analyze({"erm": [1.0, 2.0, 4.0], "foma": [0.5, 1.0, 2.0]}, test_share=0.25).row("foma")
    assert (row.change, row.change_low, row.change_high) == (-50.0, -50.0, -50.0)
    assert (row.p, row.is_significant) == (0.0, True)


def test_one_split_has_means_and_changes_but_no_certainty():
    found = analyze({"erm": [2.0], "foma": [1.0]}, test_share=0.25)
    row = found.row("foma")
    assert (row.mean, row.change) == (1.0, pytest.approx(-50.0))
    assert (row.low, row.high, row.change_low, row.change_high) == (None,) * 4
    assert (row.p, row.p_holm, row.is_significant) == (None, None, False)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None, 1e200])
@pytest.mark.parametrize("metric", METRICS)
def test_a_method_that_failed_on_a_split_has_no_statistics_and_comes_last(bad, metric):
    errors = {"foma": [0.01, bad, 0.01], "erm": [0.5, 0.6, 0.7], "mixup": [0.4, 0.6, 0.6]}
    found = analyze(errors, metric=metric, test_share=0.25)
    row = found.row("foma")
    assert found.rows[-1] is row
    assert row.errors == (0.01, None, 0.01)
    assert (row.mean, row.low, row.high, row.change, row.p, row.p_holm) == (None,) * 6
    assert (row.is_significant, row.n_failed) == (False, 1)
    higher = METRICS[metric].higher_is_better
    assert row.rank == pytest.approx(3.0 if higher else 5 / 3)
    assert found.row("erm").n_failed == 0
    assert found.row("mixup").p is not None


def test_nothing_is_compared_with_a_reference_that_failed():
    found = analyze({"erm": [1.0, math.nan], "foma": [0.5, 0.6]}, test_share=0.25)
    row = found.row("foma")
    assert row.mean == 0.55
    assert (row.change, row.p, row.p_holm, row.is_significant) == (None, None, None, False)


def test_nobody_wins_a_split_on_which_all_failed():
    found = analyze({"erm": [math.nan, 1.0], "foma": [math.inf, 2.0]}, test_share=0.25)
    places = [(row.name, row.rank, row.won) for row in found.rows]
    assert places == [("erm", 1.25, 0.5), ("foma", 1.75, 0.0)]


@pytest.mark.parametrize("level", [0.95, 0.999])
def test_errors_of_zero_leave_everything_finite(level):
    errors = {"erm": [0.0, 0.0], "foma": [1.0, 0.0], "mixup": [0.0, 0.0], "ada": [1e-90, 1e90]}
    found = analyze(errors, test_share=0.25, level=level)
    assert found.row("mixup").p == 1.0
    json.dumps(found.to_dict(), allow_nan=False)
    other = analyze({"erm": [1.0, 2.0], "foma": [0.0, 0.0]}, test_share=0.25).row("foma")
    assert other.change == pytest.approx(-100.0, abs=1e-6)
    assert other.is_significant


@given(tables(st.none() | st.just(math.nan) | st.floats(0.0)), st.sampled_from(sorted(METRICS)))
def test_whatever_came_the_statistics_can_be_written_as_json(table, metric):
    found = analyze_table(table, metric=metric)
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (values["metric"], values["n_splits"]) == (metric, len(table["erm"]))
    rows = values["rows"]
    assert {row["name"]: row["n_failed"] for row in rows} == {
        name: sum(not 0 <= (math.nan if v is None else v) < 1e100 for v in values)
        for name, values in table.items()
    }


# Properties


@given(tables(), st.data())
def test_the_order_of_methods_and_splits_does_not_matter(table, data):
    names = data.draw(st.permutations(sorted(table)))
    splits = data.draw(st.permutations(range(len(table["erm"]))))
    other = {name: [table[name][split] for split in splits] for name in names}
    found, mixed = analyze_table(table), analyze_table(other)
    assert [row.name for row in mixed.rows] == [row.name for row in found.rows]
    for row, moved in zip(found.rows, mixed.rows, strict=True):
        assert moved.mean == row.mean
        assert_same(moved, row)


@given(tables(), st.floats(1e-3, 1e3))
def test_the_unit_of_the_target_changes_no_relative_statistic(table, factor):
    found = analyze_table(table)
    scaled = analyze_table({name: np.multiply(values, factor) for name, values in table.items()})
    for row in found.rows:
        other = scaled.row(row.name)
        assert other.mean == pytest.approx(factor * row.mean)
        assert other.p == (None if row.p is None else pytest.approx(row.p, abs=1e-6))
        assert other.change == (None if row.change is None else pytest.approx(row.change, abs=1e-6))


@given(tables())
def test_rows_come_by_their_mean_within_its_interval(table):
    rows = analyze_table(table).rows
    assert [row.mean for row in rows] == sorted(row.mean for row in rows)
    for row in rows:
        if row.low is not None:
            assert row.low <= row.mean * (1 + 1e-12)
            assert row.mean <= row.high * (1 + 1e-12)


@given(tables())
def test_ranks_and_wins_add_up(table):
    nets = [row for row in analyze_table(table).rows if not row.is_baseline]
    assert sum(row.rank for row in nets) == pytest.approx(len(nets) * (len(nets) + 1) / 2)
    assert sum(row.won for row in nets) == pytest.approx(1.0)


@given(tables())
def test_a_change_names_either_row_first(table):
    found = analyze_table(table)
    change, back = found.paired("mixup", "erm"), found.paired("erm", "mixup")
    assert (1 + change.estimate / 100) * (1 + back.estimate / 100) == pytest.approx(1.0)
    if change.p is not None:
        assert change.p == pytest.approx(back.p, abs=1e-9)
    row = found.row("mixup")
    assert change.estimate == row.change
    assert (change.low, change.high, change.p) == (row.change_low, row.change_high, row.p)


# How often it is wrong, and how often it sees what is there


def analyze_tables(errors, **options):
    return [analyze(dict(zip(NAMES, table, strict=False)), **options) for table in errors]


def share_with_a_finding(found):
    return np.mean([any(row.is_significant for row in each.rows) for each in found])


@pytest.fixture(scope="module")
def noise_of(luck):
    def make(name, rng, tables=2000):
        if name == "independent":
            return rng.standard_normal((tables, 9, 10)), {"test_share": 0.25, "independent": True}
        if name == "heavy tails":
            return rng.standard_t(3, (tables, 9, 10)), {"test_share": 0.25, "independent": True}
        if name == "overlapping":
            return luck(rng, (tables, 9, 10)), {"test_share": 10 / 40}
        return luck(rng, (tables, 9, 5), n=60, n_test=12), {"test_share": 12 / 36}

    return make


@pytest.mark.parametrize(
    "name",
    [
        "independent",
        "overlapping",
        pytest.param("heavy tails", marks=pytest.mark.slow),
        pytest.param("small", marks=pytest.mark.slow),
    ],
)
def test_copies_of_one_method_are_rarely_told_apart(name, noise_of, errors_of):
    rng = np.random.default_rng(6)
    noise, options = noise_of(name, rng)
    found = analyze_tables(errors_of(rng, noise), **options)
    assert 0.0 < share_with_a_finding(found) <= 0.065
    # Nine equal rows share the first tier: each of them almost always, all of them mostly.
    tiers = np.array([[each.row(name).tier for name in NAMES] for each in found])
    assert (tiers == 1).mean() >= 0.97
    assert (tiers == 1).all(axis=1).mean() >= 0.8


def test_what_is_combined_does_not_make_findings_more_frequent(noise_of, errors_of):
    # An average of all rows has less noise than any of them, and is no part of the family.
    rng = np.random.default_rng(7)
    noise, options = noise_of("overlapping", rng, tables=200)
    errors = errors_of(rng, noise)
    alone = analyze_tables(errors, **options)
    more = [
        analyze(
            {**dict(zip(NAMES, table, strict=True)), "auto": blend}, combined=["auto"], **options
        )
        for table, blend in zip(errors, errors.mean(axis=1), strict=True)
    ]
    assert share_with_a_finding(more) == share_with_a_finding(alone) <= 0.08
    for each, other in zip(more, alone, strict=True):
        assert each.smallest_change == other.smallest_change
        assert [each.row(name).p_holm for name in NAMES] == [other.row(n).p_holm for n in NAMES]


def test_without_the_correction_copies_would_be_told_apart_often(noise_of, errors_of):
    rng = np.random.default_rng(6)
    noise, options = noise_of("overlapping", rng, tables=200)
    found = analyze_tables(errors_of(rng, noise), **options, independent=True)
    assert share_with_a_finding(found) > 0.2


def test_the_corrected_p_value_is_uniform_when_test_rows_alone_are_shared(luck):
    noise = luck(np.random.default_rng(1), (1000, 2, 10))
    found = [analyze({"erm": a, "foma": b}, test_share=0.25) for a, b in np.exp(0.02 * noise)]
    p = [each.row("foma").p for each in found]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("n_methods", "independent", "least"), [(8, True, 0.95), (1, False, 0.85), (8, False, 0.3)]
)
def test_an_effect_of_five_per_cent_is_found(errors_of, n_methods, independent, least):
    # Each error has a noise of 2 %. Independent noise is what the correction for common rows does
    # not expect, and what it costs most power with.
    rng = np.random.default_rng(2)
    errors = errors_of(rng, rng.standard_normal((300, 1 + n_methods, 10)))
    errors[:, 1] *= 0.95
    options = {"test_share": 0.25, "independent": independent}
    found = analyze_tables(errors, **options)
    rows = [each.row(NAMES[1]) for each in found]
    assert np.mean([row.is_significant for row in rows]) > least
    assert np.mean([row.change for row in rows]) == pytest.approx(-5.0, abs=0.3)
    assert np.mean([row.change_low <= -5.0 <= row.change_high for row in rows]) > 0.9


# Wrong arguments


@pytest.mark.parametrize(
    ("errors", "options", "message"),
    [
        ({"erm": [1.0], "foma": [1.0, 2.0]}, {}, "equally many in every row"),
        ({"erm": []}, {}, "a value for each split"),
        ({"erm": [1.0, -1.0]}, {}, "must not be negative for 'rmse', got -1 of 'erm'"),
        ({"erm": [1.0]}, {"baselines": ["erm"]}, "`reference` must not be one of `baselines`"),
        ({"erm": [1.0]}, {"combined": ["erm"]}, "`reference` must not be one of `combined`"),
        (
            {"erm": [1.0], "auto": [1.0]},
            {"baselines": ["auto"], "combined": ["auto"]},
            "`combined` must not name a baseline, got auto in both",
        ),
        ({"erm": [1.0]}, {"test_share": -0.1}, "`test_share` must be at least 0"),
        ({"erm": [1.0]}, {"level": 1.0}, "`level` must be in"),
    ],
)
def test_wrong_arguments_are_named(errors, options, message):
    with pytest.raises(ArgumentError, match=message):
        analyze(errors, **{"test_share": 0.25, **options})


@pytest.mark.parametrize(
    ("errors", "options", "message"),
    [
        ({"foma": [1.0]}, {}, "Unknown row 'erm'"),
        ({"erm": [1.0], "ridge": [1.0]}, {"baselines": ["rigde"]}, "Did you mean 'ridge'"),
        ({"erm": [1.0], "nets": [1.0]}, {"combined": ["net"]}, "Did you mean 'nets'"),
        ({"erm": [1.0]}, {"metric": "rmsd"}, "Unknown metric 'rmsd'. Did you mean 'rmse'"),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(errors, options, message):
    with pytest.raises(UnknownNameError, match=message):
        analyze(errors, **options, test_share=0.25)


def test_repetitions_of_one_split_are_independent_seeds():
    errors = {
        "erm": [1.0, 1.2, 0.9, 1.1],
        "foma": [0.8, 1.0, 0.8, 0.9],
        "ada": [1.0, 1.1, 0.8, 1.2],
    }
    repeated = analyze(errors, test_share=0.25, repeated=True)
    independent = analyze(errors, test_share=0.25, independent=True)
    assert repeated.rows == independent.rows
    assert repeated.pairs == independent.pairs
    assert repeated.smallest_change == independent.smallest_change
    assert (repeated.case, independent.case) == ("repetition", "split")
    again = Comparison.from_dict(json.loads(json.dumps(repeated.to_dict())))
    assert again == repeated
    assert again.without_split(1).repeated

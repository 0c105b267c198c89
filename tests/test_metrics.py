import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from sklearn.metrics import (
    mean_absolute_error,
    mean_absolute_percentage_error,
    r2_score,
    root_mean_squared_error,
)

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError, UnknownNameError
from regaug.metrics import (
    METRICS,
    RARE_METRICS,
    Score,
    Scores,
    by_tenth,
    evaluate,
    focused,
    mape,
    pearson,
    r2,
    rmse,
)
from regaug.metrics.scores import _alike

NAN, INF = math.nan, math.inf


def make(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.randn(*shape, generator=generator, dtype=torch.float64)
    noise = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return 0.8 * target + 0.5 * noise, target


def reference(prediction, target):
    """Every metric by another library; NumPy arrays (n, m)."""
    correlations = [pearsonr(p, t)[0] for p, t in zip(prediction.T, target.T, strict=True)]
    n, m = target.shape
    flat = (target.reshape(n * m), prediction.reshape(n * m))
    return {
        "rmse": root_mean_squared_error(*flat),
        "mae": mean_absolute_error(*flat),
        "mape": 100 * mean_absolute_percentage_error(*flat),
        "r2": r2_score(target, prediction),
        "pearson": np.mean(correlations),
        "balanced-rmse": slow_balanced(*flat),
        "tail-rmse": slow_tail(*flat, high=True, low=True),
        "tail-rmse-high": slow_tail(*flat, high=True),
        "tail-rmse-low": slow_tail(*flat, low=True),
    }


def tenth_of(value, target):
    """The tenth of the range from the 1st to the 99th percentile, from the definition."""
    ordered = sorted(target)
    beyond = int(0.01 * (len(target) - 1))
    low, high = ordered[beyond], ordered[len(target) - 1 - beyond]
    return min(max(int(10 * (value - low) / (high - low)), 0), 9)


def slow_balanced(target, prediction):
    tenths = {}
    for t, p in zip(target, prediction, strict=True):
        tenths.setdefault(tenth_of(t, target), []).append((p - t) ** 2)
    return np.mean([np.mean(own) for own in tenths.values()]) ** 0.5


def slow_tail(target, prediction, high=False, low=False):
    ordered, size = np.sort(target), -(-len(target) // 10)
    is_counted = (high & (target >= ordered[-size])) | (low & (target <= ordered[size - 1]))
    return root_mean_squared_error(target[is_counted], prediction[is_counted])


@pytest.mark.parametrize("shape", [(50, 1), (7, 3), (3, 1)])
def test_metrics_are_those_of_other_libraries(shape):
    prediction, target = make(*shape)
    expected = reference(prediction.numpy(), target.numpy())
    found = {name: m.function(prediction, target).item() for name, m in METRICS.items()}
    assert found == pytest.approx(expected, rel=1e-12)


@given(
    n=st.integers(1, 9),
    m=st.integers(1, 3),
    runs=st.integers(1, 4),
    seed=st.integers(0, 999),
    filler=st.sampled_from([0.0, 1e30, NAN, INF, -INF]),
)
@pytest.mark.parametrize("name", METRICS)
def test_rows_that_do_not_count_are_as_if_they_were_not_there(name, n, m, runs, seed, filler):
    prediction, target = make(runs, n, m, seed=seed)
    rows = torch.rand(runs, n, generator=torch.Generator().manual_seed(seed)) < 0.6
    rows[:, seed % n] = True
    padded = [v.masked_fill(~rows[..., None], filler) for v in (prediction, target)]
    function = METRICS[name].function
    alone = [function(prediction[run, rows[run]], target[run, rows[run]]) for run in range(runs)]
    torch.testing.assert_close(
        function(*padded, rows=rows), torch.stack(alone), equal_nan=True, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("name", METRICS)
def test_a_stack_is_its_runs_one_by_one(name):
    prediction, target = make(2, 3, 20, 2)
    function = METRICS[name].function
    stacked = function(prediction, target)
    assert stacked.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(stacked[i, j], function(prediction[i, j], target[i, j]))


@pytest.mark.parametrize("name", METRICS)
def test_a_run_without_rows_that_count_is_undefined(name):
    prediction, target = make(2, 5, 1)
    rows = torch.tensor([[False] * 5, [True] * 5])
    value = METRICS[name].function(prediction, target, rows=rows)
    assert value.isfinite().tolist() == [False, True]
    assert value[0].isnan()


@pytest.mark.parametrize("broken", [NAN, INF])
@pytest.mark.parametrize("name", METRICS)
def test_a_diverged_run_is_never_better_and_leaves_the_others_alone(name, broken):
    prediction, target = make(2, 5, 2)
    function = METRICS[name].function
    good = function(prediction, target)
    prediction[0, 0, 0] = broken
    value = function(prediction, target)
    assert not value[0].isfinite()
    assert not METRICS[name].error(value[0].item()) < METRICS[name].error(good[0].item())
    assert value[1] == good[1]


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("name", METRICS)
def test_metrics_of_float32_follow_the_scale(name, scale):
    prediction, target = (v.float() for v in make(100, 2))
    scaled = METRICS[name].function(*((v.double() * scale).float() for v in (prediction, target)))
    factor = scale if METRICS[name].has_unit else 1.0
    expected = METRICS[name].function(prediction, target) * factor
    torch.testing.assert_close(scaled, expected, rtol=1e-5, atol=0.0)
    assert scaled.dtype == torch.float64


@pytest.mark.parametrize("function", [r2, pearson])
def test_correlations_survive_a_large_offset(function):
    prediction, target = make(100, 1)
    shifted = function(prediction + 1e8, target + 1e8)
    torch.testing.assert_close(shifted, function(prediction, target), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("rows", [None, torch.ones(9, dtype=torch.bool)])
@pytest.mark.parametrize("function", [r2, pearson])
def test_targets_that_do_not_vary_are_left_out_of_the_average(function, rows):
    prediction, target = make(9, 2)
    expected = function(prediction[:, :1], target[:, :1])
    target[:, 1] = 0.1  # whose mean over nine rows is not quite 0.1
    torch.testing.assert_close(function(prediction, target, rows=rows), expected)
    assert function(prediction[:, 1:], target[:, 1:], rows=rows).isnan()


@pytest.mark.parametrize("rows", [None, torch.ones(9, dtype=torch.bool)])
def test_a_constant_prediction_has_no_correlation(rows):
    _, target = make(9, 1)
    assert pearson(torch.full_like(target, 0.1), target, rows=rows).item() == 0.0


def test_a_mean_prediction_explains_nothing():
    _, target = make(9, 1)
    assert r2(target.mean().expand_as(target), target).item() == pytest.approx(0.0, abs=1e-12)


def test_zero_targets_are_left_out_of_mape():
    prediction, target = torch.tensor([[3.0], [3.0]]), torch.tensor([[0.0], [2.0]])
    assert mape(prediction, target).item() == 50.0
    assert mape(prediction, torch.zeros(2, 1)).isnan()


def test_metrics_keep_no_history_of_gradients():
    prediction, target = make(4, 1)
    assert not rmse(prediction.requires_grad_(), target).requires_grad


@pytest.mark.parametrize(
    ("prediction", "target", "rows", "words"),
    [
        ((4,), (4,), None, "one shape"),
        ((4, 1), (4, 2), None, "one shape"),
        ((4, 1), (1, 4, 1), None, "one shape"),
        ((0, 1), (0, 1), None, "not be empty"),
        ((4, 0), (4, 0), None, "not be empty"),
        ((4, 1), (4, 1), torch.ones(3, dtype=torch.bool), "`rows`"),
        ((4, 1), (4, 1), torch.ones(4), "bool mask"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(prediction, target, rows, words):
    with pytest.raises(ArgumentError, match=words):
        rmse(torch.zeros(prediction), torch.zeros(target), rows=rows)


def test_evaluate_gives_every_metric():
    prediction, target = make(30, 1)
    scores = evaluate(prediction, target)
    expected = reference(prediction.numpy(), target.numpy())
    assert {name: scores.value(name) for name in METRICS} == pytest.approx(expected)
    assert (scores.n, scores.n_zero, scores.groups, scores.targets) == (30, 0, {}, ())
    assert scores.by_target == (scores,)


# Several targets


def by_hand(prediction, target):
    """The mean over the targets of every metric; errors with a unit in standard deviations."""
    pairs = [(p[:, None], t[:, None]) for p, t in zip(prediction.T, target.T, strict=True)]
    each = [reference(p, t) for p, t in pairs]
    found = {name: np.mean([one[name] for one in each]) for name in each[0]}
    for name in (name for name in METRICS if METRICS[name].has_unit):
        errors = [one[name] / t.std() for one, (_, t) in zip(each, pairs, strict=True)]
        found[name] = np.mean(errors)
    return found


def test_several_targets_count_alike():
    prediction, target = (values * torch.tensor([1e6, 1.0, 1e-3]) for values in make(30, 3))
    scores = evaluate(prediction, target)
    expected = by_hand(prediction.numpy(), target.numpy())
    assert {name: scores.value(name) for name in METRICS} == pytest.approx(expected)
    found = {name: metric(prediction, target).item() for name, metric in METRICS.items()}
    assert found == pytest.approx(expected)


@given(st.integers(2, 9), st.sampled_from(sorted(METRICS)), st.floats(1e-6, 1e6))
def test_the_unit_of_a_target_does_not_matter(n, name, factor):
    prediction, target = make(n, 2)
    unit = torch.tensor([1.0, factor], dtype=torch.float64)
    expected = METRICS[name](prediction, target).item()
    assert METRICS[name](prediction * unit, target * unit).item() == pytest.approx(expected)


def test_every_target_has_scores_in_its_own_units():
    prediction, target = (values * torch.tensor([1000.0, 1.0]) for values in make(30, 2))
    scores = evaluate(prediction, target)
    assert scores.by_target == scores.targets
    for place, own in enumerate(scores.targets):
        assert own == evaluate(prediction[:, place], target[:, place])


def test_targets_that_are_one_quantity_count_together():
    prediction, target = make(30, 2)
    scores = evaluate(prediction, target, pooled=True)
    expected = reference(prediction.numpy(), target.numpy())
    assert {name: scores.value(name) for name in METRICS} == pytest.approx(expected)
    assert scores.targets == ()
    for metric in METRICS.values():
        assert metric(prediction, target, pooled=True) == metric.function(prediction, target)


def test_a_constant_target_has_a_spread_of_one_and_no_share_in_what_is_undefined():
    prediction, target = make(9, 2)
    target[:, 1] = 0.0
    one, both = evaluate(prediction[:, 0], target[:, 0]), evaluate(prediction, target)
    constant = prediction[:, 1].square().mean().sqrt().item()
    spread = target[:, 0].std(correction=0).item()
    assert both.rmse == pytest.approx((one.rmse / spread + constant) / 2)
    assert (both.r2, both.mape) == pytest.approx((one.r2, one.mape))
    assert both.targets[1].mape is None


def test_groups_are_divided_by_the_spread_of_all_rows():
    prediction, target = make(8, 2)
    target[:4] *= 0.01  # a group with hardly any spread of its own
    labels = np.repeat(["a", "b"], 4)
    scores, spread = evaluate(prediction, target, labels), target.std(dim=0, correction=0)
    errors = (prediction - target)[:4].square().mean(dim=0).sqrt() / spread
    assert scores.groups["a"].rmse == pytest.approx(errors.mean().item())
    assert scores.groups["a"].targets[0] == evaluate(prediction[:4, 0], target[:4, 0])


@pytest.mark.parametrize("name", METRICS)
def test_rows_that_do_not_count_have_no_share_in_the_spread(name):
    prediction, target = make(3, 6, 2)
    rows = torch.tensor([[True] * 6, [True] * 4 + [False] * 2, [False, True] * 3])
    padded = [v.masked_fill(~rows[..., None], INF) for v in (prediction, target)]
    alone = [METRICS[name](prediction[i, own], target[i, own]) for i, own in enumerate(rows)]
    torch.testing.assert_close(METRICS[name](*padded, rows=rows), torch.stack(alone))


def test_the_title_says_what_is_divided():
    assert [metric.title_for(2) for metric in METRICS.values()] == [
        *("RMSE / spread", "MAE / spread"),
        *("MAPE", "R2", "Pearson's R", "balanced RMSE / spread", "tail RMSE / spread"),
        *("tail RMSE (high) / spread", "tail RMSE (low) / spread"),
    ]
    assert METRICS["mae"].title_for(1) == "MAE"
    assert METRICS["mae"].explain(1) == ""
    assert "divided by its standard deviation" in METRICS["mae"].explain(3)
    assert METRICS["r2"].explain(3) == "R2: mean over the 3 targets."
    assert METRICS["tail-rmse-low"].explain(1).endswith("the rows with the lowest targets.")
    assert "counts alike" in METRICS["balanced-rmse"].explain(2)


def test_a_vector_is_one_target():
    prediction, target = make(30, 1)
    assert evaluate(prediction[:, 0], target[:, 0]) == evaluate(prediction, target)


def test_one_row_has_errors_and_no_correlation():
    scores = evaluate(torch.tensor([3.0]), torch.tensor([2.0]))
    rare = dict.fromkeys(RARE_METRICS, 1.0)
    assert scores == Scores(1, 1.0, 1.0, mape=50.0, n_zero=0, r2=None, pearson=None, rare=rare)


def test_zero_targets_are_counted():
    scores = evaluate(torch.ones(3, 2), torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 2.0]]))
    assert (scores.n_zero, scores.mape) == (2, pytest.approx((0.0 + 50.0 / 3) / 2))
    assert evaluate(torch.ones(3), torch.zeros(3)).mape is None


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2, 10, 2, 10, 10, 2]),
        np.array(["b", "a", "b", "a", "a", "b"]),
        np.array([2, "x", 2, "x", "x", 2], dtype=object),
    ],
)
def test_a_group_is_scored_as_its_rows_alone(labels):
    prediction, target = make(6, 1)
    scores = evaluate(prediction, target, labels)
    assert set(scores.groups) == {str(labels[0]), str(labels[1])}
    for label in labels[:2]:
        rows = torch.from_numpy(labels == label)
        assert scores.groups[str(label)] == evaluate(prediction[rows], target[rows])
    assert scores.rmse == evaluate(prediction, target).rmse


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 3), st.booleans())
def test_groups_of_any_sizes_are_scored_as_their_rows_alone(sizes, m, pooled):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    prediction, target = make(len(labels), m)
    scores = evaluate(prediction, target, labels, pooled=pooled)
    for number, size in enumerate(sizes):
        rows, own = torch.from_numpy(labels == number), scores.groups[str(number)]
        assert own.n == size
        by_target = () if pooled or m == 1 else range(m)
        assert len(own.targets) == len(by_target)
        for place in by_target:
            alone = evaluate(prediction[rows, place], target[rows, place])
            for name in METRICS:
                assert own.targets[place].value(name) == pytest.approx(alone.value(name))
        alone = evaluate(prediction[rows], target[rows], pooled=True)
        for name in METRICS if pooled or m == 1 else ():
            assert own.value(name) == pytest.approx(alone.value(name))


def test_groups_of_very_different_sizes_take_little_memory():
    sizes = np.array([5000, 1, 1, 700, 3, 64, 63])
    places = np.random.default_rng(0).permutation(np.repeat(np.arange(7), sizes))
    found = list(_alike(places, 7))
    assert sum(rows.size for _, rows, _ in found) < 2 * sizes.sum()
    for numbers, rows, counts in found:
        for number, own, is_counted in zip(numbers, rows, counts.numpy(), strict=True):
            assert np.array_equal(np.sort(own[is_counted]), np.flatnonzero(places == number))


def test_groups_of_numbers_are_in_their_order():
    prediction, target = make(3, 1)
    assert list(evaluate(prediction, target, np.array([10, 9, 2])).groups) == ["2", "9", "10"]


def test_worst_is_the_largest_error_and_the_smallest_correlation():
    target = torch.tensor([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    # Group a is far off but in line; group b is near but in the opposite order.
    prediction = torch.tensor([11.0, 12.0, 13.0, 3.0, 2.0, 1.0])
    scores = evaluate(prediction, target, np.array(list("aaabbb")))
    assert scores.worst("rmse") == ("a", 10.0)
    assert scores.worst("pearson") == ("b", pytest.approx(-1.0))
    assert scores.worst("r2") == ("a", pytest.approx(-149.0))


def test_worst_passes_over_groups_without_a_value():
    prediction, target = make(4, 1)
    scores = evaluate(prediction, target, np.array([0, 1, 1, 1]))
    assert scores.groups["0"].pearson is None
    assert scores.worst("pearson") == ("1", scores.groups["1"].pearson)


def test_worst_needs_groups_and_a_metric_that_exists():
    prediction, target = make(4, 1)
    with pytest.raises(ArgumentError, match="without groups"):
        evaluate(prediction, target).worst("rmse")
    with pytest.raises(ArgumentError, match="undefined for all 4 groups"):
        evaluate(prediction, target, np.arange(4)).worst("r2")
    with pytest.raises(UnknownNameError, match="Available"):
        evaluate(prediction, target, np.arange(4)).worst("n")


def test_scores_survive_json():
    prediction, target = make(5, 2)
    scores = evaluate(prediction, target, np.array([0, 1, 1, 1, 1]))
    text = json.dumps(scores.to_dict(), allow_nan=False)
    assert Scores.from_dict(json.loads(text)) == scores
    assert "targets" not in evaluate(*make(5, 1)).to_dict()  # as in files of earlier versions


def test_scores_from_other_keys_are_refused():
    values = evaluate(*make(5, 1)).to_dict()
    with pytest.raises(ArgumentError, match="keys"):
        Scores.from_dict({name: values[name] for name in values if name != "r2"})
    with pytest.raises(ArgumentError, match="keys"):
        Scores.from_dict(values | {"bias": 0.0})


@pytest.mark.parametrize("value", [NAN, INF])
def test_evaluate_refuses_what_is_not_finite(value):
    good, bad = torch.zeros(3), torch.tensor([0.0, value, 0.0])
    with pytest.raises(NonFiniteError, match=r"`prediction`.* 1 of 3 .*diverged"):
        evaluate(bad, good)
    with pytest.raises(NonFiniteError, match="`target`"):
        evaluate(good, bad)


def test_evaluate_refuses_shapes_that_differ():
    with pytest.raises(ArgumentError, match=r"\(3,\) and \(3, 1\)"):
        evaluate(torch.zeros(3), torch.zeros(3, 1))
    with pytest.raises(ArgumentError, match=r"\(n, m\) or \(n,\)"):
        evaluate(torch.zeros(3, 1, 1), torch.zeros(3, 1, 1))
    with pytest.raises(ArgumentError, match="empty"):
        evaluate(torch.zeros(0), torch.zeros(0))
    with pytest.raises(ArgumentError, match="`groups`"):
        evaluate(torch.zeros(3), torch.zeros(3), np.array(["a", "b"]))
    with pytest.raises(ArgumentTypeError, match="`prediction`"):
        evaluate(np.zeros((3, 1)), torch.zeros(3, 1))


# Along the target


@given(n=st.integers(1, 250), levels=st.sampled_from([None, 1, 3]), seed=st.integers(0, 99))
def test_tenths_are_those_of_the_definition(n, levels, seed):
    prediction, target = make(n, 1, seed=seed)
    target = target if levels is None else (levels * target).round()
    found = evaluate(prediction, target).tenths
    own = target.flatten().tolist()
    if len({*own}) == 1:
        assert [n for n, _, _ in found] == [len(own)] + [0] * 9
        return
    edges = sorted(own)[int(0.01 * (n - 1)) : n - int(0.01 * (n - 1))]
    if edges[0] == edges[-1]:
        return  # almost all of them are equal
    places = np.array([tenth_of(value, own) for value in own])
    for place, (count, at, error) in enumerate(found):
        here = torch.from_numpy(places == place)
        assert count == here.sum()
        if count:
            assert at == pytest.approx(target[here].mean().item(), rel=1e-5, abs=1e-9)
            assert error == pytest.approx(rmse(prediction[here], target[here]).item(), rel=1e-5)
        else:
            assert (at, error) == (None, None)


def test_a_single_wild_target_is_no_tenth_of_its_own():
    prediction, target = make(1000, 1)
    before = by_tenth(prediction, target)
    target[0] = 1e6
    after = by_tenth(prediction, target)
    assert (before.n - after.n).abs().max() <= 12
    assert after.n[-1] >= 10


@pytest.mark.parametrize("name", RARE_METRICS)
def test_constant_targets_are_one_tenth(name):
    prediction = make(30, 1)[0]
    target = torch.full_like(prediction, 0.1)
    torch.testing.assert_close(METRICS[name](prediction, target), rmse(prediction, target))


def test_common_targets_hide_rare_ones_from_rmse_alone():
    target = torch.cat([torch.rand(980, 1), 9 + torch.rand(20, 1)]).double()
    blind = target.clamp(max=1.0)
    plain, balanced, tail = (
        METRICS[name](blind, target).item() for name in ("rmse", "balanced-rmse", "tail-rmse-high")
    )
    assert plain < 1.3
    assert tail > 3.5
    assert balanced > 4.0


def test_a_focus_names_its_metric():
    assert [focused("tail-rmse", focus) for focus in ("both", "high", "low", None)] == [
        *("tail-rmse", "tail-rmse-high", "tail-rmse-low", "tail-rmse")
    ]
    assert focused("tail-rmse-low", "low") == "tail-rmse-low"
    with pytest.raises(ArgumentError, match="`focus` must be one of 'high', 'low', 'both', got"):
        focused("tail-rmse", "top")
    with pytest.raises(
        ArgumentError, match="`focus` must be None for the metric 'rmse'.*tail-rmse"
    ):
        focused("rmse", "high")


def test_scores_of_files_without_tenths_are_read():
    values = evaluate(*make(9, 1)).to_dict()
    assert len(values["tenths"]) == 10
    old = Scores.from_dict({k: v for k, v in values.items() if k not in ("rare", "tenths")})
    assert (old.tenths, old.value("balanced-rmse")) == ((), None)
    for name, wrong in (
        ("rare", {"balanced-rmse": "low"}),
        ("rare", {"best": 1.0}),
        ("tenths", [[1, 2.0]]),
        ("tenths", [[1, 2.0, "x"]]),
    ):
        with pytest.raises(ArgumentTypeError, match="`rare` and `tenths` must be"):
            Scores.from_dict(values | {name: wrong})


# A value that knows its metric

AGREEMENT = ("r2", "pearson")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_knows_its_direction_its_unit_and_a_title(name):
    metric = METRICS[name]
    is_agreement = name in AGREEMENT
    assert metric.higher_is_better == is_agreement
    assert metric.unit == ("points" if is_agreement else "percent")
    assert metric.sign == (-1.0 if is_agreement else 1.0)
    if name not in RARE_METRICS:
        assert metric.title == {"r2": "R2", "pearson": "Pearson's R"}.get(name, name.upper())
    assert bool(metric.meaning) == (name in RARE_METRICS)


@given(st.sampled_from(sorted(METRICS)), st.floats(-9, 9), st.floats(-9, 9))
def test_the_error_of_any_metric_is_lower_for_the_better_value(name, a, b):
    metric = METRICS[name]
    is_better = a > b if name in AGREEMENT else a < b
    assert (metric.error(a) < metric.error(b)) == is_better
    assert Score(name, a).is_better_than(Score(name, b)) == is_better
    assert metric.error(a) < metric.error(None) == metric.error(NAN) == metric.error(-INF) == INF


@pytest.mark.parametrize("name", AGREEMENT)
def test_agreement_is_better_when_it_is_higher_and_told_in_points(name):
    low, high = Score(name, 0.074), Score(name, 0.461)
    assert high.is_better_than(low)
    assert not low.is_better_than(high)
    assert high.against(low) == "better by 0.387"
    assert low.against(high) == "worse by 0.387"
    assert Score(name, -0.2).against(Score(name, 0.1)) == "worse by 0.3"
    assert "%" not in high.against(low) + str(high)


def test_errors_are_better_when_they_are_lower_and_told_in_per_cent():
    low, high = Score("mae", 1.5), Score("mae", 2.0)
    assert low.is_better_than(high)
    assert low.against(high) == "25 % better"
    assert high.against(low) == "33.3 % worse"
    assert str(low) == "MAE 1.5"
    assert str(Score("pearson", 0.123456)) == "Pearson's R 0.1235"


@pytest.mark.parametrize("value", [NAN, INF])
def test_a_value_that_is_none_is_never_better(value):
    for name in METRICS:
        assert not Score(name, value).is_better_than(Score(name, 0.5))
        assert Score(name, 0.5).is_better_than(Score(name, value))


@pytest.mark.parametrize(
    ("name", "value"),
    [("n", None), ("rmse", None), ("rmse", "low"), ("r2", [0.5]), ("n_zero", {}), ("mae", None)],
)
def test_scores_of_another_type_are_refused(name, value):
    values = evaluate(*make(9, 1)).to_dict()
    assert Scores.from_dict(values | {"mape": None, "r2": None, "pearson": None}).r2 is None
    with pytest.raises(ArgumentTypeError, match=f"`{name}` must be a number, got"):
        Scores.from_dict(values | {name: value})

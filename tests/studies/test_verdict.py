import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.metrics import METRICS
from regaug.studies.statistics import analyze
from regaug.studies.verdict import make_verdict

ERM = np.array([1.0, 1.2, 0.9, 1.1, 1.0, 1.3])
# Differs from split to split, and on average not at all.
NOISE = 0.01 * np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
BASELINES = ("mean", "last-value", "ridge", "boosting", "trees", "gp")
PLAIN = "No augmentation differs from plain training on this data: keep it plain."


def times(factor, noise=1.0):
    """Errors that are those of plain training times a factor, on geometric average."""
    return ERM * factor * np.exp(noise * NOISE)


def verdict_of(errors, **options):
    errors = {name.replace("_", "-"): values for name, values in {"erm": ERM, **errors}.items()}
    baselines = [name for name in errors if name in BASELINES]
    return make_verdict(analyze(errors, baselines=baselines, **{"test_share": 0.25, **options}))


def test_an_augmentation_that_helps_is_recommended():
    verdict = verdict_of({"c_mixup": times(0.949), "foma_rho": times(1.09), "ada": times(1.0)})
    assert verdict.text == (
        "c-mixup lowers RMSE by 5.1 % (1.3 to 8.8) against plain training; "
        "foma-rho makes it worse by 9.0 %; recommended: c-mixup."
    )
    assert (verdict.recommended, verdict.helps, verdict.hurts) == (
        "c-mixup",
        ("c-mixup",),
        ("foma-rho",),
    )
    assert str(verdict) == verdict.text


def test_of_several_that_help_the_best_is_recommended():
    verdict = verdict_of({"ada": times(0.9), "mixup": times(0.8), "foma": times(1.2)})
    assert verdict.helps == ("mixup", "ada")
    assert verdict.recommended == "mixup"
    assert verdict.text == (
        "mixup lowers RMSE by 20 % (17 to 23), ada by 10 % (6 to 13) against plain training; "
        "foma makes it worse by 20 %; recommended: mixup."
    )


def test_when_nothing_differs_training_is_kept_plain():
    verdict = verdict_of({"mixup": times(0.999), "foma": times(1.001)})
    assert verdict.text == PLAIN
    assert (verdict.recommended, verdict.helps, verdict.hurts) == ("erm", (), ())


def test_a_better_mean_alone_is_no_help():
    verdict = verdict_of({"mixup": times(0.95, noise=10.0)})
    assert verdict.text == PLAIN
    assert verdict.recommended == "erm"


def test_when_all_that_differs_is_worse_training_is_kept_plain():
    verdict = verdict_of({"mixup": times(1.05), "foma": times(1.123)})
    assert verdict.text == (
        "No augmentation helps on this data: mixup makes RMSE worse by 5.0 %, foma by 12 % "
        "against plain training; keep it plain."
    )
    assert (verdict.recommended, verdict.hurts) == ("erm", ("mixup", "foma"))


def test_a_baseline_that_beats_every_net_comes_first():
    verdict = verdict_of(
        {"mixup": times(0.9), "boosting": times(0.792, noise=2.0), "ridge": times(1.0)}
    )
    assert verdict.text == (
        "Gradient boosting beats every net by 12 % (8 to 15): use it. mixup lowers RMSE by "
        "10 % (6 to 13) against plain training; recommended net: mixup."
    )
    assert verdict.recommended == "mixup"


def test_a_baseline_with_a_better_mean_is_at_least_as_good():
    verdict = verdict_of({"mixup": times(1.0), "ridge": times(0.95, noise=10.0)})
    assert verdict.text == f"Ridge regression is at least as good as the best net. {PLAIN}"


def test_a_baseline_with_a_worse_mean_is_not_mentioned():
    verdict = verdict_of({"mixup": times(1.0), "ridge": times(1.01), "boosting": times(1.5)})
    assert verdict.text == PLAIN


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("last-value", "The last value beats"),
        ("ridge", "Ridge regression beats"),
        ("trees", "Extremely randomized trees beat"),
        ("gp", "A Gaussian process beats"),
    ],
)
def test_baselines_have_names_of_their_own(name, words):
    text = verdict_of({name: times(0.5)}).text
    assert text.startswith(f"{words} every net by 50 % (")
    assert ("use them." if name == "trees" else "use it.") in text


def test_the_mean_that_is_not_beaten_comes_first():
    verdict = verdict_of({"mixup": times(1.0), "mean": times(0.9), "ridge": times(1.0)})
    assert verdict.text == f"Nothing here predicts the target better than its mean. {PLAIN}"
    equal = verdict_of({"mixup": times(1.01), "mean": ERM, "ridge": ERM})
    assert equal.text.startswith("Nothing here predicts the target better than its mean.")


def test_the_mean_that_is_hardly_beaten_comes_first():
    # Gradient boosting beats the nets, but it is no better than the mean.
    boosting, mean = times(0.79), times(0.8, noise=10.0)
    verdict = verdict_of({"mixup": times(1.0), "mean": mean, "boosting": boosting})
    assert verdict.text == f"Nothing here predicts the target clearly better than its mean. {PLAIN}"


def test_the_mean_that_is_beaten_is_not_mentioned():
    assert verdict_of({"mixup": times(1.0), "mean": times(2.0)}).text == PLAIN


def test_a_single_split_allows_no_certainty():
    verdict = verdict_of({"erm": [1.0], "mixup": [0.75], "foma": [1.1], "mean": [2.0]})
    assert verdict.text == (
        "With a single split nothing can be said about how sure a difference is. On this one mixup "
        "is 25 % below plain training and has the lowest RMSE; until there are more, keep it plain."
    )
    assert (verdict.recommended, verdict.helps) == ("erm", ())
    best = verdict_of({"erm": [1.0], "mixup": [1.5], "ridge": [0.5]})
    assert best.text == (
        "Ridge regression is at least as good as the best net. With a single split nothing can be "
        "said about how sure a difference is. On this one plain training has the lowest RMSE; "
        "until there are more, keep it plain."
    )


def test_few_splits_are_mentioned():
    verdict = verdict_of({"erm": ERM[:3], "mixup": times(1.0)[:3]})
    assert verdict.text == f"{PLAIN} With 3 splits only large differences can be seen."


def test_a_metric_that_grows_is_raised_by_points():
    agreement = 0.5 + NOISE
    verdict = verdict_of(
        {
            "erm": agreement,
            "mixup": agreement + 0.03 + 0.1 * NOISE,
            "foma": agreement - 0.2 + 0.1 * NOISE,
            "boosting": agreement + 0.31 + 0.1 * NOISE,
        },
        metric="r2",
    )
    assert verdict.text == (
        "Gradient boosting beats every net by 0.28 (0.28 to 0.28) in R2: use it. "
        "mixup raises R2 by 0.030 (0.026 to 0.034) against plain training; "
        "foma makes it worse by 0.20; recommended net: mixup."
    )


def test_a_single_split_of_a_metric_that_grows():
    verdict = verdict_of({"erm": [0.5], "mixup": [0.53]}, metric="pearson")
    assert "On this one mixup is 0.030 above plain training and has the highest Pearson's R" in str(
        verdict
    )


def test_methods_that_failed_are_left_out():
    failed = np.where(ERM > 1.15, math.nan, 0.1)
    verdict = verdict_of({"mixup": times(0.9), "foma": failed, "ada": failed})
    assert verdict.recommended == "mixup"
    assert verdict.text == (
        "mixup lowers RMSE by 10 % (6 to 13) against plain training; recommended: mixup. "
        "Left out, without a finite RMSE on every split: ada, foma."
    )
    alone = verdict_of({"foma": failed})
    assert alone.text.startswith("No augmentation worked on every split: keep it plain. Left out")


def test_plain_training_that_failed_is_not_recommended():
    failed = np.where(ERM > 1.15, math.inf, ERM)
    verdict = verdict_of({"erm": failed, "mixup": times(1.0), "foma": times(0.5)})
    assert verdict.recommended == "foma"
    assert verdict.text == (
        "Plain training gave no finite RMSE on 2 of 6 splits, so nothing can be measured against "
        "it; recommended: foma."
    )


def test_a_baseline_is_all_that_is_left_when_every_net_failed():
    failed = np.full(6, math.nan)
    verdict = verdict_of({"erm": failed, "mixup": failed, "mean": ERM, "ridge": times(0.5)})
    assert verdict.text == (
        "Ridge regression is the best of what worked on every split: use it. Plain training gave "
        "no finite RMSE on 6 of 6 splits, so nothing can be measured against it; nor did any other "
        "net work on every split. Left out, without a finite RMSE on every split: mixup."
    )
    assert verdict.recommended == "erm"


def test_plain_training_alone_has_nothing_to_be_compared_with():
    assert verdict_of({}).text == "There is no augmentation to compare with plain training."


def test_another_reference_is_called_by_its_name():
    errors = {"mixup": ERM, "foma": times(1.0)}
    verdict = make_verdict(analyze(errors, reference="mixup", test_share=0.25))
    assert verdict.text == "No augmentation differs from mixup on this data: keep mixup."


@pytest.mark.parametrize(
    ("factor", "noise", "words"),
    [
        (1 - 3.4e-3, 0.01, "lowers RMSE by 0.34 % (0.30 to 0.38)"),
        (1 - 1e-5, 0.0, "lowers RMSE by less than 0.01 % against"),
        (0.88, 3.16, "lowers RMSE by 12.0 % (0.4 to 22.3)"),
    ],
)
def test_numbers_have_about_two_digits_and_no_end_is_rounded_to_zero(factor, noise, words):
    assert words in verdict_of({"mixup": times(factor, noise)}).text


def test_a_method_that_is_far_off_is_not_measured_exactly():
    assert "makes RMSE worse by more than 1,000 % against" in verdict_of({"ada": times(1e5)}).text


VALUES = st.none() | st.floats(0.0, 2.0) | st.sampled_from([1.0, math.nan, math.inf, 1e30])


@given(st.data(), st.integers(1, 6), st.sampled_from(sorted(METRICS)))
def test_whatever_came_there_is_a_verdict_in_plain_words(data, splits, metric):
    column = st.lists(VALUES, min_size=splits, max_size=splits)
    names = ["erm", "mixup", "foma", "mean", "ridge"][: data.draw(st.integers(1, 5))]
    comparison = analyze(
        {name: data.draw(column) for name in names},
        metric=metric,
        baselines=[name for name in names if name in BASELINES],
        test_share=0.25,
    )
    verdict = make_verdict(comparison)
    assert verdict.text.endswith(".")
    assert not {"nan", "inf", "None"} & set(verdict.text.replace("(", " ").split())
    assert not comparison.row(verdict.recommended).is_baseline
    if verdict.recommended != "erm":
        assert comparison.row(verdict.recommended).n_failed == 0
    significant = {row.name for row in comparison.rows if row.is_significant}
    assert {*verdict.helps, *verdict.hurts} == significant

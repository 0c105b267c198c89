import math
import re

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
BASELINES = ("mean", "last-value", "ridge", "boosting", "trees")
NONE = "No augmentation differs from plain training on this data."
KEEP = "Keep it plain."


def unseen(size, splits=6):
    return f"A change of less than about {size} could not have been seen with {splits} splits."


def times(factor, noise=1.0):
    """Errors that are those of plain training times a factor, on geometric average."""
    return ERM * factor * np.exp(noise * NOISE)


def verdict_of(errors, **options):
    errors = {name.replace("_", "-"): values for name, values in {"erm": ERM, **errors}.items()}
    baselines = [name for name in errors if name in BASELINES]
    combined = [name for name in errors if name in ("nets", "auto")]
    options = {"test_share": 0.25, "baselines": baselines, "combined": combined, **options}
    return make_verdict(analyze(errors, **options))


def test_an_augmentation_that_helps_is_recommended():
    verdict = verdict_of({"c_mixup": times(0.949), "foma_rho": times(1.09), "ada": times(1.0)})
    assert verdict.text == (
        "c-mixup lowers RMSE by 5.1 % (1.3 to 8.8, p = 0.037) against plain training; "
        "foma-rho makes it worse by 9.0 %. Use c-mixup."
    )
    assert (verdict.recommended, verdict.helps, verdict.hurts) == (
        "c-mixup",
        ("c-mixup",),
        ("foma-rho",),
    )
    assert (verdict.use, verdict.winner) == ("c-mixup", None)
    assert str(verdict) == verdict.text


def test_of_several_that_help_the_best_is_recommended():
    verdict = verdict_of({"ada": times(0.9), "mixup": times(0.8), "foma": times(1.2)})
    assert verdict.helps == ("mixup", "ada")
    assert verdict.recommended == verdict.use == "mixup"
    assert verdict.text == (
        "mixup lowers RMSE by 20 % (17 to 23, p < 0.001), ada by 10 % (6 to 13, p < 0.001) "
        "against plain training; foma makes it worse by 20 %. Use mixup."
    )


def test_those_that_help_alike_cannot_be_told_apart():
    verdict = verdict_of({"ada": times(0.79, noise=-1.0), "mixup": times(0.8)})
    assert verdict.text.startswith("ada and mixup cannot be told apart. ada lowers RMSE by 21 % (")
    assert verdict.text.endswith("Use ada.")


def test_when_nothing_differs_training_is_kept_plain():
    verdict = verdict_of({"mixup": times(0.999), "foma": times(1.001)})
    assert verdict.text == f"{NONE} {unseen('6.6 %')} {KEEP}"
    assert (verdict.recommended, verdict.helps, verdict.hurts) == ("erm", (), ())
    assert verdict.use == "erm"


def test_what_could_have_been_seen_is_what_the_statistics_say():
    errors = {"erm": ERM, "mixup": times(0.999)}
    smallest = analyze(errors, test_share=0.25).smallest_change
    assert f"less than about {smallest:.1f} %" in verdict_of({"mixup": times(0.999)}).text
    points = verdict_of({"mixup": ERM + NOISE}, metric="r2").text
    assert f"{NONE} A change of less than about 0.058 could" in points
    assert "%" not in points


def test_a_better_mean_alone_is_no_help():
    verdict = verdict_of({"mixup": times(0.95, noise=10.0)})
    assert verdict.text.startswith(NONE)
    assert verdict.text.endswith(KEEP)
    assert verdict.recommended == verdict.use == "erm"


def test_when_all_that_differs_is_worse_training_is_kept_plain():
    verdict = verdict_of({"mixup": times(1.05), "foma": times(1.123)})
    assert verdict.text == (
        "No augmentation helps on this data: mixup makes RMSE worse by 5.0 %, foma by 12 % "
        f"against plain training. {KEEP}"
    )
    assert (verdict.recommended, verdict.hurts) == ("erm", ("mixup", "foma"))


# Baselines


def test_a_baseline_that_beats_every_net_comes_first():
    verdict = verdict_of(
        {"mixup": times(0.9), "boosting": times(0.792, noise=2.0), "ridge": times(1.0)}
    )
    assert verdict.text == (
        "Gradient boosting beats every net by 12 % (8 to 15, p < 0.001). mixup lowers RMSE by "
        "10 % (6 to 13, p < 0.001) against plain training. Use boosting; of the nets, use mixup."
    )
    assert (verdict.recommended, verdict.use, verdict.winner) == ("mixup", "boosting", "boosting")


def test_a_baseline_with_a_better_mean_alone_cannot_be_told_from_the_nets():
    verdict = verdict_of({"mixup": times(1.0), "ridge": times(0.95, noise=10.0)})
    assert verdict.text == (
        f"ridge, mixup and erm cannot be told apart. {NONE} {unseen('5.6 %')} "
        "Use ridge; of the nets, keep it plain."
    )
    assert (verdict.use, verdict.winner) == ("ridge", None)


def test_a_baseline_with_a_worse_mean_may_be_as_good_as_the_nets():
    errors = {"mixup": times(1.0), "ridge": times(1.01, noise=-1.0), "boosting": times(1.5)}
    verdict = verdict_of(errors)
    assert verdict.text.startswith("mixup, erm and ridge cannot be told apart.")
    assert verdict.text.endswith(KEEP)
    clear = verdict_of({"mixup": times(1.0), "ridge": times(1.2), "boosting": times(1.5)})
    assert clear.text == f"{NONE} {unseen('5.6 %')} {KEEP}"


def test_a_long_list_of_those_that_cannot_be_told_apart_names_plain_training():
    names = ("mixup", "ada", "foma", "cems")
    others = {name: times(0.99, noise=4.0 + number) for number, name in enumerate(names)}
    verdict = verdict_of({**others, "ridge": times(0.98, noise=4.0)})
    assert re.match(r"ridge, \w+, erm and 2 others cannot be told apart\.", verdict.text)


@pytest.mark.parametrize(
    ("name", "words"),
    [("last_value", "The last value"), ("ridge", "Ridge regression")],
)
def test_baselines_have_names_of_their_own(name, words):
    assert verdict_of({name: times(0.5)}).text.startswith(f"{words} beats every net by 50 % (")


def test_a_baseline_must_beat_every_net():
    # The net with the best mean is beaten for sure, another one that varies much is not.
    wild = times(1.2, noise=20.0)
    verdict = verdict_of({"mixup": wild, "ridge": times(0.9)})
    assert verdict.winner is None
    assert verdict_of({"mixup": times(1.2), "ridge": times(0.9)}).winner == "ridge"


INPUTS = "Look for inputs that say more about the target, or for more rows."


def test_the_mean_that_is_not_beaten_comes_first():
    verdict = verdict_of({"mixup": times(1.0), "mean": times(0.9), "ridge": times(1.0)})
    mean = "Nothing here predicts the target better than its mean."
    assert verdict.text == f"{mean} {NONE} {unseen('5.6 %')} {INPUTS}"
    equal = verdict_of({"mixup": times(1.01), "mean": ERM, "ridge": ERM})
    assert equal.text.startswith(mean)


def test_the_mean_that_is_hardly_beaten_comes_first():
    # Gradient boosting beats the nets, but it is no better than the mean.
    boosting, mean = times(0.79), times(0.8, noise=10.0)
    verdict = verdict_of({"mixup": times(1.0), "mean": mean, "boosting": boosting})
    assert verdict.text == (
        "Nothing here predicts the target clearly better than its mean. "
        f"{NONE} {unseen('5.6 %')} {INPUTS}"
    )


def test_the_mean_that_is_beaten_is_not_mentioned():
    text = verdict_of({"mixup": times(1.0), "mean": times(2.0)}).text
    assert text == f"{NONE} {unseen('5.6 %')} {KEEP}"


# What is made of several rows


def test_the_blend_is_to_be_used_if_it_is_ahead_of_every_single_row():
    verdict = verdict_of({"mixup": times(1.0), "ridge": times(0.9), "auto": times(0.8)})
    assert verdict.text.startswith("Ridge regression beats every net by 10 % (")
    assert verdict.text.endswith(
        "Use auto (the blend of nets and baselines): it is 11 % (11 to 11, p < 0.001) ahead of "
        "ridge, the best single row."
    )
    assert (verdict.use, verdict.recommended, verdict.winner) == ("auto", "erm", "ridge")


def test_a_lead_of_the_blend_that_may_be_chance_is_called_so():
    verdict = verdict_of({"mixup": times(1.1), "auto": times(0.99, noise=5.0)})
    assert verdict.text.endswith(
        "Use auto (the blend of nets and baselines): it is 1.0 % ahead of erm, the best single "
        "row, which may be chance."
    )
    equal = verdict_of({"mixup": times(1.1), "ridge": times(0.9), "auto": times(0.9)})
    assert equal.text.endswith("it is level with ridge, the best single row.")


def test_the_best_single_row_is_to_be_used_if_the_blend_is_behind_it():
    verdict = verdict_of({"mixup": times(1.1), "ridge": times(0.9), "auto": times(0.91)})
    assert verdict.text.endswith(
        "Use ridge: auto (the blend of nets and baselines) is 1.1 % behind."
    )
    assert verdict.use == "ridge"
    plain = verdict_of({"mixup": times(1.1), "auto": times(1.05)})
    assert plain.text.endswith(
        "Keep it plain: auto (the blend of nets and baselines) is 5.0 % behind."
    )


def test_an_augmentation_that_may_be_no_better_than_plain_training_is_not_preferred_to_the_blend():
    verdict = verdict_of({"mixup": times(0.96, noise=4.0), "auto": times(0.98)})
    assert verdict.helps == ()
    assert verdict.use == "auto"
    assert "; mixup is 2.1 % ahead of it, but may be no better than the rest." in verdict.text


def test_the_ensemble_of_all_nets_is_a_net_that_a_baseline_must_beat():
    errors = {"mixup": times(1.1), "ridge": times(0.9), "auto": times(0.85)}
    assert verdict_of(errors).winner == "ridge"
    verdict = verdict_of({**errors, "nets": times(0.9, noise=-1.0)})
    assert verdict.winner is None
    assert verdict.use == "auto"
    without = verdict_of({"mixup": times(1.1), "nets": times(0.9)})
    assert "Use nets (the ensemble of all nets): it is 10 % (" in without.text


@pytest.mark.parametrize("seed", range(40))
def test_the_sentences_and_the_tiers_of_the_table_agree(seed):
    """No net stands in the tier of a baseline that beats every net, and no tie is left out."""
    rng = np.random.default_rng(seed)
    names = ["erm", "mixup", "ada", "nets", "auto", "ridge", "trees"]
    level = dict(zip(names, np.exp(0.04 * rng.standard_normal(len(names))), strict=True))
    errors = {
        name: ERM * level[name] * np.exp(0.03 * rng.standard_normal(len(ERM))) for name in names
    }
    found = analyze(
        errors, test_share=0.25, baselines=["ridge", "trees"], combined=["nets", "auto"]
    )
    verdict = make_verdict(found)
    nets = [found.row(name) for name in ("erm", "mixup", "ada", "nets")]
    if verdict.winner is not None:
        assert found.row(verdict.winner).tier not in [row.tier for row in nets]
    tied = re.match(r"(.*?) cannot be told apart\.", verdict.text)
    first = {row.name for row in found.rows if row.tier == 1 and not row.is_combined}
    if verdict.helps:  # which differ from plain training, by a test of its own
        first -= {"erm"}
    if tied is not None and "others" not in tied[1]:
        assert set(re.findall(r"[a-z]+(?=,| and|$)", tied[1])) == first


def test_what_is_combined_does_not_stand_among_those_that_cannot_be_told_apart():
    verdict = verdict_of({"mixup": times(1.0), "ridge": times(1.0), "auto": times(1.0)})
    assert verdict.text.startswith("mixup, ridge and erm cannot be told apart.")


def test_a_likely_leak_is_said_first():
    errors = {"erm": [1.0, 1.2, 0.9], "mixup": [0.9, 1.1, 0.8]}
    comparison = analyze(errors, test_share=0.25)
    plain, leaky = make_verdict(comparison), make_verdict(comparison, leaks=["Likely leak: 'a'."])
    assert leaky.text == f"Likely leak: 'a'. {plain.text}"
    assert leaky.use == plain.use


# Few splits, and failures


def test_a_single_split_allows_no_certainty():
    verdict = verdict_of({"erm": [1.0], "mixup": [0.75], "foma": [1.1], "mean": [2.0]})
    single = "With a single split nothing can be said about how sure a difference is."
    assert verdict.text == (
        f"{single} On this one mixup has the lowest RMSE, 25 % below plain training. "
        "Run it with more splits; until then, keep it plain."
    )
    assert (verdict.recommended, verdict.use, verdict.helps) == ("erm", "erm", ())
    best = verdict_of({"erm": [1.0], "mixup": [1.5], "ridge": [0.5]})
    assert best.text == (
        f"{single} On this one ridge has the lowest RMSE, 50 % below plain training. "
        "Run it with more splits; until then, use ridge."
    )
    plain = verdict_of({"erm": [1.0], "mixup": [1.5]})
    assert "On this one plain training has the lowest RMSE. Run" in plain.text


def test_few_splits_are_mentioned():
    verdict = verdict_of({"erm": ERM[:2], "mixup": times(1.0)[:2]})
    assert verdict.text == f"{NONE} With 2 splits only large differences can be seen. {KEEP}"


def test_a_metric_that_grows_is_raised_by_points():
    agreement = 0.5 + NOISE
    verdict = verdict_of(
        {
            "erm": agreement,
            "mixup": agreement + 0.03 + 0.1 * NOISE,
            "foma": agreement - 0.2 + 0.1 * NOISE,
            "boosting": agreement + 0.31 + 0.1 * NOISE,
            "auto": agreement + 0.41,
        },
        metric="r2",
    )
    assert verdict.text == (
        "Gradient boosting beats every net by 0.28 (0.28 to 0.28, p < 0.001) in R2. "
        "mixup raises R2 by 0.030 (0.026 to 0.034, p < 0.001) against plain training; "
        "foma makes it worse by 0.20. Use auto (the blend of nets and baselines): it is "
        "0.10 (0.10 to 0.10, p < 0.001) ahead of boosting, the best single row."
    )


def test_a_single_split_of_a_metric_that_grows():
    verdict = verdict_of({"erm": [0.5], "mixup": [0.53]}, metric="pearson")
    assert "mixup has the highest Pearson's R, 0.030 above plain training." in verdict.text


def test_methods_that_failed_are_left_out():
    failed = np.where(ERM > 1.15, math.nan, 0.1)
    verdict = verdict_of({"mixup": times(0.9), "foma": failed, "ada": failed})
    assert verdict.recommended == "mixup"
    assert verdict.text == (
        "mixup lowers RMSE by 10 % (6 to 13, p = 0.003) against plain training. "
        "Left out, without a finite RMSE on every split: ada, foma. Use mixup."
    )
    alone = verdict_of({"foma": failed})
    assert alone.text == (
        "No augmentation worked on every split. Left out, without a finite RMSE on every split: "
        "foma. Keep it plain."
    )


def test_plain_training_that_failed_is_not_recommended():
    failed = np.where(ERM > 1.15, math.inf, ERM)
    verdict = verdict_of({"erm": failed, "mixup": times(1.0), "foma": times(0.5)})
    assert verdict.recommended == "foma"
    assert verdict.text == (
        "Plain training gave no finite RMSE on 2 of 6 splits, so nothing can be measured against "
        "it. Use foma."
    )


def test_a_baseline_is_all_that_is_left_when_every_net_failed():
    failed = np.full(6, math.nan)
    verdict = verdict_of({"erm": failed, "mixup": failed, "mean": ERM, "ridge": times(0.5)})
    assert verdict.text == (
        "Ridge regression is the best of what worked on every split. Plain training gave "
        "no finite RMSE on 6 of 6 splits, so nothing can be measured against it; nor did any other "
        "net work on every split. Left out, without a finite RMSE on every split: mixup. Use ridge."
    )
    assert (verdict.recommended, verdict.use) == ("erm", "ridge")


def test_when_nothing_worked_the_data_are_to_be_looked_at():
    failed = np.full(6, math.nan)
    verdict = verdict_of({"erm": failed, "mixup": failed})
    assert verdict.text.endswith(
        "Nothing worked on every split: look for wrong values in the data."
    )


def test_plain_training_alone_has_nothing_to_be_compared_with():
    expected = f"There is no augmentation to compare with plain training. {KEEP}"
    assert verdict_of({}).text == expected


def test_another_reference_is_called_by_its_name():
    errors = {"mixup": ERM, "foma": times(1.0)}
    verdict = make_verdict(analyze(errors, reference="mixup", test_share=0.25))
    assert verdict.text.startswith("No augmentation differs from mixup on this data.")
    assert verdict.text.endswith("Keep mixup.")


@pytest.mark.parametrize(
    ("factor", "noise", "words"),
    [
        (1 - 3.4e-3, 0.01, "lowers RMSE by 0.34 % (0.30 to 0.38, p < 0.001)"),
        (1 - 1e-5, 0.0, "lowers RMSE by less than 0.01 % against"),
        (0.88, 3.16, "lowers RMSE by 12.0 % (0.4 to 22.3, p = 0.046)"),
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
    names = ["erm", "mixup", "foma", "mean", "ridge", "auto", "nets"]
    names = names[: data.draw(st.integers(1, 7))]
    comparison = analyze(
        {name: data.draw(column) for name in names},
        metric=metric,
        baselines=[name for name in names if name in BASELINES],
        combined=[name for name in names if name in ("auto", "nets")],
        test_share=0.25,
    )
    verdict = make_verdict(comparison)
    assert verdict.text.endswith(".")
    assert not {"nan", "inf", "None"} & set(verdict.text.replace("(", " ").split())
    assert verdict.text.count(". ") <= 6
    assert comparison.row(verdict.recommended).is_net
    if verdict.recommended != "erm":
        assert comparison.row(verdict.recommended).n_failed == 0
    if any(row.mean is not None for row in comparison.rows):
        assert comparison.row(verdict.use).mean is not None
    significant = {row.name for row in comparison.rows if row.is_significant}
    assert {*verdict.helps, *verdict.hurts} == significant


# A regressor, which is given new rows


def verdict_of_rows(errors):
    named = {"no-rows": ERM, **errors}
    baselines = [name for name in named if name in BASELINES]
    found = analyze(named, test_share=0.25, baselines=baselines, reference="no-rows")
    return make_verdict(found)


def test_rows_that_make_no_difference_are_not_to_be_added():
    verdict = verdict_of_rows({"mixup": times(1.0), "cems": times(1.0, -1.0)})
    assert verdict.text.startswith("No new rows make a difference on this data. A change of less")
    assert verdict.text.endswith("Add no rows.")
    assert verdict.recommended == verdict.use == "no-rows"


def test_rows_that_help_are_to_be_added():
    verdict = verdict_of_rows({"mixup": times(0.9), "cems": times(1.1)})
    assert verdict.text.startswith("mixup lowers RMSE by 10 % (")
    assert "against no new rows; cems makes it worse by 10 %" in verdict.text
    assert verdict.text.endswith("Add rows of mixup.")
    for name, words in (("rows", "the rows from elsewhere"), ("repeats", "training rows once mor")):
        assert f"Add {words}" in verdict_of_rows({name: times(0.9)}).text


def test_new_rows_have_to_help_more_than_old_ones_once_more():
    words = "mixup cannot be told from training rows once more: it may be the number of rows"
    assert words in verdict_of_rows({"mixup": times(0.9), "repeats": times(0.9, -1.0)}).text
    for errors in (
        {"mixup": times(0.8), "repeats": times(1.0)},
        {"mixup": times(0.8)},
        {"mixup": times(1.0), "repeats": times(0.9)},
    ):
        assert "cannot be told from training rows" not in verdict_of_rows(errors).text


def test_what_learned_from_teachers_is_compared_with_the_best_of_them():
    def text(**errors):
        return verdict_of(errors).text

    tied = text(teacher_rows=times(1.0), boosting=times(1.0, -1.0))
    assert "The teacher of teacher-rows, boosting, stands beside: the nets cannot be told" in tied
    worse = text(teacher_rows=times(1.0), boosting=times(0.8), trees=times(0.9))
    assert "Of the teachers of teacher-rows (boosting and trees) boosting is the best" in worse
    assert "boosting is the best: the nets are worse than it by 25 % (" in worse
    better = text(teacher_rows=times(0.8), boosting=times(1.0))
    assert "the nets are better than it by 20 % (" in better
    for others in ({"boosting": times(0.8)}, {"teacher_rows": times(1.0), "ridge": times(0.8)}):
        assert "teacher" not in text(**others).replace("teacher-rows", "")
    assert "teacher of" not in verdict_of_rows({"teacher-rows": times(1.0), "boosting": ERM}).text


def test_where_more_is_better_a_teacher_may_still_be_worse():
    errors = {"teacher_rows": 0.5 + 0.1 * times(1.0), "boosting": 0.3 + 0.1 * times(1.0)}
    assert "the nets are better than it by 0.2" in verdict_of(errors, metric="r2").text


def test_rows_that_hurt_are_named():
    verdict = verdict_of_rows({"mixup": times(1.1)})
    assert "mixup makes RMSE worse by 10 % against no new rows. Add no rows." in verdict.text


def test_a_baseline_may_be_better_than_the_regressor():
    verdict = verdict_of_rows({"mixup": times(1.0), "ridge": times(0.5)})
    assert verdict.text.startswith("Ridge regression beats the regressor with any rows by 50 % (")
    assert verdict.text.endswith("Use ridge; with the regressor, add no rows.")
    assert "net" not in verdict.text


def test_nothing_is_said_of_nets_where_all_rows_failed():
    failed = np.full(6, math.nan)
    verdict = verdict_of_rows({"no-rows": failed, "mixup": failed, "ridge": ERM})
    assert "No new rows gave no finite RMSE on 6 of 6 splits" in verdict.text
    assert "nor did anything else work" in verdict.text


SEEDS = (
    "All 6 repetitions have the same split and other seeds: the intervals say how much seeds vary, "
    "not how other test rows would turn out."
)


def test_repetitions_of_one_split_are_said_to_be_such():
    helps = verdict_of({"mixup": times(0.9)}, repeated=True)
    assert helps.text.endswith(f"against plain training. {SEEDS} Use mixup.")
    assert helps.helps == ("mixup",)
    none = verdict_of({"mixup": times(1.0)}, repeated=True)
    assert "could not have been seen with 6 repetitions." in none.text
    assert SEEDS in none.text
    assert "split " not in none.text.replace(SEEDS, "")
    assert "seeds" not in verdict_of({"mixup": times(0.9)}).text


def test_what_fails_in_a_repetition_is_said_so():
    failed = verdict_of({"mixup": [*ERM[:5], math.nan], "ada": times(1.0)}, repeated=True)
    assert "without a finite RMSE on every repetition: mixup." in failed.text

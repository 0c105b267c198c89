"""What should make a reader of a study careful."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.checks import TITLES, anchor, find_checks
from regaug.studies.facts import Facts
from regaug.studies.statistics import analyze
from regaug.studies.verdict import make_verdict
from regaug.training.settings import Settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checks.md"
# Differ from split to split, and on average not at all.
NOISE = 0.01 * np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
FACTS = Facts(
    summary="", rows={"train": 60, "validation": 20, "test": 20}, columns=3, targets=1, n_used=60
)


def checks_of(errors, *, baselines=(), **found):
    """The checks of made-up errors, by their codes."""
    comparison = analyze(errors, baselines=baselines, test_share=0.25)
    checks = find_checks(comparison, make_verdict(comparison), **found)
    return {check.code: check for check in checks}


def good(**more):
    """Errors without anything to be careful about."""
    return {"erm": np.ones(6), "mixup": 0.8 * np.exp(NOISE), **more}


def make_run(method="erm", split=0, trial=0, **settings):
    own = settings.pop("method_settings", {})
    return Run("houses", method, split, 0, Settings(method_settings=own, **settings), trial)


def make_record(run, validation=1.0, test=1.0, *, rows=100, ending="finished"):
    scores = {
        part: Scores(9, value, 1.0, None, 0, 0.5, None)
        for part, value in (("validation", validation), ("test", test))
    }
    return RunRecord(run, scores, ending, 1, 1, 0.5, (300, rows, 100), {})


def make_records(errors, **options):
    """Records of plain training: for every split pairs of validation and test errors."""
    return [
        make_record(make_run(split=split, trial=trial), *pair, **options)
        for split, pairs in enumerate(errors)
        for trial, pair in enumerate(pairs)
    ]


def test_a_study_without_a_flaw_has_no_checks():
    records = make_records([[(e, e + 0.1) for e in (1.0, 1.1, 1.2, 1.3, 1.4)]] * 6)
    middle = [make_run(learning_rate=2e-3, weight_decay=1e-3)] * 6
    errors = good(mean=2 * np.ones(6))
    found = checks_of(
        errors, baselines=["mean"], records=records, chosen={"erm": middle}, facts=FACTS
    )
    assert found == {}


# R1


@pytest.mark.parametrize(
    ("rate", "end"), [(0.0198, "upper end of its space (0.020)"), (3e-4, "lower end")]
)
def test_a_setting_at_an_end_of_its_space_is_found(rate, end):
    runs = [make_run(learning_rate=rate, weight_decay=1e-3)] * 4
    runs += [make_run(learning_rate=2e-3, weight_decay=1e-3)] * 2
    check = checks_of(good(), chosen={"erm": runs})["R1"]
    assert f"learning_rate of erm at the {end}" in check.text
    assert "in 4 of 6 chosen runs" in check.text


def test_a_setting_at_the_edge_of_a_few_runs_is_none():
    runs = [make_run(learning_rate=0.01, weight_decay=1e-3)] * 2
    runs += [make_run(learning_rate=2e-3, weight_decay=1e-3)] * 4
    assert "R1" not in checks_of(good(), chosen={"erm": runs})


@pytest.mark.parametrize(("alpha", "is_found"), [(2.0, True), (1.9, True), (1.7, False)])
def test_a_methods_own_settings_are_looked_at_on_their_scale(alpha, is_found):
    # The space of alpha is logarithmic, from 0.02 to 2: two per cent of it begin at 1.82.
    settings = {"weight_decay": 1e-3, "method_settings": {"alpha": alpha, "p": 0.5}}
    runs = [make_run("mixup", **settings)] * 6
    assert ("R1" in checks_of(good(), chosen={"mixup": runs})) == is_found


def test_ends_beyond_which_nothing_changes_are_no_edges():
    settings = {"weight_decay": 0.0, "method_settings": {"alpha": 1.0, "p": 1.0}}
    runs = [make_run("mixup", **settings)] * 6
    assert "R1" not in checks_of(good(), chosen={"mixup": runs})


def test_methods_that_nothing_rests_on_are_not_looked_at():
    runs = {name: [make_run(name, learning_rate=0.01)] * 6 for name in ("ada", "unknown")}
    errors = good(ada=1.2 * np.exp(NOISE), unknown=1.2 * np.exp(NOISE))
    assert "R1" not in checks_of(errors, chosen=runs)
    alone = {"erm": np.ones(6), "unknown": 0.8 * np.exp(NOISE)}  # no such method is registered
    assert "R1" not in checks_of(alone, chosen=runs)


# R2


def test_one_split_that_decides_is_named():
    # On the last split alone it is otherwise.
    spread = np.array([0.02, -0.02, 0.02, -0.02, 0.02])
    ratios = np.array([-0.06, -0.07, -0.065, -0.06, -0.07, 0.05])
    fewer = checks_of({"erm": np.ones(6), "mixup": np.exp(ratios)})
    assert "R2" in fewer
    assert fewer["R2"].text == "Without split 6 of 6, mixup would help."
    clear = checks_of({"erm": np.ones(5), "mixup": np.exp(spread - 0.2)})
    assert "R2" not in clear


def test_a_difference_that_every_split_is_needed_for_says_so():
    errors = {"erm": np.ones(6), "mixup": np.exp(2.3 * NOISE - 0.1)}
    assert checks_of(errors)["R2"].text == (
        "Without any one of the splits 1, 2, 4 and 6 of 6, mixup would no longer differ from plain "
        "training."
    )


def test_a_baseline_that_beats_the_nets_by_one_split_is_named():
    ratios = np.array([-0.06, -0.07, -0.065, -0.06, -0.07, 0.05])
    found = checks_of({"erm": np.ones(6), "ridge": np.exp(ratios)}, baselines=["ridge"])
    assert found["R2"].text == "Without split 6 of 6, ridge would beat every net."
    sure = checks_of({"erm": np.ones(6), "ridge": np.exp(NOISE - 0.5)}, baselines=["ridge"])
    assert "R2" not in sure


# R3


def test_validation_errors_that_say_nothing_of_test_errors_are_found():
    upside_down = [(e, 3.0 - e) for e in (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)]
    check = checks_of(good(), records=make_records([upside_down] * 6))["R3"]
    assert "of erm the rank correlation is \N{MINUS SIGN}1.0" in check.text
    assert "of 6 of 6 splits" in check.text


def test_a_choice_that_is_mostly_worse_than_the_median_is_found():
    # The order is right but for the one that is chosen.
    pairs = [(0.9, 9.0), *((e, e) for e in np.linspace(1.0, 2.0, 12))]
    check = checks_of(good(), records=make_records([pairs] * 6))["R3"]
    assert "worse than the median" in check.text


def test_few_runs_or_equal_errors_say_nothing_of_the_agreement():
    assert "R3" not in checks_of(good(), records=make_records([[(1.0, 2.0), (2.0, 1.0)]] * 6))
    assert "R3" not in checks_of(good(), records=make_records([[(1.0, 2.0)] * 9] * 6))
    failed = [(float("nan"), 1.0)] * 9
    assert "R3" not in checks_of(good(), records=make_records([failed] * 6))


# The others


@pytest.mark.parametrize(("rows", "is_found"), [(39, True), (40, False)])
def test_few_validation_rows_are_found(rows, is_found):
    found = checks_of(good(), records=make_records([[(1.0, 1.0)]], rows=rows))
    assert ("R4" in found) == is_found
    if is_found:
        assert found["R4"].text.startswith("Only 39 validation rows of a split choose")


@pytest.mark.parametrize(("splits", "is_found"), [(1, True), (4, True), (5, False)])
def test_few_splits_are_found(splits, is_found):
    found = checks_of({name: errors[:splits] for name, errors in good().items()})
    assert ("R5" in found) == is_found


def test_runs_that_diverged_are_counted_by_method():
    records = make_records([[(1.0, 1.0)] * 30])
    bad = make_record(make_run("ada"), ending="diverged")
    found = checks_of(good(), records=[*records, bad, make_record(make_run("ada"))])
    assert found["R6"].text == "Runs diverged: 1 of 2 runs of ada."
    few = [replace(records[0], ending="diverged"), *records[1:]]
    assert "R6" not in checks_of(good(), records=few)  # 1 of 30 settings of a wide space


def test_a_mean_that_is_not_beaten_is_found():
    errors = {"erm": np.exp(3 * NOISE), "mixup": np.exp(-3 * NOISE), "mean": np.ones(6)}
    assert "R7" in checks_of(errors, baselines=["mean"])
    assert "R7" not in checks_of({**errors, "mean": 2 * np.ones(6)}, baselines=["mean"])
    single = {name: values[:1] for name, values in errors.items()}
    assert "R7" not in checks_of(single, baselines=["mean"])


def test_test_rows_that_were_trained_on_are_found():
    found = checks_of(good(), facts=replace(FACTS, shared_rows=3))
    assert found["R8"].text.startswith("3 of 20 test rows of the first split also stand among")
    assert "R8" not in checks_of(good(), facts=FACTS)


def test_inputs_that_give_the_target_away_are_found():
    found = checks_of(good(), facts=replace(FACTS, leaks=("Likely leak: 'a' equals 'y'.",)))
    assert found["R9"].text == "Likely leak: 'a' equals 'y'."
    assert "R9" not in checks_of(good(), facts=FACTS)


# The page


def test_every_code_has_its_section_with_the_title_it_is_known_by():
    headings = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)
    assert headings == [f"{code}: {title}" for code, title in TITLES.items()]


def test_every_section_says_what_it_means_how_it_is_found_and_what_to_do():
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        for part in ("**What it means.**", "**How it is found.**", "**What to do.**"):
            assert section.count(part) == 1, section.splitlines()[0]


def test_an_anchor_is_the_one_that_the_site_and_github_make_of_the_heading():
    for code, title in TITLES.items():
        heading = f"{code}: {title}".lower()
        slug = re.sub(r"[^\w\s-]", "", heading).strip().replace(" ", "-")
        assert anchor(code) == f"docs/checks.md#{slug}"


def test_a_check_is_told_with_its_code_and_its_place_in_the_docs():
    check = checks_of({"erm": [1.0, 1.1], "mixup": [1.0, 1.2]})["R5"]
    expected = (
        "R5: The study has 2 splits: only large changes can be seen. (docs/checks.md#r5-few-splits)"
    )
    assert str(check) == expected
    assert check.to_dict() == {"code": "R5", "text": check.text, "anchor": check.anchor}


def test_repetitions_are_called_so():
    few = analyze({"erm": [1.0, 1.1], "ada": [1.1, 1.0]}, test_share=0.25, repeated=True)
    (check,) = find_checks(few, make_verdict(few))
    assert check.text == "The study has 2 repetitions: only large changes can be seen."

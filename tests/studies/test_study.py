"""What a study has found: its table, its verdict, its runs, and what it can still do."""

import json
import math
import re
from dataclasses import replace
from html import escape
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from regaug.data import read_table
from regaug.data.datasets.synthetic import make_manifold
from regaug.ensemble import Ensemble, fit
from regaug.exceptions import ArgumentError, StoreError, UnknownNameError
from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.studies.config import StudyConfig
from regaug.studies.statistics import analyze
from regaug.studies.steps import Steps
from regaug.studies.study import Study
from regaug.studies.verdict import make_verdict
from regaug.training.settings import Settings

CONFIG = StudyConfig("houses", ("erm", "mixup"), ("mean",), 2, 3, "rmse", 0.25)
# Test errors on three splits; the second trial is never chosen.
ERRORS = {"erm": (5.0, 7.0, 6.0), "mixup": (4.0, 8.0, 6.0), "mean": (9.0, 9.0, 9.0)}


def make_record(method, trial, split, error):
    settings = None if trial is None else Settings(epochs=2, batch_size=16 + trial)
    scores = {}
    if error is not None:
        validation = Scores(9, 1.0 + (trial or 0), 1.0, None, 0, 0.5 - (trial or 0), 0.5)
        scores = {"validation": validation, "test": Scores(9, error, 1.0, None, 0, -error, None)}
    run = Run("houses", method, split, split, settings, trial)
    return RunRecord(run, scores, "finished", 1, 2, 0.5, (6, 2, 2), {})


def make_records(errors=ERRORS, trials=2):
    return [
        make_record(method, trial, split, error if not trial else 0.1)
        for method, own in errors.items()
        for split, error in enumerate(own)
        for trial in ([None] if method == "mean" else range(trials))
    ]


@pytest.fixture
def study():
    return Study.read(CONFIG, make_records())


def test_the_test_errors_of_the_chosen_runs_are_compared(study):
    for name, errors in ERRORS.items():
        assert study.comparison.row(name).errors == errors
        assert study.comparison.row(name).is_baseline == (name == "mean")
    logs = [math.log(4 / 5), math.log(8 / 7), 0.0]
    expected = 100 * math.expm1(sum(logs) / 3)
    assert study.comparison.row("mixup").change == pytest.approx(expected)
    assert study.verdict.recommended == "erm"
    assert (study.trials, study.is_complete) == (2, True)
    assert {name: run.settings.batch_size for name, run in study.best.items()} == {
        "erm": 16,
        "mixup": 16,
    }


def test_a_study_under_way_is_read_as_far_as_it_has_come():
    study = Study.read(CONFIG, make_records(trials=1))
    assert (study.trials, study.is_complete) == (1, False)


def test_agreement_is_told_in_points():
    study = Study.read(replace(CONFIG, metric="r2"), make_records())
    assert study.comparison.unit == "points"
    assert study.comparison.row("erm").errors == (-5.0, -7.0, -6.0)
    assert [row.name for row in study.comparison.rows] == ["erm", "mixup", "mean"]


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_chosen_run_without_a_test_error_has_failed(missing):
    study = Study.read(CONFIG, make_records({**ERRORS, "mixup": (4.0, missing, 6.0)}))
    row = study.comparison.row("mixup")
    # Without any score the other trial is chosen.
    assert row.errors == ((4.0, 0.1, 6.0) if missing is None else (4.0, None, 6.0))
    assert row.n_failed == (missing is not None)
    assert study.verdict.recommended == "erm"


def test_a_study_in_which_a_method_has_always_failed_says_so():
    records = [
        own if own.run.method != "mixup" else replace(own, scores={}, ending="diverged")
        for own in make_records()
    ]
    study = Study.read(CONFIG, records)
    assert study.comparison.row("mixup").n_failed == 3
    assert "No augmentation worked on every split" in study.verdict.text
    assert "failed on 3 of 3 splits" in str(study)


def test_a_study_is_read_from_its_folder(tmp_path, study):
    store = Store(tmp_path, CONFIG.to_dict())
    for record in make_records():
        store.add(record)
    read = Study.open(tmp_path)
    assert read.comparison == study.comparison
    assert read.verdict == study.verdict
    assert read.config == CONFIG
    assert read.best == study.best
    assert (read.folder, read.facts, read.data) == (tmp_path, None, None)


def test_a_folder_with_runs_of_something_else_is_refused(tmp_path):
    Store(tmp_path, {"protocol": "in-distribution"})
    with pytest.raises(StoreError, match="something else than a study"):
        Study.open(tmp_path)


def test_print_shows_the_table_and_the_verdict(study):
    lines = str(study).splitlines()
    assert lines[0] == "houses: 2 settings of each of 2 methods on 3 splits."
    assert lines[1].split()[:3] == ["method", "tier", "RMSE"]
    assert {line.split()[0] for line in lines[2:5]} == {"erm", "mixup", "mean"}
    assert study.verdict.text in " ".join(lines)
    assert {check.code for check in study.checks} == {"R4", "R5", "R7"}
    assert lines[-1] == "Checks: R4, R5, R7; see study.checks"


def test_print_is_short_however_many_rows_there_are(study):
    rng = np.random.default_rng(0)
    names = ["erm", *(f"method-{i}" for i in range(8))]
    baselines = ["mean", "ridge", "boosting", "trees", "gp"]
    errors = {name: rng.uniform(1, 2, 10).tolist() for name in (*names, *baselines)}
    errors["erm"] = [9.0] * 10
    comparison = analyze(errors, test_share=0.25, baselines=baselines)
    many = replace(study, comparison=comparison, verdict=make_verdict(comparison))
    lines = str(many).splitlines()
    assert len(lines) <= 14
    assert max(map(len, lines)) <= 100
    shown = [line.split()[0] for line in lines[2:7]]
    assert shown[:3] == [row.name for row in comparison.rows[:3]]
    assert "erm" in shown  # what all are compared with, however far behind
    assert any(line.endswith(" more rows: study.to_frame()") for line in lines)


def test_a_notebook_shows_the_verdict_and_the_whole_table(study):
    page = study._repr_html_()
    assert_is_plain_html(page)
    assert escape(study.verdict.text) in page
    assert page.count("<tr>") == 1 + len(study.comparison.rows)
    for check in study.checks:
        assert escape(check.text) in page


def assert_is_plain_html(page):
    """It is well-formed, small, runs nothing and brings no colors of its own."""
    root = ElementTree.fromstring(page.replace("<br>", "<br/>"))
    assert root.tag == "div"
    assert not re.search(r"script|color|background|on\w+=|href|src=", page)
    assert len(page) < 20_000


def test_the_frame_has_a_line_for_every_row_of_the_table(study):
    frame = study.to_frame()
    assert list(frame["name"]) == [row.name for row in study.comparison.rows]
    assert frame["mean"].tolist() == [row.mean for row in study.comparison.rows]
    assert {"change", "p_holm", "is_significant", "is_baseline"} <= set(frame)
    assert "errors" not in frame
    assert frame["mae"].tolist() == [1.0, 1.0, 1.0]
    assert frame["fit_seconds"].tolist() == [0.5, 0.5, 0.5]
    assert frame["predict_seconds"].isna().all()


def test_what_was_found_is_plain_values_in_a_file(study):
    steps = Steps("rmse", ("single net", "ensemble"), (-0.1,))
    values = json.loads(json.dumps(replace(study, steps=steps).to_dict(), allow_nan=False))
    assert (values["verdict"], values["use"]) == (study.verdict.text, study.verdict.use)
    assert [row["name"] for row in values["rows"]] == [row.name for row in study.comparison.rows]
    assert len(values["pairs"]) == 3
    assert values["checks"] == [check.to_dict() for check in study.checks]
    assert values["details"]["mixup"]["scores"]["mae"] == 1.0
    assert values["steps"]["changes"] == [-0.1]
    assert values["smallest_change"] == study.comparison.smallest_change


def test_the_frame_of_runs_has_a_line_for_every_run_and_marks_the_chosen_ones(study):
    frame = study.runs_frame()
    assert len(frame) == len(study.records) == 15
    chosen = frame[frame["is_chosen"]]
    assert len(chosen) == 9
    own = chosen[chosen["method"] == "mixup"].sort_values("split")
    assert own["test_rmse"].tolist() == list(ERRORS["mixup"])
    assert own["trial"].tolist() == [0, 0, 0]
    assert set(frame["ending"]) == {"finished"}
    assert frame["validation_rmse"].max() == 2.0


def test_a_report_is_written(study, tmp_path):
    path = study.report(tmp_path / "new" / "report.html")
    assert path == tmp_path / "new" / "report.html"
    assert "houses" in path.read_text(encoding="utf-8")


def test_the_model_has_what_the_study_recommends(study):
    data = make_manifold("line", n=60)
    model = replace(study, data=data).model(members=2, seed=3)
    assert model.method == study.advised
    found = study.best[study.advised]
    options = {"settings": study.settings_of(study.advised), "log": found.log}
    expected = fit(data, method=study.advised, members=2, seed=3, **options)
    assert model.predict([[0.5]]).mean == expected.predict([[0.5]]).mean


def test_another_method_has_its_own_settings_of_the_study(study):
    data = make_manifold("line", n=60)
    model = study.model(data, method="mixup", members=2)
    own = study.best["mixup"].settings
    assert (model.method, model.settings.learning_rate) == ("mixup", own.learning_rate)
    assert not study.settings_of("mixup").halve
    with pytest.raises(UnknownNameError, match="Did you mean 'mixup'"):
        study.settings_of("mixip")


def test_a_table_with_other_targets_is_refused(study):
    frame = pd.DataFrame({"x": np.sin(np.arange(30.0)), "rent": np.arange(30.0)})
    with pytest.raises(ArgumentError, match="targets of the study, target, got rent"):
        study.model(read_table(frame, target="rent"))


def test_what_cannot_be_fitted_to_a_table_is_not_advised(study):
    for use, advised in (
        *(("gp", "gp"), ("auto", "auto"), ("mean", "mean")),
        *(("last-value", "erm"), ("mixup", "erm")),
    ):
        verdict = replace(study.verdict, use=use, recommended="erm")
        assert replace(study, verdict=verdict).advised == advised


def test_a_model_that_lies_in_the_folder_is_read(study, tmp_path, monkeypatch):
    data = make_manifold("line", n=60)
    fit(data, method="erm", members=2).save(tmp_path / "model")
    model = replace(study, folder=tmp_path).model(quick=True)
    assert isinstance(model, Ensemble)
    assert len(model) == 2
    with pytest.raises(ArgumentError, match="`data` must be the table"):  # it is another one
        replace(study, folder=tmp_path).model(quick=True, seed=5)


def test_without_data_there_is_no_model_and_the_way_out_is_said(study, tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(
            ArgumentError, match=r"`data` must be the table .* study\.model\(data\)"
        ):
            replace(study, folder=folder).model()

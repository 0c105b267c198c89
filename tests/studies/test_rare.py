"""Studies of rare targets: metrics that see them, and methods that are meant for them."""

import numpy as np
import pandas as pd
import pytest

import regaug
from regaug.exceptions import ArgumentError
from regaug.report.plots import draw_plots
from regaug.report.recipe import net_recipe
from regaug.studies.details import Details
from regaug.studies.leaderboard import leaderboard
from regaug.studies.statistics import analyze
from regaug.studies.study import Study
from regaug.studies.verdict import make_verdict

ERM = np.array([1.0, 1.2, 0.9, 1.1, 1.0, 1.3])
NOISE = 0.01 * np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])


def compare_errors(factor, metric="rmse", **more):
    errors = {"erm": ERM, "rare": ERM * factor * np.exp(NOISE), **more}
    return analyze(errors, metric=metric, test_share=0.25)


# Words


def test_both_sides_are_told_of_a_method_for_rare_targets():
    plain, balanced = compare_errors(1.1), compare_errors(0.8, "balanced-rmse")
    text = make_verdict(plain, beside=balanced).text
    assert "rare makes RMSE worse by 10 %" in text
    assert (
        "rare, meant for rare targets, changes RMSE by +10.0 % (+5.8 to +14.4) and balanced RMSE "
        "by \N{MINUS SIGN}20.0 % (\N{MINUS SIGN}23.1 to \N{MINUS SIGN}16.8)." in text
    )
    other = make_verdict(balanced, beside=plain)
    assert other.recommended == "rare"
    assert "changes balanced RMSE by \N{MINUS SIGN}20.0 % (" in other.text
    assert " and RMSE by +10.0 % (+5.8 to +14.4)." in other.text


def test_of_other_methods_one_side_is_told():
    plain = analyze({"erm": ERM, "mixup": 0.9 * ERM * np.exp(NOISE)}, test_share=0.25)
    assert make_verdict(plain, beside=plain).text == make_verdict(plain).text
    assert not plain.is_about_rare


def test_what_failed_changes_nothing():
    failed = compare_errors(1.0, "balanced-rmse", rare=[None] * 6)
    text = make_verdict(compare_errors(1.1), beside=failed).text
    assert "changes RMSE by +10.0 % (+5.8 to +14.4)." in text
    assert "rare targets" not in make_verdict(failed, beside=compare_errors(1.1)).text


@pytest.mark.parametrize(
    ("comparison", "others"),
    [
        (compare_errors(1.0), ["balanced RMSE", "tail RMSE"]),
        (compare_errors(1.0, "balanced-rmse"), ["RMSE", "tail RMSE"]),
        (compare_errors(1.0, "tail-rmse-high"), ["RMSE", "balanced RMSE"]),
        (analyze({"erm": ERM, "mixup": ERM}, test_share=0.25), ["MAE", "R2"]),
    ],
)
def test_the_leaderboard_shows_the_other_side(comparison, others):
    table = leaderboard(comparison, details={"erm": Details()})
    assert table.header[7:9] == others


def test_the_leaderboard_says_what_the_metric_is():
    notes = leaderboard(compare_errors(1.0, "tail-rmse-low")).notes
    assert any("the tenth of the rows with the lowest targets" in note for note in notes)


# Studies


@pytest.fixture(scope="module")
def skewed():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 2))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.exp(x.sum(axis=1))})


@pytest.fixture
def short(monkeypatch, shorten):
    shorten(monkeypatch, 2)
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    options = {"target": "y", "methods": ["erm", "rare"], "trials": 1, "splits": 3}
    return lambda data, **more: regaug.compare(data, **{**options, **more})


def test_a_study_is_judged_by_every_tenth(short, skewed, tmp_path):
    study = short(skewed, metric="balanced-rmse", out=tmp_path)
    assert study.comparison.title == "balanced RMSE"
    for row in study.comparison.rows:
        scores = study.scores[row.name]
        assert row.errors == tuple(own.value("balanced-rmse") for own in scores)
        for own in scores:
            assert sum(n for n, _, _ in own.tenths) == own.n
            known = [error**2 for _, _, error in own.tenths if error is not None]
            assert own.value("balanced-rmse") == pytest.approx(np.mean(known) ** 0.5, rel=1e-5)
    assert "rare, meant for rare targets, changes balanced RMSE by" in study.verdict.text
    frame = study.to_frame()
    assert {"rmse", "tail-rmse", "tail-rmse-high", "tail-rmse-low"} <= set(frame.columns)
    again = Study.open(study.folder)
    assert again.verdict == study.verdict
    records = [own for own in again.records if own.scores]
    assert all(len(own.scores["test"].tenths) == 10 for own in records)


def test_a_focus_is_part_of_the_metric(short, skewed):
    study = short(skewed, metric="tail-rmse", focus="high")
    assert study.config.metric == "tail-rmse-high"
    script = net_recipe(study, "rare")
    compile(script, "script", "exec")
    assert script.rstrip().endswith('.value("tail-rmse-high"))')
    assert all(own.run.settings is None or own.run.settings.metric for own in study.records)
    with pytest.raises(ArgumentError, match="`focus` must be None for the metric 'rmse'"):
        short(skewed, focus="high")
    with pytest.raises(ArgumentError, match="`focus` must be one of 'high', 'low', 'both'"):
        short(skewed, metric="tail-rmse", focus="top")


def test_the_report_draws_the_error_along_the_target(short, skewed, tmp_path):
    study = short(skewed, methods=["erm", "mixup", "noise", "rare"])
    plot = draw_plots(study)["along"]
    assert plot.svg.count('class="bad-line"') == 1  # rare
    assert plot.svg.count('class="good-line"') <= 1  # the best of the others, if rare is not
    assert "Thin lines are the other methods." in plot.caption
    page = study.report(tmp_path / "report.html").read_text("utf-8")
    assert 'id="plot-along"' in page
    assert "balanced RMSE" in page


def test_of_several_targets_each_is_drawn(short, skewed):
    both = skewed.assign(z=skewed["a"] ** 2)
    study = short(both, target=["y", "z"], methods=["erm", "mixup"])
    plots = draw_plots(study)
    assert plots["along"].title == "RMSE along the target, y"
    assert plots["along-2"].title == "RMSE along the target, z"

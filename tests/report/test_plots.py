"""The plots of a report."""

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import RegaugError
from regaug.report.plots import draw_plots, save_plots
from regaug.report.plots_methods import worst_groups
from regaug.report.plots_steps import draw_steps
from regaug.runs.record import Sample
from regaug.studies.facts import describe
from regaug.studies.steps import Steps

ALWAYS = ["leaderboard", "splits"]
RUNS = ["learning-plain", "learning-augmented", "predicted-plain", "predicted-augmented"]
DATA = ["singular-values", "two-nn"]


@pytest.fixture(scope="module")
def facts():
    return describe(make_manifold("sine", n=200).split(), "one column")


def marks(plot, kind):
    root = ElementTree.fromstring(plot.svg)
    return [element for element in root.iter() if element.get("class") == kind]


def test_all_plots_are_drawn_in_the_order_of_the_page(make_study, facts):
    plots = draw_plots(make_study(groups=["a", "b"], facts=facts))
    assert list(plots) == [*ALWAYS, *RUNS, *DATA, "groups"]
    assert list(draw_plots(make_study())) == [*ALWAYS, *RUNS]
    assert list(draw_plots(make_study(combined=True))) == [*ALWAYS, "steps", *RUNS]


def test_every_plot_is_xml_and_says_in_words_what_it_shows(make_study, facts):
    study = make_study(groups=["a", "<b>"], facts=facts, combined=True)
    for plot in draw_plots(study).values():
        root = ElementTree.fromstring(plot.svg)
        assert root.get("role") == "img"
        assert len(root.get("aria-label")) > 20
        assert plot.title
        assert plot.caption
        assert "nan" not in plot.svg.lower()


def test_the_leaderboard_fills_what_differs_and_squares_what_is_baseline(make_study):
    study = make_study()
    plot = draw_plots(study)["leaderboard"]
    assert study.verdict.helps == ("c-mixup",)
    assert study.verdict.hurts == ("mixup",)
    assert len(marks(plot, "good-dot")) == 1
    assert len(marks(plot, "bad-dot")) == 1
    assert len([mark for mark in marks(plot, "hollow") if mark.tag.endswith("rect")]) == 2
    assert "An arrow" in plot.caption


def test_a_split_is_filled_where_it_beats_plain_training(make_study):
    study = make_study(methods=["erm", "c-mixup"])
    plot = draw_plots(study)["splits"]
    base, best = (study.comparison.row(name).errors for name in ("erm", "c-mixup"))
    better = sum(own < other for own, other in zip(best, base, strict=True))
    assert better > 0
    assert len(marks(plot, "good-dot")) == better


def test_the_gap_is_that_of_the_median_run_at_its_best_epoch(make_study):
    def same(record):
        curves = {"loss": [1.0] * 3, "train": [9.0, 4.0, 3.0], "validation": [9.0, 6.0, 7.0]}
        curves["test"] = [9.0, 6.5, 8.0]
        return replace(record, curves=curves if record.curves else {}, best_epoch=2)

    plot = draw_plots(make_study(change=same))["learning-plain"]
    assert "4.000 on training rows and 6.500 on test rows" in plot.caption
    assert "gap of 2.50" in plot.caption


def test_a_part_that_was_looked_at_once_is_a_dot_and_no_level_line(make_study):
    def seldom(record):
        curves = {"loss": [1.0] * 3, "train": [None, None, 3.0], "validation": [9.0, 6.0, 7.0]}
        curves["test"] = [None, None, 8.0]
        return replace(record, curves=curves if record.curves else {}, best_epoch=2)

    plot = draw_plots(make_study(change=seldom))["learning-plain"]
    assert len(marks(plot, "good-dot")) == len(marks(plot, "dot")) == 1
    assert marks(plot, "good-line") == marks(plot, "line") == []
    assert len(marks(plot, "thin-line")) == 1  # of the validation rows
    assert "3.000 on training rows and 8.000 on test rows" in plot.caption


def test_the_recommended_augmentation_is_looked_at_else_the_best(make_study):
    assert make_study().looked_at == ("erm", "c-mixup")
    without = make_study(methods=["erm", "mixup", "foma-rho"])
    assert without.verdict.recommended == "erm"
    assert without.looked_at == ("erm", "foma-rho")
    assert make_study(methods=["erm"]).looked_at == ("erm",)


def test_the_worst_group_is_the_one_with_the_largest_error(make_study):
    study = make_study(groups=["easy", "hard"])
    mean, worst, name = worst_groups(study)["erm"]
    assert name == "hard"
    assert worst == pytest.approx(1.5 * mean)
    assert worst_groups(make_study()) == {}


def test_data_with_one_direction_says_so(make_study):
    line = describe(make_manifold("line", n=100).split(), "")
    plot = draw_plots(make_study(facts=line))["singular-values"]
    assert line.k == 0
    assert "The first of 2 alone makes up more than 90 %" in plot.caption
    assert marks(plot, "good-dot") == []


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("methods", [["erm"], ["erm", "mixup"]])
@pytest.mark.parametrize("metric", ["rmse", "r2"])
def test_small_studies_are_drawn(make_study, splits, methods, metric):
    plots = draw_plots(make_study(splits=splits, methods=methods, trials=1, metric=metric))
    assert {"splits", "learning-plain", "predicted-plain"} <= set(plots)
    side = "right" if metric == "r2" else "left"
    assert f"{side} is better" in plots["leaderboard"].svg
    assert "()" not in plots["leaderboard"].svg


def test_runs_that_failed_do_not_stop_the_drawing(make_study):
    def fail(record):
        if record.run.method != "mixup" and record.run.split != 2:
            return record
        scores = {**record.scores, "test": replace(record.scores["test"], rmse=math.inf)}
        predicted = [[None], *record.sample.predicted[1:]]
        sample = replace(record.sample, predicted=predicted)
        nothing = [None] * 3
        curves = {"train": nothing, "test": nothing} if record.curves else {}
        return replace(record, scores=scores, sample=sample, curves=curves, best_epoch=0)

    plots = draw_plots(make_study(change=fail))
    assert "splits" in plots
    assert all("nan" not in plot.svg for plot in plots.values())
    everything = draw_plots(make_study(change=fail, splits=3))
    assert "splits" in everything


def test_equal_errors_are_drawn(make_study):
    def equal(record):
        scores = {part: replace(own, rmse=0.0) for part, own in record.scores.items()}
        points = [[3.0]] * 5
        return replace(record, scores=scores, sample=Sample(points, points))

    assert list(draw_plots(make_study(change=equal))) == [*ALWAYS, *RUNS]


def test_what_is_combined_is_a_diamond(make_study):
    def paths(study):
        return [m for m in marks(draw_plots(study)["leaderboard"], "hollow") if m.get("d")]

    assert len(paths(make_study(combined=True))) == len(paths(make_study())) + 2


# The waterfall

STEPS = Steps("rmse", ("single net", "ensemble", "augmentation", "blend"), (-0.1, 0.02, -0.05))


def bars(plot):
    """The left and right ends of all bars, from above."""
    found = [e for e in ElementTree.fromstring(plot.svg).iter() if e.tag.endswith("rect")]
    found.sort(key=lambda bar: float(bar.get("y")))
    starts = [float(bar.get("x")) for bar in found]
    widths = [float(bar.get("width")) for bar in found]
    return [(x, x + width) for x, width in zip(starts, widths, strict=True)]


def test_a_step_begins_where_the_one_before_it_has_ended():
    ensemble, augmentation, blend, total = bars(draw_steps(STEPS))
    assert augmentation[0] == pytest.approx(ensemble[0], abs=0.2)
    assert blend[1] == pytest.approx(augmentation[1], abs=0.2)
    assert total == (pytest.approx(blend[0], abs=0.2), pytest.approx(ensemble[1], abs=0.2))


def test_a_step_is_told_in_per_cent_of_the_one_before_it():
    plot = draw_steps(STEPS)
    alternative = ElementTree.fromstring(plot.svg).get("aria-label")
    assert alternative == (
        "Change of RMSE by step: ensemble \N{MINUS SIGN}9.5 %; augmentation +2.0 %; blend "
        "\N{MINUS SIGN}4.9 %; all together \N{MINUS SIGN}12.2 %."
    )
    assert (len(marks(plot, "good-dot")), len(marks(plot, "bad-dot"))) == (2, 1)
    assert "left is better" in plot.svg


def test_points_are_better_to_the_right():
    plot = draw_steps(Steps("r2", ("a", "<b>"), (0.05,)))
    assert "right is better" in plot.svg
    assert "%" not in plot.svg
    assert "+0.050" in plot.svg
    assert len(marks(plot, "good-dot")) == 1


def test_steps_without_any_change_are_drawn_and_a_start_alone_is_not():
    still = draw_steps(Steps("rmse", ("a", "b"), (0.0,)))
    assert len(bars(still)) == 2
    assert "nan" not in still.svg
    assert draw_steps(Steps("rmse", ("a",), ())) is None
    assert draw_steps(None) is None


def test_the_same_numbers_give_the_same_files(make_study, facts, tmp_path):
    for folder in ("one", "two"):
        save_plots(draw_plots(make_study(facts=facts)), tmp_path / folder)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
        ElementTree.parse(file)
    assert len(list((tmp_path / "one").iterdir())) == len([*ALWAYS, *RUNS, *DATA])


def test_a_place_that_is_a_file_is_refused(make_study, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RegaugError, match="Could not write .*file"):
        save_plots(draw_plots(make_study()), tmp_path / "file")

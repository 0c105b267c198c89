"""The leaderboard: one table of text for the terminal, the page and Python."""

import pytest

from regaug.formatting import MISSING
from regaug.studies.leaderboard import full_name, leaderboard, show_cells
from regaug.studies.statistics import analyze

PLAIN = [1.0, 1.2, 0.9, 1.1, 1.0]
ERRORS = {
    "erm": PLAIN,
    "mixup": [0.9 * error for error in PLAIN],
    "ada": [*PLAIN[:4], None],
    "ridge": [1.5 * error for error in PLAIN],
}


def make_comparison(errors=ERRORS, **options):
    return analyze(errors, baselines=["ridge"], test_share=0.25, **options)


def cells(table, name):
    return next(row for row in table.rows if row[0].split()[0] == name)


def test_the_header_names_the_metric_the_reference_and_the_level():
    header = leaderboard(make_comparison(level=0.9)).header
    assert header == (
        "method",
        "RMSE",
        "90 % interval",
        "against erm",
        "90 % interval",
        "p (Holm)",
        "won",
    )


def test_a_row_shows_what_the_statistics_say():
    comparison = make_comparison()
    table = leaderboard(comparison)
    assert [row[0] for row in table.rows] == ["mixup *", "erm", "ridge", "ada"]
    row = comparison.row("mixup")
    _, mean, interval, change, _, p, won = cells(table, "mixup")
    assert (mean, change, won) == (f"{row.mean:.4f}", "\N{MINUS SIGN}10.0 %", "100 %")
    assert interval == f"{row.low:.4f} to {row.high:.3f}"  # four digits that count
    assert p == "< 0.001"
    assert all(len(row) == len(table.header) for row in table.rows)


def test_a_star_marks_what_differs_and_is_explained_only_if_there_is_one():
    star = "* differs from plain training, all comparisons taken together"
    assert leaderboard(make_comparison()).notes == [star]
    same = leaderboard(make_comparison({"erm": PLAIN, "mixup": PLAIN, "ridge": PLAIN}))
    assert same.notes == []
    assert not any("*" in row[0] for row in same.rows)
    assert leaderboard(make_comparison(), "A title", ["A note."]).notes == [star, "A note."]


def test_what_failed_is_said_and_has_no_numbers():
    row = cells(leaderboard(make_comparison()), "ada")
    assert row[1] == "failed on 1 of 5 splits"
    assert row[2:6] == ("", "", "", "")
    own = show_cells(make_comparison(), make_comparison().row("ada"))
    assert (own["mean"], own["failed"]) == (MISSING, "failed on 1 of 5 splits")


def test_the_reference_has_no_change_and_a_baseline_no_share_of_wins():
    table = leaderboard(make_comparison())
    assert cells(table, "erm")[3:6] == ("", "", "")
    assert cells(table, "ridge")[5:] == ("", "")


@pytest.mark.parametrize(("metric", "title"), [("r2", "R2"), ("pearson", "Pearson's R")])
def test_agreement_is_in_points_without_a_per_cent_and_the_highest_comes_first(metric, title):
    errors = {"erm": [0.5, 0.6, 0.4], "mixup": [0.7, 0.8, 0.6], "ridge": [0.1, 0.2, 0.1]}
    table = leaderboard(make_comparison(errors, metric=metric))
    assert table.header[1] == title
    assert [row[0].split()[0] for row in table.rows] == ["mixup", "erm", "ridge"]
    changes = [cell for row in table.rows for cell in row[1:6]]
    assert not any("%" in cell for cell in changes)
    assert cells(table, "mixup")[3] == "+0.200"
    assert cells(table, "ridge")[3].startswith("\N{MINUS SIGN}0.")


def test_short_names_are_explained():
    rows = {row.name: full_name(row, "erm") for row in make_comparison().rows}
    assert rows == {
        "erm": "plain training",
        "mixup": "mixup",
        "ada": "ada",
        "ridge": "ridge regression",
    }


def test_the_text_is_lined_up():
    lines = str(leaderboard(make_comparison(), "Houses")).splitlines()
    assert lines[0] == "Houses"
    start = lines[1].index("RMSE")
    assert all(line[start - 2 : start] == "  " for line in lines[2:6])
    assert lines[-1].startswith("* differs")

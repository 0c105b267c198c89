"""The leaderboard: one table of text for the terminal, the page and Python."""

import pytest

from regaug.formatting import MISSING
from regaug.studies.details import Details
from regaug.studies.leaderboard import leaderboard, marked_name, show_cells, show_details
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
    assert header == [
        "method",
        "tier",
        "RMSE",
        "against erm",
        "90 % interval",
        "p (Holm)",
        "won",
    ]


def test_a_row_shows_what_the_statistics_say():
    comparison = make_comparison()
    table = leaderboard(comparison)
    assert [row[0] for row in table.rows] == ["mixup *", "erm", "ridge (baseline)", "ada"]
    row = comparison.row("mixup")
    _, tier, mean, change, interval, p, won = cells(table, "mixup")
    assert (tier, mean, change) == ("1", f"{row.mean:.4f}", "\N{MINUS SIGN}10.0 %")
    assert interval == "\N{MINUS SIGN}10.0 to \N{MINUS SIGN}10.0"
    assert (p, won) == ("< 0.001", "100 %")
    assert all(len(row) == len(table.header) for row in table.rows)
    own = show_cells(comparison, row)
    assert own["interval"] == f"{row.low:.4f} to {row.high:.3f}"  # four digits that count


def test_tiers_stand_in_place_of_ranks():
    tiers = {row[0].split()[0]: row[1] for row in leaderboard(make_comparison()).rows}
    assert tiers == {"mixup": "1", "erm": "2", "ridge": "3", "ada": ""}


def test_what_is_no_net_is_marked():
    errors = {**ERRORS, "auto": [0.8 * error for error in PLAIN]}
    comparison = make_comparison(errors, combined=["auto"])
    names = [marked_name(row) for row in comparison.rows]
    assert names == ["auto (combined)", "mixup *", "erm", "ridge (baseline)", "ada"]


def test_details_have_columns_of_their_own_where_they_are_given():
    details = {
        "erm": Details({"mae": 0.5, "r2": 0.25, "mape": 9.0}, 0.5, 2e-6),
        "mixup": Details({"mae": 0.75}),
    }
    table = leaderboard(make_comparison(), details=details)
    assert table.header[7:] == ["MAE", "R2", "fit", "predict a row"]
    assert cells(table, "erm")[7:] == ["0.5000", "0.2500", "0.50 s", "2.0 µs"]
    assert cells(table, "mixup")[7:] == ["0.7500", "", "", ""]
    assert cells(table, "ridge")[7:] == [""] * 4
    assert len(leaderboard(make_comparison()).header) == 7
    assert show_details(details["erm"])["mape"] == "9.000"


def test_the_metric_that_decides_is_not_shown_twice():
    errors = {"erm": [0.5, 0.6], "ridge": [0.1, 0.2]}
    table = leaderboard(make_comparison(errors, metric="mae"), details={})
    assert table.header[2] == "MAE"
    assert table.header[7:9] == ["R2", "RMSE"]


def test_a_star_marks_what_differs_and_is_explained_only_if_there_is_one():
    star = "* differs from plain training, all comparisons taken together"
    assert leaderboard(make_comparison()).notes == [star]
    same = leaderboard(make_comparison({"erm": PLAIN, "mixup": PLAIN, "ridge": PLAIN}))
    assert same.notes == []
    assert not any("*" in row[0] for row in same.rows)
    assert leaderboard(make_comparison(), "A title", ["A note."]).notes == [star, "A note."]


def test_what_failed_is_said_and_has_no_numbers():
    row = cells(leaderboard(make_comparison()), "ada")
    assert row[1:3] == ["", "failed on 1 of 5 splits"]
    assert row[3:6] == ["", "", ""]
    own = show_cells(make_comparison(), make_comparison().row("ada"))
    assert (own["mean"], own["failed"]) == (MISSING, "failed on 1 of 5 splits")


def test_the_reference_has_no_change_and_a_baseline_no_share_of_wins():
    table = leaderboard(make_comparison())
    assert cells(table, "erm")[3:6] == ["", "", ""]
    assert cells(table, "ridge")[5:] == ["", ""]


@pytest.mark.parametrize(("metric", "title"), [("r2", "R2"), ("pearson", "Pearson's R")])
def test_agreement_is_in_points_without_a_per_cent_and_the_highest_comes_first(metric, title):
    errors = {"erm": [0.5, 0.6, 0.4], "mixup": [0.7, 0.8, 0.6], "ridge": [0.1, 0.2, 0.1]}
    table = leaderboard(make_comparison(errors, metric=metric))
    assert table.header[2] == title
    assert [row[0].split()[0] for row in table.rows] == ["mixup", "erm", "ridge"]
    changes = [cell for row in table.rows for cell in row[1:6]]
    assert not any("%" in cell for cell in changes)
    assert cells(table, "mixup")[3] == "+0.200"
    assert cells(table, "ridge")[3].startswith("\N{MINUS SIGN}0.")


def test_the_text_is_lined_up():
    lines = str(leaderboard(make_comparison(), "Houses")).splitlines()
    assert lines[0] == "Houses"
    start = lines[1].index("RMSE")
    assert all(line[start - 2 : start] == "  " for line in lines[2:6])
    assert lines[-1].startswith("* differs")


def test_repetitions_of_one_split_are_said_below():
    repeated = make_comparison(repeated=True)
    note = "one split, 5 repetitions with other seeds: intervals say how much seeds vary"
    assert note in leaderboard(repeated).notes
    assert show_cells(repeated, repeated.row("ada"))["failed"] == "failed on 1 of 5 repetitions"
    assert not any("seeds" in words for words in leaderboard(make_comparison()).notes)

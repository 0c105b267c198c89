"""The tables of a report."""

from dataclasses import replace

import pytest

from regaug.formatting import MISSING
from regaug.report.tables import STRONGEST, detail_table, gap_table, pair_table
from regaug.studies.details import Details


def test_a_pair_is_told_from_the_side_of_its_row(make_study):
    comparison = make_study().comparison
    names = [row.name for row in comparison.rows]
    table = dict(pair_table(comparison))
    assert list(table) == names
    for name in names:
        assert table[name][names.index(name)] is None
    best, plain = names.index("c-mixup"), names.index("erm")
    ahead, behind = table["c-mixup"][plain], table["erm"][best]
    assert (ahead.tone, behind.tone) == ("good", "bad")
    assert ahead.change.startswith("\N{MINUS SIGN}")
    assert behind.change.startswith("+")
    assert ahead.strength == behind.strength == STRONGEST  # all splits won
    assert ahead.remark == "won 100 %, p < 0.001"
    assert ahead.is_significant


@pytest.mark.parametrize("splits", [1, 4])
def test_an_even_pair_has_no_color(make_study, splits):
    def equal(record):
        scores = {part: replace(own, rmse=1.0) for part, own in record.scores.items()}
        return replace(record, scores=scores)

    cell = pair_table(make_study(change=equal, splits=splits).comparison)[0][1][1]
    assert (cell.tone, cell.strength, cell.is_significant) == ("even", 0, False)
    assert cell.remark == ("won 50 %" if splits == 1 else "won 50 %, p 1.000")


def test_what_failed_has_no_change(make_study):
    def fail(record):
        return replace(record, scores={}) if record.run.method == "mixup" else record

    table = dict(pair_table(make_study(change=fail).comparison))
    assert table["mixup"][0].change == MISSING
    assert table["mixup"][0].remark == "won 0 %"


def test_columns_that_nobody_has_are_left_out(make_study):
    study = make_study()
    header, lines = detail_table(study)
    assert header == ["MAE", "R2", "Pearson's R", "RMSE of a single net", "Fit", "Epochs"]
    assert [name for name, _ in lines] == [row.name for row in study.comparison.rows]
    one = replace(study, details={"erm": Details({"mape": 5.0})})
    header, lines = detail_table(one)
    assert header == ["MAPE"]
    assert dict(lines)["erm"] == ["5.000"]
    assert dict(lines)["ridge"] == [""]
    assert detail_table(replace(study, details={})) == ([], [])


def test_the_gap_is_between_training_and_validation_rows_at_the_chosen_epochs(make_study):
    def give(train, validation):
        def change(record):
            if record.run.method != "mixup":
                return replace(record, curves={"train": [None], "validation": [1.0]}, best_epoch=1)
            curves = {"train": [9.0, train, 9.0], "validation": [9.0, validation, 9.0]}
            return replace(record, curves=curves, best_epoch=2)

        return change

    assert gap_table(make_study(change=give(1.0, 1.5))) == [("mixup", ["1.000", "1.500", "0.500"])]
    better = make_study(change=give(0.9, 0.8), metric="r2")
    assert float(gap_table(better)[0][1][2]) == pytest.approx(0.1)
    assert len(gap_table(make_study())) == len(make_study().config.methods)
    assert gap_table(make_study(change=lambda own: replace(own, curves={}))) == []

"""From finished runs to a table: means, standard errors apart, and what is not finished."""

import json
import math
from dataclasses import replace

import pytest

from regaug.metrics import Scores
from regaug.reproduction import published
from regaug.reproduction.measured import Figure, Line, Measured, choose_runs, measure
from regaug.reproduction.problems import PaperData
from regaug.reproduction.recipes import paper_settings
from regaug.reproduction.tables import EXPERIMENTS, Row, Size
from regaug.runs.record import RunRecord
from regaug.runs.run import Run

DATA = PaperData("airfoil", "airfoil")


def make_run(method="erm", split=0, trial=None, protocol="paper"):
    settings = paper_settings("airfoil", method, seed=split)
    return Run(f"airfoil/{protocol}", method, split, split, settings, trial)


def make_scores(rmse, pearson=0.7, groups=None):
    values = {"mae": rmse, "mape": rmse / 2, "r2": 0.5, "pearson": pearson}
    return Scores(n=20, rmse=rmse, n_zero=0, groups=groups or {}, **values)


def finish(run, test, validation=1.0):
    scores = {"test": make_scores(test), "validation": make_scores(validation)}
    return RunRecord(run, scores, "finished", 1, 1, 0.1, (60, 20, 20), {})


def table(rows, done, data=DATA):
    records = {record.run.key: record for record in done}
    name = EXPERIMENTS["in-distribution"]
    return measure(name, data, rows, records, size=Size(), command="the command")


def make_tuned():
    rows, done = [], []
    for method, shift in (("erm", 0.0), ("mixup", -0.5)):
        runs = tuple(
            make_run(method, split, trial, "tuned") for trial in range(2) for split in range(5)
        )
        rows.append(Row(method, "airfoil", method, "tuned", runs))
        done += [finish(run, 2 + shift + 0.01 * run.split, validation=run.trial) for run in runs]
    return rows, done


def test_means_stand_beside_the_published_ones_in_standard_errors():
    runs = tuple(make_run(split=seed) for seed in range(3))
    row = Row("erm", "airfoil", "erm", "paper", runs, epochs=100)
    found = table([row], [finish(run, 2.5 + 0.1 * run.split) for run in runs])
    figure = found.paper[0].figures[0]
    cell = published.cell("airfoil", "erm", "rmse")
    assert (figure.mean, figure.sd, figure.n) == (pytest.approx(2.6), pytest.approx(0.1), 3)
    error = math.sqrt(0.1**2 / 3 + cell.sd**2 / 3 + 0.001**2 / 12)
    assert figure.apart == pytest.approx((2.6 - cell.mean) / error)
    assert figure.published == "2.901 ± 0.067"
    assert str(figure.score) == "RMSE 2.6"


def test_of_several_settings_the_validation_error_chooses():
    runs = tuple(make_run("noise", split, trial) for split in range(2) for trial in range(2))
    row = Row("noise", "airfoil", "noise", "paper", runs)
    records = {
        run.key: finish(run, test=10 * run.trial + run.split, validation=5 - run.trial)
        for run in runs
    }
    assert [own.score("test", "rmse") for own in choose_runs(row, records)] == [10, 11]
    records.pop(runs[-1].key)  # the second split has not tried both
    assert [own.run.split for own in choose_runs(row, records)] == [0]


def test_of_correlations_the_highest_on_validation_is_chosen():
    runs = [Run("davis-by-protein/paper", "noise", 0, 0, None, trial) for trial in range(2)]
    records = {}
    for run, validation in zip(runs, (0.2, 0.6), strict=True):
        scores = {"validation": make_scores(1.0, validation), "test": make_scores(1.0, validation)}
        records[run.key] = RunRecord(run, scores, "finished", 1, 1, 0.1, (60, 20, 20), {})
    row = Row("noise", "dti", "noise", "paper", tuple(runs))
    assert [own.run.trial for own in choose_runs(row, records)] == [1]


def test_the_worst_group_is_the_one_with_the_lowest_correlation():
    run = Run("davis-by-protein/paper", "erm", 0, 0, paper_settings("dti", "erm", seed=0))
    groups = {name: make_scores(1.0, r) for name, r in (("a", 0.4), ("b", 0.1), ("c", None))}
    scores = {"validation": make_scores(1.0), "test": make_scores(1.0, 0.3, groups)}
    record = RunRecord(run, scores, "finished", 1, 1, 0.1, (60, 20, 20), {})
    row = Row("erm", "dti", "erm", "paper", (run,))
    found = table([row], [record], PaperData("dti", "davis-by-protein"))
    figures = found.paper[0].figures
    assert [(own.title, own.mean) for own in figures] == [
        ("Pearson's R", 0.3),
        ("Pearson's R, worst", 0.1),
    ]


def test_what_is_not_finished_is_said():
    runs = tuple(make_run(split=seed) for seed in range(3))
    found = table([Row("erm", "airfoil", "erm", "paper", runs, epochs=100)], [finish(runs[0], 2.5)])
    line = found.paper[0]
    assert (line.done, line.planned) == (1, 3)
    assert line.figures[0].sd is line.figures[0].apart is None
    text = found.tables()["paper protocol"]
    assert text.rows[0][0] == "erm, 1 of 3 runs"
    assert "| 2.5 | 2.901 ± 0.067 (quoted) |  |" in text.to_markdown()


def test_a_row_that_was_cut_short_has_no_published_figure_beside_it():
    runs = [make_run(split=seed) for seed in range(3)]
    short = [replace(run, settings=replace(run.settings, epochs=6)) for run in runs]
    mixed = tuple(replace(run, method="mixup") for run in runs)
    rows = [
        Row("erm", "airfoil", "erm", "paper", tuple(short), epochs=100),
        Row("mixup", "airfoil", "mixup", "paper", mixed, epochs=100),
    ]
    done = [finish(run, 2.5 + 0.1 * run.split) for row in rows for run in row.runs]
    cut, whole = (table(rows, own) for own in (done[:3], done))
    assert [line.is_cut for line in whole.paper] == [True, False]
    assert whole.paper[0].figures[0].apart is None
    shown = whole.tables()["paper protocol"]
    assert shown.rows[0][:4] == ["erm, 6 of 100 epochs", "2.6 ± 0.1", "", ""]
    assert shown.rows[1][2].startswith("3.730 ± 0.190")
    assert any(note.startswith("Rows that were cut short are no test") for note in shown.notes)
    # Where all are cut there is nothing to compare with at all.
    alone = cut.tables()["paper protocol"]
    assert alone.header == ["method", "RMSE", "MAPE"]
    assert not any(note.startswith("apart:") for note in alone.notes)


def test_large_numbers_have_no_exponent():
    run = make_run()
    found = table([Row("erm", "airfoil", "erm", "paper", (run,))], [finish(run, 131_046.2)])
    assert found.tables()["paper protocol"].rows[0][1] == "131,046"


def test_tuned_rows_are_compared_with_plain_training():
    rows, done = make_tuned()
    tuned = table(rows, done).tuned
    assert tuned.comparison.row("mixup").change == pytest.approx(-25, abs=0.5)
    assert (tuned.comparison.metric, tuned.comparison.unit) == ("rmse", "percent")
    assert "mixup lowers" in tuned.verdict
    assert set(tuned.best) == {"erm", "mixup"}
    assert tuned.search == "2 settings of each method on 5 splits, at most 100 epochs."
    chosen = {run.key for row in rows for run in row.runs if run.trial == 0}
    assert {key for keys in tuned.keys.values() for key in keys} == chosen
    assert table(rows, done[:1]).tuned is None  # nothing that both have tried


def test_what_was_measured_survives_json():
    rows, done = make_tuned()
    runs = tuple(make_run(split=seed) for seed in range(3))
    rows.append(Row("erm", "airfoil", "erm", "paper", runs, epochs=100))
    found = table(rows, [*done, *(finish(run, 2.5 + 0.1 * run.split) for run in runs)])
    assert Measured.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert len(found.keys) == 3 + 10


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (Size(), ""),
        (Size(epochs=7, trials=0.4), "at most 7 epochs in the paper's protocol, 40 % of the set"),
        (Size(epochs=7, protocols=("paper",)), "short: at most 7 epochs in the paper's protocol."),
        (Size(trials=0.4, epochs=7, protocols=("tuned",)), "short: 40 % of the settings that"),
    ],
)
def test_what_is_cut_short_is_said_of_the_protocols_that_are_run(size, words):
    found = measure(EXPERIMENTS["in-distribution"], DATA, [], {}, size=size, command="")
    assert words in found.size
    assert bool(words) == bool(found.size)


def test_rows_that_a_later_command_has_nothing_of_stay_with_the_command_that_ran_them():
    def line(label, mean, done=3):
        figures = (Figure("rmse", "average", mean, 0.1, 3),) if done else ()
        return Line(label, label, figures, done, 3, 10, 10, ())

    old = (line("erm", 3.0), line("mixup", 2.0))
    before = Measured("in-distribution", "airfoil", "", "Cut short.", "before", old)
    new = (line("erm", 1.0), line("mixup", 0.0, done=0), line("ada", 4.0))
    found = Measured("in-distribution", "airfoil", "", "", "after", new).on_top_of(before)
    assert [own.label for own in found.paper] == ["erm", "mixup", "ada"]
    assert [own.figures[0].mean for own in found.paper] == [1.0, 2.0, 4.0]
    assert [own.command for own in found.paper] == ["", "before", ""]
    assert (found.command, found.size) == ("after", "Cut short.")
    notes = found.tables()["paper protocol"].notes
    assert notes[-2:] == ["By `before`: mixup.", "Made by: after"]
    again = Measured("in-distribution", "airfoil", "", "", "after", (line("mixup", 5.0),))
    assert [own.command for own in again.on_top_of(found).paper] == ["after", "", "after"]

"""From finished runs to a table: means, standard errors apart, and what is not finished."""

import math

import pytest

from regaug.reproduction import published
from regaug.reproduction.measured import choose, measure
from regaug.reproduction.recipes import paper_settings
from regaug.reproduction.sources import Source
from regaug.reproduction.tables import EXPERIMENTS, Row, Size
from regaug.reproduction.words import as_markdown, measured_tables
from regaug.reproduction.work import Run
from regaug.runs.store import StoredRun

SOURCE = Source("airfoil", "airfoil", "", load=None)


def make_run(method="erm", split=0, trial=None, protocol="paper"):
    settings = paper_settings("airfoil", method, seed=split)
    return Run("airfoil", "airfoil", protocol, method, split, settings, trial)


def finish(run, test, validation=1.0):
    numbers = {"rmse": test, "mape": test / 2, "mae": test, "r2": 0.5, "pearson": 0.7}
    scores = {"test": numbers, "validation": numbers | {"rmse": validation}}
    result = {"scores": scores, "sizes": [60, 20, 20], "ending": "finished"}
    return StoredRun(run.key, run.describe(), result)


def table(rows, done):
    results = {stored.key: stored for stored in done}
    return measure(
        EXPERIMENTS["in-distribution"], SOURCE, rows, results, size=Size(), command="the command"
    )


def test_means_stand_beside_the_published_ones_in_standard_errors():
    runs = tuple(make_run(split=seed) for seed in range(3))
    row = Row("erm", "airfoil", "erm", "paper", runs)
    found = table([row], [finish(run, 2.5 + 0.1 * run.split) for run in runs])
    figure = found.paper[0].figures[0]
    cell = published.cell("airfoil", "erm", "rmse")
    assert (figure.mean, figure.sd, figure.n) == (pytest.approx(2.6), pytest.approx(0.1), 3)
    error = math.sqrt(0.1**2 / 3 + cell.sd**2 / 3 + 0.001**2 / 12)
    assert figure.apart == pytest.approx((2.6 - cell.mean) / error)
    assert figure.published == "2.901 ± 0.067"


def test_of_several_settings_the_validation_error_chooses():
    runs = tuple(make_run("noise", split, trial) for split in range(2) for trial in range(2))
    row = Row("noise", "airfoil", "noise", "paper", runs)
    results = {
        run.key: finish(run, test=10 * run.trial + run.split, validation=5 - run.trial)
        for run in runs
    }
    assert [run.result["scores"]["test"]["rmse"] for run in choose(row, results)] == [10, 11]
    results.pop(runs[-1].key)  # the second split has not tried both
    assert [run.run["split"] for run in choose(row, results)] == [0]


def test_what_is_not_finished_is_said():
    runs = tuple(make_run(split=seed) for seed in range(3))
    found = table([Row("erm", "airfoil", "erm", "paper", runs)], [finish(runs[0], 2.5)])
    line = found.paper[0]
    assert (line.done, line.planned) == (1, 3)
    assert line.figures[0].sd is line.figures[0].apart is None
    text = next(measured_tables(found.to_dict()))
    assert text.rows[0][0] == "erm, 1 of 3 runs"
    assert "| 2.5 | 2.901 ± 0.067 (quoted) |  |" in as_markdown(text)


def test_tuned_rows_are_compared_with_plain_training():
    rows, done = [], []
    for method, shift in (("erm", 0.0), ("mixup", -0.5)):
        runs = tuple(
            make_run(method, split, trial, "tuned") for trial in range(2) for split in range(5)
        )
        rows.append(Row(method, "airfoil", method, "tuned", runs))
        done += [finish(run, 2 + shift + 0.01 * run.split, validation=run.trial) for run in runs]
    found = table(rows, done)
    tuned = {row["name"]: row for row in found.tuned}
    assert tuned["mixup"]["change"] == pytest.approx(-25, abs=0.5)
    assert "mixup lowers" in found.verdict
    assert set(found.best) == {"erm", "mixup"}
    assert table(rows, done[:1]).tuned == ()  # nothing that both have tried


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (Size(), ""),
        (Size(epochs=7, trials=0.4), "at most 7 epochs in the paper's protocol, 40% of the set"),
        (Size(epochs=7, protocols=("paper",)), "budget: at most 7 epochs in the paper's protocol."),
        (Size(trials=0.4, epochs=7, protocols=("tuned",)), "budget: 40% of the settings that"),
    ],
)
def test_what_is_cut_short_is_said_of_the_protocols_that_are_run(size, words):
    found = measure(EXPERIMENTS["in-distribution"], SOURCE, [], {}, size=size, command="")
    assert words in found.size
    assert bool(words) == bool(found.size)

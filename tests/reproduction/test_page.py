"""The page of findings: every figure in it is that of a run that is kept with the code."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import pytest

from regaug.exceptions import OverwriteError, RegaugError
from regaug.reproduction.measured import Figure, Line, Measured, Tuned
from regaug.reproduction.page import collect, main, make_page, read_table, summarize
from regaug.reproduction.problems import PaperData
from regaug.reproduction.recipes import paper_settings
from regaug.reproduction.tables import EXPERIMENTS, Size, make_rows
from regaug.reproduction.timing import Times
from regaug.runs.store import Store
from regaug.studies.statistics import analyze

PROJECT = Path(__file__).resolve().parents[2]
KEPT = PROJECT / "benchmarks" / "results" / "reproduction"
TABLES = sorted((KEPT / "tables").glob("*.json"))


@pytest.fixture(scope="module")
def records():
    store = Store.open(KEPT)
    found = store.records()
    assert store.damaged == []
    return found


def score(record, figure):
    if figure.domain == "worst":
        return record.scores["test"].worst(figure.metric)[1]
    return record.score("test-unshifted" if figure.domain == "unshifted" else "test", figure.metric)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_figure_is_the_mean_of_runs_that_are_kept(path, records):
    found = read_table(path)
    assert set(found.keys) <= set(records)
    if isinstance(found, Times):
        own = [records[key] for key in found.keys]
        for row in found.rows:
            seconds = [
                record.seconds / record.epochs
                for record in own
                if (record.run.method, record.run.settings.method_settings.get("place"))
                == (row.method, row.place)
            ]
            assert len(seconds) == found.rounds
            assert row.seconds == median(seconds)
        return
    checked = 0
    for line in found.paper:
        own = [records[key] for key in line.keys]
        for figure in line.figures:
            values = [value for record in own if (value := score(record, figure)) is not None]
            assert figure.mean == pytest.approx(fmean(values), rel=1e-9)
            checked += 1
    assert checked
    if found.tuned is not None:
        metric = found.tuned.comparison.metric
        for row in found.tuned.comparison.rows:
            values = [records[key].score("test", metric) for key in found.tuned.keys[row.name]]
            assert row.mean == pytest.approx(fmean(values), rel=1e-9)


@pytest.mark.parametrize("name", ["airfoil", "no2", "exchange-rate", "crimes"])
def test_the_statistics_that_are_kept_are_those_of_their_errors(name):
    kind = "out-of" if name == "crimes" else "in"
    kept = read_table(KEPT / "tables" / f"{kind}-distribution-{name}.json").tuned.comparison
    again = analyze(
        {row.name: row.errors for row in kept.rows},
        metric=kept.metric,
        reference=kept.reference,
        baselines=[row.name for row in kept.rows if row.is_baseline],
        test_share=kept.test_share,
        independent=kept.independent,
        level=kept.level,
    )
    assert again == kept


def test_the_command_finds_the_runs_that_are_kept(made_up, records):
    data = PaperData("airfoil", "airfoil")
    for name in ("in-distribution", "batches", "noise"):
        rows = make_rows(EXPERIMENTS[name], data, size=Size(protocols=("paper",)))
        planned = {run.key for row in rows for run in row.runs}
        found = read_table(KEPT / "tables" / f"{name}-airfoil.json")
        paper = {key for line in found.paper for key in line.keys}
        assert paper <= planned


def test_the_page_is_what_the_tables_say():
    assert (PROJECT / "docs" / "reproduction.md").read_text() == make_page(KEPT)


def test_what_is_collected_is_what_the_tables_are_made_from(tmp_path):
    collect(KEPT, tmp_path)
    assert Store.open(tmp_path).done() == Store.open(KEPT).done()
    assert make_page(tmp_path) == make_page(KEPT)
    assert [path.name for path in tmp_path.glob("runs-*")] == ["runs-1.jsonl"]


# Sentences


def make_line(label, mean, metric, **published):
    figure = Figure(metric, "average", mean, 0.01, 3, **published)
    return Line(label, label.split(",")[0], (figure,), 3, 3, 10, 10, ())


def make_tuned(metric, errors):
    own = {"sampler": "random", "place": "input", "k": 2, "p": 1.0, "anneal": None}
    settings = replace(paper_settings("airfoil", "foma", seed=0), method_settings=own)
    comparison = analyze(errors, metric=metric, test_share=0.25)
    return Tuned(comparison, {}, dict.fromkeys(("foma", "foma-rho"), settings), "a search")


def sentences(lines, metric, tuned=None, size=""):
    paper = tuple(make_line(label, mean, metric) for label, mean in lines.items())
    data = "dti" if metric == "pearson" else "airfoil"
    found = Measured("out-of-distribution", data, "a note", size, "", paper, tuned)
    return list(summarize(found))


def test_of_correlations_the_higher_is_the_better_and_changes_are_no_percentages():
    lines = {"erm": 0.30, "foma": 0.36, "foma-rho": 0.24, "mean": 0.0, "ridge": 0.46}
    told = sentences(lines, "pearson")
    assert told[1] == (
        "In the paper's protocol, by Pearson's R, foma is better by 0.06 than plain training and "
        "foma-rho is worse by 0.06 than plain training here."
    )
    assert told[2] == (
        "Plain training (Pearson's R 0.3) is beaten by ridge (Pearson's R 0.46), without a net."
    )
    assert not any("%" in sentence for sentence in told)


def test_of_errors_the_lower_is_the_better_and_changes_are_percentages():
    lines = {"erm": 2.0, "foma": 1.5, "foma-rho": 3.0, "mean": 6.0, "boosting": 1.0}
    told = sentences(lines, "rmse")
    assert told[1] == (
        "In the paper's protocol, by RMSE, foma is 25 % better than plain training and foma-rho is "
        "50 % worse than plain training here."
    )
    assert told[2] == "Plain training (RMSE 2) is beaten by boosting (RMSE 1), without a net."


@pytest.mark.parametrize(
    ("metric", "better", "change"),
    [
        ("pearson", "foma-rho", "Pearson's R +0.100 against"),
        ("rmse", "foma", "RMSE \N{MINUS SIGN}20.0 % aga"),
    ],
)
def test_the_better_foma_has_the_better_metric(metric, better, change):
    errors = {"erm": [0.5, 0.5, 0.5], "foma": [0.4, 0.4, 0.4], "foma-rho": [0.6, 0.6, 0.6]}
    told = sentences({}, metric, make_tuned(metric, errors))[-1]
    assert told.startswith(f"The better FOMA is {better}: {change}")
    assert ("%" in told.split("95 % interval")[1]) is False


def test_plain_training_that_is_far_worse_is_told_in_the_direction_of_the_metric():
    def told(metric, own, plain):
        published = {"published": "1", "published_mean": 1.0, "source": "own", "apart": 9.0}
        paper = (
            make_line("erm", own, metric),
            make_line("foma", own, metric, **published),
            make_line("erm, trained as foma", plain, metric),
        )
        data = "dti" if metric == "pearson" else "airfoil"
        found = Measured("in-distribution", data, "", "", "", paper)
        return any("too few steps" in sentence for sentence in summarize(found))

    assert told("rmse", 1.0, 2.0)
    assert not told("rmse", 2.0, 1.0)
    assert told("pearson", 0.6, 0.1)
    assert not told("pearson", 0.1, 0.6)


def test_a_single_split_has_no_interval_to_tell():
    errors = {"erm": [1.0], "foma": [0.9]}
    told = sentences({}, "rmse", make_tuned("rmse", errors))[-1]
    change = "RMSE \N{MINUS SIGN}10.0 % against tuned plain training, with random"
    assert told.startswith(f"The better FOMA is foma: {change}")


def test_the_page_replaces_a_page_and_nothing_else(tmp_path):
    page, notes, table = (tmp_path / name for name in ("page.md", "notes.md", "houses.csv"))
    for _ in range(2):
        main([str(KEPT), str(page)])
    assert page.read_text() == make_page(KEPT)
    notes.write_text("mine")
    table.write_text("mine")
    for path, message in ((notes, "`path` must be new"), (table, r"`path` must end in \.md")):
        with pytest.raises(RegaugError, match=message):
            main([str(KEPT), str(path)])
        assert path.read_text() == "mine"
    with pytest.raises(OverwriteError, match="`folder` must not hold other things"):
        collect(KEPT, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3

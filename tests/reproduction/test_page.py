"""The page of findings: every figure in it is that of a run that is kept with the code."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import pytest

from regaug import formatting
from regaug.exceptions import OverwriteError, RegaugError
from regaug.metrics import METRICS
from regaug.reproduction import answers, conclusions, differences, picture, published
from regaug.reproduction.conclusions import summarize
from regaug.reproduction.measured import Figure, Line, Measured, Tuned
from regaug.reproduction.page import (
    collect,
    compared_tables,
    main,
    make_page,
    read_counted,
    read_table,
    read_tables,
)
from regaug.reproduction.problems import PaperData
from regaug.reproduction.recipes import SERIES, metric_of, paper_settings
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
    checked = len(found.tuned.comparison.rows) if found.experiment == "tuned" else 0
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
            # Of a study the errors by split are kept: its rows are ensembles of many runs.
            keys = found.tuned.keys.get(row.name)
            values = row.errors
            if found.experiment != "tuned":
                values = [records[key].score("test", metric) for key in keys]
            assert row.mean == pytest.approx(fmean(values), rel=1e-9)


STUDIES = sorted((KEPT / "tables").glob("tuned-*.json"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_statistics_that_are_kept_are_those_of_their_errors(path):
    found = read_table(path)
    kept = found.tuned.comparison
    assert kept.n_splits == 10
    assert found.command.startswith(f"python -m benchmarks.paper runs {found.data}")
    written = json.loads(path.read_text())["tuned"]["comparison"]
    for row in written["rows"]:
        own = kept.row(row["name"])
        assert own.mean == pytest.approx(row["mean"])
        assert own.change_low == pytest.approx(row["change_low"])
    again = analyze(
        {row.name: row.errors for row in kept.rows},
        metric=kept.metric,
        reference=kept.reference,
        baselines=[row.name for row in kept.rows if row.is_baseline],
        combined=[row.name for row in kept.rows if row.is_combined],
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
        # A kernel that is scaled along with the targets depends on the rows, which are made up.
        lines = [line for line in found.paper if not line.label.startswith("c-mixup; targets")]
        assert {key for line in lines for key in line.keys} <= planned


def test_the_page_is_what_the_tables_say():
    assert (PROJECT / "docs" / "reproduction.md").read_text() == make_page(KEPT)


def test_what_is_collected_is_what_the_tables_are_made_from(tmp_path):
    collect(KEPT, tmp_path)
    assert Store.open(tmp_path).done() == Store.open(KEPT).done()
    assert make_page(tmp_path) == make_page(KEPT)
    assert [path.name for path in tmp_path.glob("runs-*")] == ["runs-1.jsonl"]


# The answer, the picture and the reasons


@pytest.fixture(scope="module")
def compared():
    return compared_tables(read_tables(KEPT))


def mean_of(found, label, records):
    """Compute a figure once more, from the runs themselves."""
    (line,) = (own for own in found.paper if own.label == label)
    metric = line.figures[0].metric
    return fmean(records[key].score("test", metric) for key in line.keys)


def test_every_figure_of_the_answer_is_that_of_kept_runs_or_of_the_paper(compared, records):
    rows = {row[0].split("**")[1]: row for row in answers.make_table(compared).rows}
    assert list(rows) == [found.data for found in compared]
    for found in compared:
        row, own = rows[found.data], answers.Rows(found)
        metric = metric_of(found.data)
        error = METRICS[metric].error
        if found.paper:
            assert float(row[1]) == published.cell(found.data, "erm", metric).mean
            both = [published.cell(found.data, name, metric).mean for name in ("foma", "foma-rho")]
            assert float(row[2].split()[0]) == min(both, key=error)
        else:
            assert row[1:3] == ["", ""]
        shown = ((3, own.erm), (4, own.foma), (5, own.scaled_erm), (6, own.scaled_foma))
        for column, best in (*shown, (9, own.baseline)):
            if best is None:
                assert row[column] == ""
                continue
            again = mean_of(found, best.line.label, records)
            assert row[column].split()[0] == formatting.short(again)
        if found.tuned is not None:
            values = found.tuned.comparison.row("erm").errors
            if found.tuned.keys:
                values = [records[key].score("test", metric) for key in found.tuned.keys["erm"]]
            assert row[7] == formatting.number(fmean(values))
            best = answers.best_foma(found.tuned)
            change = found.tuned.comparison.row(best).change
            assert row[8].startswith(formatting.change(change, found.tuned.comparison.unit))
            beside = [own for own in found.tuned.comparison.rows if own.is_baseline]
            least = min((fmean(own.errors) for own in beside), key=error, default=None)
            assert row[10].startswith(formatting.number(least) if beside else "")


def test_the_best_row_is_the_one_with_the_lowest_error(compared, records):
    for found in compared:
        best = answers.Rows(found).foma
        assert (best is None) == (not found.paper)
        for line in found.paper:
            if line.label in ("foma", "foma-rho", "foma-rho, released") and line.figures:
                error = METRICS[best.figure.metric].error
                assert error(best.figure.mean) <= error(mean_of(found, line.label, records))


def test_a_point_of_the_picture_has_a_published_figure_and_runs(compared, records):
    points = picture.list_points(compared)
    assert len(points) > 20
    by_data = {found.data: found for found in compared}
    for point in points:
        found = by_data[point.data]
        (line,) = (own for own in found.paper if own.label == point.label)
        is_done = line.epochs == line.of_epochs and line.done == line.planned
        assert point.is_whole == (not found.note and is_done)
        if point.metric in ("RMSE", "Pearson's R"):
            again = mean_of(found, point.label, records)
            assert point.measured == pytest.approx(again)
        assert point.published in {cell.mean for cell in published.cells(data=point.data)}
    page = make_page(KEPT)
    assert f"![{picture.say_points(points)}](figures/published.png)" in page
    for ending in ("png", "svg"):
        assert (PROJECT / "docs" / "figures" / f"published.{ending}").exists()


def test_shares_of_changed_batches_are_those_of_the_kept_cuts(compared, records):
    checked, counted = 0, read_counted(KEPT)
    for found in compared:
        for line in found.paper:
            if line.cut is None:
                known = counted.get(found.data, {}).get(line.label)
                if known is not None:
                    share = formatting.percent(known.share)
                    told = f"| {found.data} | {line.label} | {share} | {known.k} |"
                    assert told in make_page(KEPT)
                continue
            own = [records[key] for key in line.keys]
            total = sum(count for record in own for *_, count in record.cuts)
            scale = own[0].run.settings.method_settings["scale"]
            idle = sum(
                count
                for record in own
                for k, values, count in record.cuts
                if k in ((0, -1) if scale == "leading" else (values, -1))
            )
            assert (line.cut.batches, line.cut.changed) == (total, total - idle)
            assert f"| {found.data} | {line.label} | {formatting.percent(1 - idle / total)} |" in (
                make_page(KEPT)
            )
            checked += 1
    assert checked >= 12


def test_the_answer_names_the_printed_settings_that_change_no_batch(compared):
    counted = read_counted(KEPT)
    (told,) = (
        line for line in conclusions.say_answer(compared, counted).splitlines() if "batch" in line
    )
    first, second = told.split(" and by ")
    for name, said in (("foma", first), ("foma-rho", second)):
        for found in compared:
            lines = [line for line in found.paper if line.label == name]
            cuts = [line.cut or counted.get(found.data, {}).get(name) for line in lines]
            is_idle = any(cut is not None and cut.changed == 0 for cut in cuts)
            assert (found.data in said) == is_idle
    assert "Not a single" not in conclusions.say_answer([found for found in compared if found.note])


def test_on_airfoil_table_9_changes_nothing_and_is_plain_training_on_close_batches(compared):
    (found,) = (own for own in compared if own.data == "airfoil")
    lines = {line.label: line for line in found.paper}
    assert lines["foma-rho"].cut.changed == 0
    plain = lines["erm, trained as foma-rho, nearest batches"]
    assert plain.figures[0].mean == pytest.approx(lines["foma-rho"].figures[0].mean, rel=1e-3)


def test_plain_training_with_scaled_targets_is_below_1_9_on_airfoil(compared):
    (found,) = (own for own in compared if own.data == "airfoil")
    lines = {line.label: line for line in found.paper}
    scaled = [lines[f"erm; targets {scaling}"] for scaling in ("min-max", "standardized")]
    assert {own.figures[0].n for own in scaled} == {3}
    assert min(own.figures[0].mean for own in scaled) < 1.9


def test_ada_on_airfoil_is_within_two_standard_errors_of_its_published_figure(compared):
    (found,) = (own for own in compared if own.data == "airfoil")
    (ada,) = (line.figures[0] for line in found.paper if line.label == "ada")
    assert abs(ada.apart) <= 2


def test_the_first_part_answers_and_the_page_has_its_parts_in_order():
    page = make_page(KEPT)
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Does FOMA work?",
        "## Why do the published gains not appear?",
        "## When does it help?",
        "## Every table and figure of the paper",
        "## Differences between paper and scripts",
    ]
    first = page[: page.index("## Why")]
    assert "is better than plain training, beyond chance, on" in first
    assert "likely" in page
    for table in ("tables 3 and 10", "tables 4 and 11", "table 1", "table 5", "tables 6 and 7"):
        assert table in page


def test_every_difference_says_what_is_done_here():
    assert len(differences.ROWS) > 20
    assert all(all(cells) for cells in differences.ROWS)
    assert len({what for what, *_ in differences.ROWS}) == len(differences.ROWS)


def test_no_row_of_a_series_that_was_trained_to_the_end_has_clipped_gradients(compared, records):
    lines = [line for found in compared if found.data in SERIES for line in found.paper]
    for line in lines:
        if line.epochs is not None and not line.is_cut:
            assert all(records[key].run.settings.clip is None for key in line.keys)
    said = next(own for what, _, own in differences.ROWS if what == "series")
    assert "cut short were run with the clip" in said


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
    assert len(list(tmp_path.iterdir())) == 4  # the picture's folder among them


def test_on_airfoil_with_scaled_targets_every_foma_is_worse_than_plain_training_alike(compared):
    (found,) = (own for own in compared if own.data == "airfoil")
    means = {line.label: line.figures[0].mean for line in found.paper}
    for scaling in ("min-max", "standardized"):
        for name in ("foma", "foma-rho", "foma-rho, released"):
            own = means[f"{name}; targets {scaling}"]
            assert own > means[f"erm, trained as {name}; targets {scaling}"]
            assert own > means[f"erm, trained as {name}, nearest batches; targets {scaling}"]


def test_runs_that_came_out_otherwise_need_all_tables_that_are_made_from_them(tmp_path, records):
    old, new = tmp_path / "old", tmp_path / "new"
    collect(KEPT, old)
    (new / "tables").mkdir(parents=True)
    name = "batches-airfoil.json"
    (new / "tables" / name).write_bytes((KEPT / "tables" / name).read_bytes())
    store = Store(new, Store.open(KEPT).configuration)
    for key in read_table(KEPT / "tables" / name).keys:
        store.add(replace(records[key], seconds=1.0))
    with pytest.raises(RegaugError, match="must have .*noise on airfoil.* too, since it has other"):
        collect(new, old)
    assert make_page(old) == make_page(KEPT)

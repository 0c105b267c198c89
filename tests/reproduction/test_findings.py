"""The page of findings: every figure in it is that of a run that is kept with the code."""

import json
from pathlib import Path
from statistics import fmean

import pytest

from regaug.reproduction.page import collect, make_page
from regaug.reproduction.recipes import metric_of
from regaug.runs.store import Store

PROJECT = Path(__file__).resolve().parents[2]
KEPT = PROJECT / "benchmarks" / "results" / "reproduction"
TABLES = sorted((KEPT / "tables").glob("*.json"))


@pytest.fixture(scope="module")
def runs():
    store = Store.open(KEPT)
    found = store.results()
    assert store.damaged == []
    return found


def score(run, figure):
    part = "test-unshifted" if figure["domain"] == "unshifted" else "test"
    scores = run.result["scores"][part]
    return (scores["worst"] if figure["domain"] == "worst" else scores)[figure["metric"]]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_figure_is_the_mean_of_runs_that_are_kept(path, runs):
    found = json.loads(path.read_text())
    checked = 0
    for line in found.get("paper", ()):
        own = [runs[key] for key in line["keys"]]
        for figure in line["figures"]:
            values = [value for run in own if (value := score(run, figure)) is not None]
            assert figure["mean"] == pytest.approx(fmean(values), rel=1e-9)
            checked += 1
    for row in found.get("tuned", ()):
        metric = metric_of(found["data"])
        values = [runs[key].result["scores"]["test"][metric] for key in row["keys"]]
        assert row["mean"] == pytest.approx(fmean(values), rel=1e-9)
        checked += 1
    for row in found.get("rows", ()):  # times
        assert row["seconds"] > 0
        checked += 1
    assert checked


def test_the_page_is_what_the_tables_say():
    assert (PROJECT / "docs" / "reproduction.md").read_text() == make_page(KEPT)


def test_what_is_collected_is_what_the_tables_are_made_from(tmp_path):
    collect(KEPT, tmp_path)
    assert Store.open(tmp_path).done() == Store.open(KEPT).done()
    assert make_page(tmp_path) == make_page(KEPT)
    assert [path.name for path in tmp_path.glob("runs-*")] == ["runs-1.jsonl"]

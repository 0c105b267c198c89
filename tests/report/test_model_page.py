"""The page of a fitted model: everything is there, escaped, and nothing is claimed without rows."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from regaug.data import load, read_table
from regaug.ensemble import fit
from regaug.report.model_page import render_model
from regaug.report.plots_model import draw_coverage, draw_diagnosis, draw_importance
from regaug.report.plots_residuals import draw_columns, draw_groups

HOSTILE = "<script>alert('1')</script>"


def make_frame(n=150):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=n), HOSTILE: rng.choice(["a", "b", HOSTILE], n)})
    frame["place"] = rng.permutation(np.arange(n) % 30).astype(str)
    frame["price"] = 1e5 * frame["size"] + 5e4 * (frame[HOSTILE] == "a") + rng.normal(size=n)
    frame["rent"] = 0.01 * frame["size"] + 0.001 * rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def model():
    table = read_table(make_frame(), target=["price", "rent"], group="place")
    return fit(table, method="ridge")


@pytest.fixture(scope="module")
def found(model):
    return model.diagnose()


@pytest.fixture(scope="module")
def page(found):
    return render_model(found)


def test_everything_is_there(page, found):
    for name in (
        *("importance", "predicted", "residuals", "column-1", "column-2", "groups", "coverage"),
        *("predicted-2", "residuals-2", "groups-2", "coverage-2"),
    ):
        assert f'id="plot-model-{name}"' in page
    assert "ridge: 8 models" in page
    assert f"{found.scores.n} rows that were put aside before anything was learned" in page
    assert "RMSE / spread" in page
    assert page.count("<tr>") == 1 + 2 + 1 + len(found.scores.groups)


def test_names_are_escaped_and_no_script_runs(page):
    assert "<script" not in page
    assert "&lt;script" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_the_same_model_gives_the_same_page(found, page):
    assert render_model(found) == page


def test_python_writes_it(model, tmp_path):
    path = model.report(tmp_path / "new" / "model.html")
    assert path.read_text(encoding="utf-8") == render_model(model.diagnose())
    loaded = replace(model, evidence=None)
    other = loaded.report(tmp_path / "other.html", make_frame()).read_text(encoding="utf-8")
    assert "150 rows that it was given" in other
    assert "that neither trained the model nor measured its intervals" in other


def test_a_blend_shows_its_shares(found):
    blend = replace(found, shares={"ridge": 0.6, "gp": 0.4}, what="auto: ridge 60 %, gp 40 %")
    assert 'id="plot-model-shares"' in render_model(blend)
    assert "auto: ridge 60\u00a0%, gp 40\u00a0%" in render_model(blend)


def test_what_is_not_known_is_left_out_and_said(found):
    few = replace(found, coverage=(), groups=(), columns={}, notes=("The time was up.",))
    few = replace(few, importances=replace(found.importances, columns=()))
    few = replace(few, scores=replace(found.scores, groups={}))
    page = render_model(few)
    assert "model-coverage" not in page
    assert "How many rows lie in their intervals is left out" in page
    assert "there are too many columns" in page
    assert '<p class="warning">The time was up.</p>' in page
    assert not draw_columns(few)
    assert draw_groups(few) is None
    assert draw_importance(few) is None


def test_the_band_is_that_of_the_binomial_distribution(found):
    from scipy.stats import binom

    plot = draw_coverage(found)
    low, high = binom.interval(0.95, found.coverage[0].rows, 0.5)
    area = re.search(r'class="area" d="M([^"]*)"', plot.svg)[1].split("L")
    heights = [float(point.split()[1]) for point in area]
    middle = heights[20], heights[-21]
    rows = found.coverage[0].rows
    for height, share in zip(middle, (low / rows, high / rows), strict=True):
        assert height == pytest.approx(280.0 + share * (12.0 - 280.0), abs=0.1)
    assert "a fifth of the groups" in plot.caption


def test_one_column_and_one_target_are_enough():
    model = fit(load("synthetic-sine", n=40), method="ridge")
    plots = draw_diagnosis(model.diagnose())
    assert {"model-importance", "model-predicted", "model-residuals", "model-column-1"} <= set(
        plots
    )
    assert "Each target" not in render_model(model.diagnose())

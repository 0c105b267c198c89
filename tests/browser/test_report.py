"""The report in a real browser: everything is there, fits the screen, and nothing complains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.browser.chromium import Browser

from regaug.data import read_table
from regaug.ensemble import fit
from regaug.report import write_report
from regaug.report.drawing import DARK, LIGHT
from regaug.report.plots import draw_plots
from regaug.report.plots_model import draw_diagnosis
from regaug.studies.compare import compare
from regaug.studies.facts import describe

pytestmark = pytest.mark.serial

HOSTILE = "<script>console.error('ran')</script>"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """The report of a small real study with groups and a hostile name, and its plots' names."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["size", HOSTILE, "age"])
    frame["city"] = rng.permutation(["Oslo", "Rome", "Paris", "Kyoto", HOSTILE, "Lima"] * 20)
    frame["price"] = frame["size"] * 3 + rng.normal(size=120)
    table = read_table(frame, target="price", group="city")
    facts = describe(table.split(), f"{table.summary}\n{HOSTILE}: a number column")
    study = compare(table, methods=["erm", "mixup"], trials=1, splits=3)
    study = replace(study, facts=facts)
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(study, path), set(draw_plots(study))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390, 360])
def test_everything_is_there_and_fits_the_screen(
    browser: Browser, report: tuple[Path, set[str]], width: int, dark: bool, tmp_path: Path
) -> None:
    path, names = report
    browser.open(path, width=width, dark=dark)
    assert "plain" in browser.run("return document.getElementById('verdict').innerText")
    rows = browser.run("return document.querySelectorAll('#table-leaderboard tbody tr').length")
    assert rows == 9  # two nets, five baselines and two that are made of them
    shown = browser.run(
        "return [...document.querySelectorAll('figure')].filter(figure => {"
        "  const box = figure.querySelector('svg').getBoundingClientRect();"
        "  return box.width > 250 && box.height > 100 && box.right <= innerWidth;"
        "}).map(figure => figure.id.slice(5))"
    )
    assert set(shown) == names
    assert {"leaderboard", "splits", "singular-values", "two-nn", "groups"} <= names
    assert browser.run("return innerWidth") == width
    assert browser.run("const root = document.documentElement; return root.scrollWidth") <= width
    assert browser.errors() == []
    browser.save_screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_dark_mode_changes_page_and_plots(browser: Browser, report: tuple[Path, set[str]]) -> None:
    colors = """
        const of = (element, name) => getComputedStyle(document.querySelector(element))[name];
        return [of('body', 'backgroundColor'), of('body', 'color'), of('.plot .muted', 'fill')];
    """
    for dark, palette in ((False, LIGHT), (True, DARK)):
        browser.open(report[0], width=1280, dark=dark)
        assert browser.run(colors) == [_rgb(palette[name]) for name in ("paper", "ink", "muted")]


def _rgb(color: str) -> str:
    """Return a color as a browser does: ``#ff0010`` is ``rgb(255, 0, 16)``."""
    return f"rgb({', '.join(str(number) for number in bytes.fromhex(color[1:]))})"


def test_print_is_light_and_without_navigation(
    browser: Browser, report: tuple[Path, set[str]]
) -> None:
    browser.open(report[0], width=1280, dark=True, media="print")
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == _rgb(LIGHT["paper"])
    assert browser.run("return document.querySelector('nav').offsetHeight") == 0


def test_names_of_the_user_are_text(browser: Browser, report: tuple[Path, set[str]]) -> None:
    browser.open(report[0], width=390)
    assert browser.run("return document.scripts.length") == 0
    assert HOSTILE in browser.run("return document.getElementById('columns').innerText")
    assert browser.errors() == []


def test_the_keyboard_reaches_every_scroll_area(
    browser: Browser, report: tuple[Path, set[str]]
) -> None:
    browser.open(report[0], width=390)
    unreachable = browser.run(
        "return [...document.querySelectorAll('body *')].filter(element => "
        "  element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0 &&"
        "  ['auto', 'scroll'].includes(getComputedStyle(element).overflowX) &&"
        "  element.tabIndex < 0).map(element => element.outerHTML.slice(0, 80))"
    )
    assert unreachable == []


@pytest.mark.parametrize("width", [390, 360])
def test_the_leaderboard_does_not_run_off_a_phone(
    browser: Browser, report: tuple[Path, set[str]], width: int
) -> None:
    browser.open(report[0], width=width)
    box = "document.getElementById('table-leaderboard').parentElement"
    assert browser.run(f"return {box}.scrollWidth <= {box}.clientWidth")
    text = browser.run("return document.getElementById('table-leaderboard').innerText")
    for words in ("RMSE", "Change", "tier 1", "won "):  # what has no column of its own there
        assert words in text
    browser.open(report[0], width=1280)
    assert (
        browser.run("return document.querySelector('#table-leaderboard .narrow').offsetHeight") == 0
    )
    assert browser.run("return document.querySelector('#table-leaderboard .wide').offsetHeight") > 0


def test_nothing_runs_off_the_paper(browser: Browser, report: tuple[Path, set[str]]) -> None:
    browser.open(report[0], width=794, media="print")  # A4
    assert browser.run("const root = document.documentElement; return root.scrollWidth") <= 794


@pytest.fixture(scope="module")
def model_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """The page of a small real model of two targets with groups and hostile names."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["size", HOSTILE])
    frame["city"] = rng.choice(["Oslo", "San Pedro de Atacama", HOSTILE], 200)
    frame["place"] = rng.permutation(np.arange(200) % 40)
    frame["price"] = 1e6 * frame["size"] + 1e6 * (frame["city"] == "Oslo") + rng.normal(size=200)
    frame["share"] = 0.01 * frame[HOSTILE] + 0.001 * rng.normal(size=200)
    model = fit(read_table(frame, target=["price", "share"], group="place"), method="ridge")
    found = model.diagnose()
    path = model.report(tmp_path_factory.mktemp("model") / "model.html")
    return path, set(draw_diagnosis(found))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390, 360])
def test_the_page_of_a_model_fits_the_screen(
    browser: Browser, model_page: tuple[Path, set[str]], width: int, dark: bool
) -> None:
    path, names = model_page
    browser.open(path, width=width, dark=dark)
    shown = browser.run(
        "return [...document.querySelectorAll('figure')].filter(figure => {"
        "  const box = figure.querySelector('svg').getBoundingClientRect();"
        "  return box.width > 250 && box.height > 60 && box.right <= innerWidth;"
        "}).map(figure => figure.id.slice(5))"
    )
    assert set(shown) == names
    assert {"model-importance", "model-residuals", "model-groups", "model-coverage"} <= names
    assert browser.run("const root = document.documentElement; return root.scrollWidth") <= width
    assert browser.run("return document.scripts.length") == 0
    assert browser.errors() == []
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == _rgb((DARK if dark else LIGHT)["paper"])


def test_no_two_texts_of_a_plot_overlap(
    browser: Browser, model_page: tuple[Path, set[str]]
) -> None:
    browser.open(model_page[0], width=1280)
    overlapping = browser.run(
        "const found = [];"
        "for (const plot of document.querySelectorAll('svg.plot')) {"
        "  const texts = [...plot.querySelectorAll('text')];"
        "  const boxes = texts.map(text => text.getBoundingClientRect());"
        "  for (const [i, p] of boxes.entries()) for (const [j, q] of boxes.entries())"
        "    if (i < j && p.left < q.right - 1 && q.left < p.right - 1 &&"
        "        p.top < q.bottom - 3 && q.top < p.bottom - 3)"
        "      found.push([texts[i].textContent, texts[j].textContent]);"
        "}"
        "return found;"
    )
    assert overlapping == []

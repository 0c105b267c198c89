"""The report in a real browser: everything is there, fits the screen, and nothing complains."""

import base64
import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

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
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    *("--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


class Browser:
    """A headless Chromium, spoken to by the WebDriver protocol."""

    def __init__(self, address: str, binary: str, profile: Path) -> None:
        # Whatever proxy there is, it is not for this machine itself.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._session = address
        flags = [*FLAGS, f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        wanted = {
            "goog:chromeOptions": {"binary": binary, "args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        made = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"{address}/session/{made['sessionId']}"

    def open(self, path: Path, *, width: int, dark: bool = False, media: str = "") -> None:
        """Open a page at a width in CSS pixels."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media=media, features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        self._post("/url", {"url": path.as_uri()})

    def run(self, script: str) -> Any:
        """Return what a script returns."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def command(self, name: str, **parameters: Any) -> Any:
        """Give a command of the DevTools protocol."""
        return self._post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def errors(self) -> list[str]:
        """Return what the console has said since the last call."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]

    def save_screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        picture = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def close(self) -> None:
        """End the browser."""
        request = urllib.request.Request(self._session, method="DELETE")
        self._opener.open(request, timeout=60).close()

    def _post(self, path: str, content: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self._session + path,
            data=json.dumps(content).encode(),
            headers={"Content-Type": "application/json"},
        )
        with self._opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    binary = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs Chromium and chromedriver (Debian: chromium, chromium-driver)")
    with subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = (re.search(r"successfully on port (\d+)", line) for line in process.stdout)
        port = next((found[1] for found in started if found), None)
        try:
            assert port is not None, "chromedriver did not start"
            opened = Browser(f"http://127.0.0.1:{port}", binary, tmp_path_factory.mktemp("profile"))
            yield opened
            opened.close()
        finally:
            process.terminate()


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

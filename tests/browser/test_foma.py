"""The figure to try on the page of FOMA: its numbers, and who can use it."""

import json
from pathlib import Path

import numpy as np
import pytest
from docs.foma_cases import FILE, make_batches, make_cases
from tests.browser.chromium import Browser

pytestmark = pytest.mark.serial

DOCS = Path(__file__).resolve().parents[2] / "docs"
SAVED = json.loads(FILE.read_text())
PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>FOMA</title>
<body>{figure}</body></html>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the figure on a page of its own, as it is on that of the documentation."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "_static").symlink_to(DOCS / "_static")
    (folder / "methods").mkdir()
    figure = (DOCS / "methods" / "figure.html").read_text()
    for theme in ("light", "dark"):
        path = folder / "methods" / f"{theme}.html"
        path.write_text(PAGE.format(theme=theme, figure=figure))
    return folder / "methods"


def said(browser: Browser) -> str:
    """Return the figure in words."""
    return str(browser.run("return document.querySelector('#foma-figure .said').textContent"))


def test_the_saved_cases_are_those_of_the_library() -> None:
    assert len(SAVED["cases"]) == 10
    for saved, made in zip(SAVED["cases"], make_cases(), strict=True):
        assert saved["settings"] == made["settings"], "python -m docs.foma_cases"
        assert saved["k"] == made["k"]
        for key in ("rows", "new"):
            np.testing.assert_allclose(saved[key], made[key], atol=1e-12)
    assert SAVED["nearest"] == make_batches(), "python -m docs.foma_cases"


@pytest.mark.parametrize("case", SAVED["cases"], ids=lambda case: str(case["settings"]))
def test_the_figure_computes_what_the_library_does(browser: Browser, page: Path, case) -> None:
    browser.open(page / "light.html", width=900)
    rows, settings = json.dumps(case["rows"]), json.dumps(case["settings"])
    found = browser.run(f"return regaugFoma.foma({rows}, {settings})")
    assert found["k"] == case["k"]
    np.testing.assert_allclose(found["rows"], case["new"], rtol=0, atol=1e-9)
    center = np.mean(case["rows"], axis=0) if case["settings"].get("center") else 0.0
    values = np.linalg.svd(np.array(case["rows"]) - center, compute_uv=False)
    np.testing.assert_allclose(found["values"], values, rtol=0, atol=1e-9)


def test_its_batches_are_those_of_the_sampler(browser: Browser, page: Path) -> None:
    browser.open(page / "light.html", width=900)
    targets = json.dumps(SAVED["nearest"]["targets"])
    found = browser.run(
        f"const targets = {targets};"
        "return targets.map((_, anchor) => regaugFoma.nearestBatch(targets, anchor, 12));"
    )
    known = [set(batch) for batch in SAVED["nearest"]["batches"]]
    assert any(set(batch) in known for batch in found)  # the first that the sampler takes


def test_draws_are_those_of_the_beta_distribution(browser: Browser, page: Path) -> None:
    browser.open(page / "light.html", width=900)
    for alpha in (0.2, 1.0, 4.0):
        drawn = browser.run(
            "const draw = regaugFoma.uniforms(3);"
            f"return Array.from({{length: 4000}}, () => regaugFoma.drawBeta({alpha}, draw));"
        )
        assert np.mean(drawn) == pytest.approx(0.5, abs=0.03)
        assert np.var(drawn) == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_the_screen(browser: Browser, page: Path, width: int, theme: str) -> None:
    browser.open(page / f"{theme}.html", width=width, dark=theme == "dark")
    assert browser.run("return document.querySelectorAll('circle.after').length") == 18
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return document.getElementById('foma-figure').hidden") is False
    assert "18 samples drawn at random" in said(browser)
    assert browser.errors() == []


def test_the_keyboard_moves_it(browser: Browser, page: Path) -> None:
    browser.open(page / "light.html", width=900)
    before = said(browser)
    browser.run("document.getElementById('foma-lam').focus()")
    for kind in ("rawKeyDown", "keyUp"):
        key = {"key": "End", "code": "End", "windowsVirtualKeyCode": 35}
        browser.command("Input.dispatchKeyEvent", type=kind, **key)
    after = said(browser)
    assert before != after
    value = "return Number(document.getElementById('foma-lam').value)"
    assert browser.run(value) == 1.5
    browser.run("document.querySelector('[name=draw]').click()")
    assert 0 <= browser.run(value) <= 1
    batch = said(browser)
    browser.run("document.querySelector('[name=another]').click()")
    assert said(browser) != batch


def test_a_choice_shows_the_slider_that_belongs_to_it(browser: Browser, page: Path) -> None:
    browser.open(page / "light.html", width=900)
    choose = (
        "const choice = document.querySelector('[name=cut]'); choice.value = 'k';"
        "choice.dispatchEvent(new Event('input', {bubbles: true}));"
        "return [...document.querySelectorAll('[data-row]')].map(row => row.hidden)"
    )
    assert browser.run(choose) == [True, False]
    assert "1 of 2 directions stays" in said(browser)


def test_every_control_has_a_label(browser: Browser, page: Path) -> None:
    browser.open(page / "light.html", width=900)
    bare = browser.run(
        "return [...document.querySelectorAll('#foma-figure input, #foma-figure select')]"
        ".filter(own => !own.labels.length).length"
    )
    assert bare == 0


def test_without_javascript_there_is_a_picture(browser: Browser, page: Path) -> None:
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page / "light.html", width=900)
        root = browser.command("DOM.getDocument", depth=-1)["root"]["nodeId"]
        picture = browser.command("DOM.querySelector", nodeId=root, selector="noscript img")
        box = browser.command("DOM.getBoxModel", nodeId=picture["nodeId"])["model"]
        assert box["width"] == 612
        assert box["height"] > 150
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)

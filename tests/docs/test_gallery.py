"""Every script of the gallery runs, draws something, and says what it is in a title."""

import ast
import re
import runpy
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "docs" / "gallery").glob("plot_*.py"))
# Above three seconds; all of them run when the documentation is built.
SLOW = {
    "plot_05_plane",
    "plot_06_study",
    "plot_07_intervals",
    "plot_09_lightning",
    "plot_10_skorch",
    "plot_13_image",
}
PARAMETERS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
    for path in SCRIPTS
]


@pytest.fixture(autouse=True)
def no_figures_stay(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("script", PARAMETERS)
@pytest.mark.usefixtures("registries")
def test_a_script_draws(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        runpy.run_path(str(script), run_name="gallery")
    assert plt.get_fignums()
    for number in plt.get_fignums():
        assert plt.figure(number).axes
        plt.figure(number).canvas.draw()  # labels are parsed, layouts are made


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_a_title_and_reads_alone(script):
    text = script.read_text()
    title, line, *_ = ast.get_docstring(ast.parse(text)).splitlines()
    assert line == "=" * len(title)
    assert "# %%" in text
    imported = re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)
    assert not {"docs", "tests", "benchmarks", "examples"} & set(imported)


def test_there_are_enough_and_slow_ones_exist():
    assert 10 <= len(SCRIPTS) <= 15
    assert {path.stem for path in SCRIPTS} >= SLOW

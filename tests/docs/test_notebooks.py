"""The notebooks run from top to bottom, and are kept small."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 100_000


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


@pytest.mark.slow  # a kernel, and a study in each
@pytest.mark.serial
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    for file in FOLDER.glob("*.csv"):
        shutil.copy(file, tmp_path)
    source = FOLDER.parents[1] / "src"
    monkeypatch.setenv("PYTHONPATH", str(source))
    notebook = nbformat.read(path, as_version=4)
    saved = [output.output_type for output in outputs(notebook)]
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=resources).execute()
    assert [output.output_type for output in outputs(notebook)] == saved


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_saved_is_light_and_tells_of_no_error(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < MOST_BYTES
    assert notebook.cells[0].source.startswith("# ")
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))  # run once, in order
    kinds = {output.output_type for output in outputs(notebook)}
    assert kinds <= {"stream", "display_data", "execute_result"}
    assert {output.get("name", "stdout") for output in outputs(notebook)} == {"stdout"}


def test_there_are_two():
    assert len(NOTEBOOKS) == 2

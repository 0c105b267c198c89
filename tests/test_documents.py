"""The README's code and every example run as they are written."""

import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).resolve().parents[1]
DOCUMENTS = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md")]
# The studies of docs/own_network.md take minutes: test_own_network.py runs them shortened.
DOCUMENTS += sorted(set((PROJECT / "docs").glob("*.md")) - {PROJECT / "docs" / "own_network.md"})
DOCUMENTS += sorted((PROJECT / "docs" / "methods").glob("*.md"))
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
ARGUMENTS = {"diabetes.py": ["2"]}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
@pytest.mark.usefixtures("registries")
def test_code_in_documents_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("document")  # what it defines can be found again, as in a notebook
    monkeypatch.setitem(sys.modules, "document", module)
    for code in re.findall(
        r"^```python\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE
    ):
        exec(compile(code, str(document), "exec"), vars(module))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example), *ARGUMENTS.get(example.name, [])])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out

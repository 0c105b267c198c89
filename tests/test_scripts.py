"""Python files of the user's own: imported by path, known to workers, blamed by line."""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import regaug
from regaug import _scripts
from regaug._scripts import (
    ImportedScripts,
    blaming,
    find_in_script,
    import_script,
    is_script,
    part_source,
)
from regaug.exceptions import ArgumentError, ScriptError, UnknownNameError


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """Forget afterwards what a test has imported."""
    monkeypatch.setattr(_scripts, "_imported", {})
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into the current folder."""
    monkeypatch.chdir(tmp_path)

    def add(code, name="study.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(code))
        return path

    return add


@pytest.mark.parametrize(
    ("source", "path", "name"),
    [
        ("a.py", "a.py", ""),
        ("/some where/a.py:make", "/some where/a.py", "make"),
        (r"C:\a.py:make", r"C:\a.py", "make"),
        ("houses.csv", "houses.csv", ""),
        ("a:b.csv", "a:b.csv", ""),
    ],
)
def test_a_source_has_two_parts(source, path, name):
    assert part_source(source) == (path, name)
    assert is_script(source) == path.endswith(".py")


def test_a_file_of_any_name_is_imported_once_with_what_lies_beside_it(write):
    write("factor = 3\n", "beside_the_study.py")
    path = write(
        "from beside_the_study import factor\n\ndef double(): return 2 * factor\n", "a-b.py"
    )
    assert find_in_script(path, "double")() == 6
    assert import_script("a-b.py") is import_script(path)


def test_a_file_may_be_called_like_a_library(write):
    import torch

    assert find_in_script(write("here = 1\n", "torch.py"), "here") == 1
    assert sys.modules["torch"] is torch


def test_what_it_prints_is_no_result(write, capsys):
    import_script(write("print('hello')\n"))
    assert capsys.readouterr() == ("", "hello\n")


def test_a_missing_file_or_name_says_what_to_write_instead(write):
    with pytest.raises(UnknownNameError, match="no file 'lost.py'"):
        find_in_script("lost.py", "problem")
    path = write("from math import sqrt as problems\nimport os\n\ndef problem(): pass\n")
    with pytest.raises(UnknownNameError) as error:
        find_in_script(path, "problme")
    words = "study.py: Unknown name 'problme'. Did you mean 'problem'? Available: problem."
    assert str(error.value) == words


def fail(path):
    with pytest.raises(ScriptError) as error:
        import_script(path)
    assert error.value.__cause__ is not None
    return str(error.value).splitlines()


def test_an_error_shows_the_users_line(write):
    path = write("x = 1\n\ndef make():\n    return x / 0\n\nmake()\n")
    assert fail(path) == [
        "study.py failed: ZeroDivisionError: division by zero",
        "  study.py, line 6",
        "    make()",
        "  study.py, line 4, in make",
        "    return x / 0",
    ]
    assert str(path) not in _scripts._imported
    path.write_text("x = 2\n")  # it can be mended
    assert import_script(path).x == 2


def test_an_error_in_a_library_shows_the_users_line_alone(write):
    lines = fail(write("import json\njson.loads('{')\n"))
    assert lines[0].startswith("study.py failed: JSONDecodeError: ")
    assert lines[1:] == ["  study.py, line 2", "    json.loads('{')"]


def test_wrong_syntax_is_shown_too_here_and_beside(write):
    first, *lines = fail(write("def problem(:\n    pass\n"))
    assert first.startswith("study.py failed: SyntaxError: ")
    assert lines == ["  study.py, line 1", "    def problem(:"]
    write("x = (\n", "unclosed.py")
    first, *lines = fail(write("import unclosed\n"))
    assert first == "unclosed.py failed: SyntaxError: '(' was never closed"
    assert lines == [
        "  study.py, line 1",
        "    import unclosed",
        "  unclosed.py, line 1",
        "    x = (",
    ]


def test_ending_the_process_is_an_error_too(write):
    assert fail(write("import sys\nsys.exit(3)\n"))[0] == "study.py failed: SystemExit: 3"


def test_an_error_of_ours_keeps_its_words(write):
    code = "from regaug import FOMA\naug = FOMA(rho=3.0)\n"
    assert fail(write(code))[0].startswith("study.py failed: `rho` must be in [0, 1], got 3.0")


def test_errors_elsewhere_stay_what_they_are(write):
    import_script(write("x = 1\n"))
    with pytest.raises(ArgumentError, match="mine"), blaming():
        raise ArgumentError("mine")
    with pytest.raises(ScriptError, match="theirs"), blaming():
        raise ScriptError("theirs")


SOURCE = str(Path(regaug.__file__).resolve().parents[1])
CHILD = """
import pickle, sys
assert not any("_regaug_" in name for name in sys.modules)
print(pickle.load(open(sys.argv[1], "rb"))[1](20))
"""


def test_another_process_imports_the_files_before_what_they_define(write, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    write("def beside(x): return x + 1\n", "own_helper.py")
    add = find_in_script(
        write("from own_helper import beside\ndef add(x): return beside(x)\n"), "add"
    )
    (tmp_path / "sent").write_bytes(pickle.dumps((ImportedScripts(), add)))
    child = [sys.executable, "-c", CHILD, str(tmp_path / "sent")]
    done = subprocess.run(child, capture_output=True, text=True, timeout=120)
    assert done.stdout == "21\n", done.stderr


def test_a_file_that_a_worker_lacks_is_named(write):
    path = write("x = 1\n")
    import_script(path)
    sent = pickle.dumps(ImportedScripts())
    assert isinstance(pickle.loads(sent), ImportedScripts)
    path.unlink()
    with pytest.raises(ScriptError, match=r"no file .*study.py on .*, where a worker needs it"):
        pickle.loads(sent)

"""Models by where they are written: found, sent to other processes, and refused in words."""

import pickle

import pytest
from sklearn.linear_model import Ridge

from regaug.exceptions import ArgumentError, ScriptError, UnknownNameError
from regaug.runs.factories import Factory

CODE = """
from sklearn.linear_model import Lasso, Ridge

def make():
    return Ridge(alpha=3.0)

def make_for(split, seed):
    return Ridge(alpha=split + seed)

ready = Lasso()
number = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own_models.py").write_text(CODE)
    (tmp_path / "broken.py").write_text("import math\n\nx = math.nothing\n")
    (tmp_path / "unfinished.py").write_text("def make(:\n")
    return str(tmp_path)


def test_a_function_of_a_file_makes_the_model(folder):
    assert Factory("own_models.py:make", folder)().alpha == 3.0
    assert Factory("own_models.py:make_for", folder)(4, seed=5).alpha == 9
    assert type(Factory("own_models.py:ready", folder)()).__name__ == "Lasso"
    assert Factory("own_models.py:Ridge", folder)().alpha == 1.0


def test_a_module_is_found_in_the_folder_and_where_python_finds_it(folder, monkeypatch):
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))
    assert Factory("own_models:make", folder)().alpha == 3.0
    assert isinstance(Factory("sklearn.linear_model:Ridge", folder)(), Ridge)


def test_what_is_sent_is_the_place(folder):
    factory = Factory("own_models.py:make", folder)
    factory()
    content = pickle.dumps(factory)
    assert b"alpha" not in content
    assert pickle.loads(content)().alpha == 3.0


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("own_models.py:mak", UnknownNameError, "Did you mean 'make'"),
        ("own_models.py:number", ArgumentError, "a function that makes a model, or a regressor"),
        ("lacking.py:make", UnknownNameError, "no file 'lacking.py'"),
        ("lacking:make", UnknownNameError, "no module 'lacking'.*lacking.py:make"),
        ("lacking.inner:make", UnknownNameError, "no module 'lacking.inner'"),
        (
            "broken.py:make",
            ScriptError,
            r"AttributeError(.|\n)*broken.py, line 3\n +x = math.nothing",
        ),
        ("unfinished.py:make", ScriptError, r"SyntaxError(.|\n)*unfinished.py, line 1\n +def make"),
        ("own_models.py:", ArgumentError, "module:make or file.py:make"),
    ],
)
def test_errors_say_what_is_wrong_and_where(folder, place, error, message):
    with pytest.raises(error, match=message):
        Factory(place, folder).find()

"""What is released: a wheel and a source distribution, in an environment of their own.

Their dependencies are those of the tests, seen through a path file: what is tried is what the
distributions hold, not whether a registry answers.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import regaug

PROJECT = Path(regaug.__file__).parents[2]
VERSION = regaug.__version__


def run(*command, cwd):
    found = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=600
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both, from a copy of the project as it is committed or about to be."""
    pytest.importorskip("build")
    if not (PROJECT / "pyproject.toml").exists():
        pytest.skip("the sources are not here")
    copy = tmp_path_factory.mktemp("sources") / "regaug"
    shutil.copytree(PROJECT, copy, ignore=_made_here)
    run(sys.executable, "-m", "build", "--no-isolation", cwd=copy)
    return copy / "dist"


def _made_here(folder, names):
    """Return what is no part of the sources: it was made by running something."""
    made = {name for name in names if name == "__pycache__" or name.endswith(".egg-info")}
    if Path(folder) == PROJECT:
        made |= {".venv", ".git", ".hypothesis", "runs", "site", "dist", "build"} & set(names)
        made |= {name for name in names if name.endswith("_cache")}
    return made


@pytest.fixture(scope="module", params=["whl", "tar.gz"])
def environment(request, built, tmp_path_factory):
    """Install one of them into an empty environment."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    (archive,) = built.glob(f"*.{request.param}")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", archive]
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, cwd=folder)
    where = run(python, "-c", "import regaug; print(regaug.__file__)", cwd=folder)
    assert Path(where.strip()).is_relative_to(folder)
    return folder / "bin"


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"regaug-{VERSION}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"regaug", f"regaug-{VERSION}.dist-info"}
    assert "regaug/py.typed" in names
    sources = {
        f"regaug/{file.relative_to(PROJECT / 'src/regaug')}"
        for file in (PROJECT / "src" / "regaug").rglob("*")
        if file.suffix in (".py", ".toml", ".j2", ".typed")
    }
    assert sources <= set(names)


@pytest.mark.slow
def test_the_source_distribution_holds_tests_docs_and_what_was_tested(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        names = {name.split("/", 1)[-1] for name in held.getnames()}
    wanted = {"CHANGELOG.md", "LICENSE", "README.md", "Makefile", "constraints.txt", "SECURITY.md"}
    assert (
        wanted | {"constraints-oldest.txt", "tests/test_wheel.py", "docs/index.md", "CITATION.cff"}
        <= names
    )
    assert not [name for name in names if "__pycache__" in name or name.startswith(".venv")]


@pytest.mark.slow
def test_what_is_installed_compares_fits_and_predicts(environment, tmp_path):
    table = tmp_path / "table.csv"
    rows = ["a,b,y", *(f"{n % 7},{n % 11},{n % 7 + 0.5 * (n % 11)}" for n in range(120))]
    table.write_text("\n".join(rows) + "\n")
    assert VERSION in run(environment / "regaug", "--version", cwd=tmp_path)
    said = run(environment / "regaug", "compare", "--quick", cwd=tmp_path)
    assert "erm" in said
    options = ["--target", "y", "--method", "erm", "--out", "model"]
    run(environment / "regaug", "fit", table, *options, cwd=tmp_path)
    run(environment / "regaug", "predict", "model", table, "-o", "out.csv", cwd=tmp_path)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 121


@pytest.mark.slow
def test_the_lines_of_the_readme_run_with_what_is_installed(environment, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "first.py").write_text(blocks[0])
    run(environment / "python", "first.py", cwd=tmp_path)


def test_what_is_cited_is_this_version():
    text = (PROJECT / "CITATION.cff").read_text()
    assert f"\nversion: {VERSION}\n" in text

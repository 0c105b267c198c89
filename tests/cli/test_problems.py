"""``regaug compare`` for what is no table: files of the user's own, and named data sets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import regaug
from regaug import _scripts
from regaug.cli.main import app
from regaug.cli.problems import open_problem
from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.report.snippets import weights_recipe
from regaug.runs import nets
from regaug.studies.study import Study

STUDY = """\
import numpy as np
import torch
from torch import nn

from regaug import Problem
from regaug.data.base import Part, Split


class Net(nn.Module):
    places = ("layer",)

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(6, 4), nn.Linear(4, 1)

    def forward(self, x):
        print("in the net")
        hidden = self.layer(x.flatten(1)).tanh()
        return self.head(hidden)


def make_net(split):
    return Net()


def problem():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(90, 2, 3))).float()
    y = x[:, 0].sum(1) + 0.1 * torch.from_numpy(rng.normal(size=90)).float()
    splits = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(90)
        parts = [Part(x[rows], y[rows], rows) for rows in np.split(order, [50, 70])]
        splits.append(Split(*parts))
    return Problem(splits, model=make_net, metric="mae")


ready = problem()
"""
SMALL = ("--trials", 1, "-m", "foma-rho")
HIDDEN = "hidden = self.layer(x.flatten(1)).tanh()"


@pytest.fixture(scope="module", autouse=True)
def _forgotten():
    """Forget afterwards which files were imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scripts, "_imported", {})
        patch.setattr(sys, "path", list(sys.path))
        yield


def make_small(patch, shorten):
    shorten(patch, 2)
    patch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge"))


@pytest.fixture(autouse=True)
def _short(monkeypatch, shorten):
    make_small(monkeypatch, shorten)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("mine") / "my_study.py"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def found(file, shorten):
    """What a command has said of the study in a file, as JSON; its workers import the file."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch, shorten)
        given = ["compare", file, *SMALL, "--json", "-j", 2, "--out", file.parent / "runs"]
        result = CliRunner().invoke(app, [str(word) for word in given])
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def study(found):
    return Study.open(found["folder"])


@pytest.mark.serial
def test_a_file_is_compared_and_gives_the_study_its_name(found, study, file):
    assert (study.config.problem, study.config.metric) == ("my_study", "mae")
    assert study.folder.parent == file.parent / "runs" / "my_study"
    assert study.facts.given == {"source": f"{file}:problem"}
    assert (study.facts.kind, study.facts.places) == ("network", ("layer",))
    assert "regaug fit" not in json.dumps(found["loop"]) + str(found["command"])
    assert found["command"] == found["python"] == ""
    assert found["weights"] == str(study.weights(study.verdict.recommended))


@pytest.mark.serial
def test_the_same_command_with_the_problem_itself_continues(found, study, file):
    words = ["compare", f"{file}:ready", *SMALL, "--out", file.parent / "others", "-j", 1]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    assert "Use it: the report ends with the settings of " in result.stdout
    assert "Weights of the net that the first split has chosen: " in result.stdout
    other = Study.open(file.parent / "others" / "my_study-ready")
    rows = [{row.name: row.errors for row in own.comparison.rows} for own in (study, other)]
    assert rows[0]["erm"] == pytest.approx(rows[1]["erm"], rel=1e-4)
    again = CliRunner().invoke(app, [str(word) for word in words])
    assert "all of them done" in again.stderr
    assert again.stdout == result.stdout


@pytest.mark.serial
def test_the_weights_of_the_chosen_nets_are_loaded_by_the_snippet(study):
    assert study.looked_at == ("erm", "foma-rho")
    kept = {study.weights(name, split) for name in study.looked_at for split in range(2)}
    assert None not in kept
    assert set((study.folder / nets.NETS).iterdir()) == kept
    for name in study.looked_at:
        found = {}
        exec(weights_recipe(study, name), found)
        record, test = study.chosen[name][0], found["problem"].splits[0].test
        error = (found["prediction"] - test.y).abs().mean().item()
        assert error == pytest.approx(record.score("test", "mae"), rel=1e-4)
    assert not found["net"].training
    assert isinstance(found["prediction"], torch.Tensor)


@pytest.mark.serial
def test_a_model_of_a_table_is_refused(study, run, houses):
    result = run("fit", houses, "--target", "price", "--from", study.folder, "--out", "model")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "this study is of another network" in result.stderr


@pytest.mark.serial
def test_a_network_that_was_changed_is_another_study(tmp_path, monkeypatch, run):
    path = tmp_path / "my_study.py"
    for activation, folder in (("tanh", "trials-1-mae"), ("sigmoid", "trials-1-mae-2")):
        path.write_text(STUDY.replace(".tanh()", f".{activation}()"))
        monkeypatch.setattr(_scripts, "_imported", {})  # as in another process
        result = run("compare", path, *SMALL, "-j", 1, "--out", tmp_path / "runs")
        assert result.exit_code == 0, result.output
        assert (tmp_path / "runs" / "my_study" / f"full-foma-rho-{folder}").is_dir()
    assert "holds another study: the network has changed since." in result.stderr


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("{}:problme", "Did you mean 'problem'?"),
        ("lost/my_study.py", "There is no file 'lost/my_study.py'."),
    ],
)
def test_what_is_not_there_is_wrong_usage(fails, file, wrong, words):
    assert words in fails("compare", wrong.format(file), code=2)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("make_net", "`make_net` of my_study.py must be called without arguments, got a function"),
        ("Net", "`Net` of my_study.py must be a regaug.Problem, got Net."),
        ("np", "must be a regaug.Problem, got module."),
    ],
)
def test_what_is_no_problem_is_refused(fails, file, name, words):
    assert words in fails("compare", f"{file}:{name}")


def test_options_of_tables_are_refused(fails, file):
    for option in ("target", "group", "time", "drop", "encoding", "split"):
        said = fails("compare", file, f"--{option}", "price")
        assert said == (
            f"Error: `--{option}` is for files of your own; {file} says itself what is learned "
            "from what.\n"
        )
        said = fails("compare", "davis", f"--{option}", "price")
        assert f"`--{option}` is for files of your own; the data set 'davis' knows its" in said
    said = fails("compare", file, "--metric", "rmse")
    assert "`--metric` must be that of the problem, 'mae', got 'rmse'. Leave it out" in said


@pytest.mark.serial
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_the_net_shows_the_users_line_and_nothing_is_printed(file, jobs):
    path = file.with_name("failing.py")
    path.write_text(STUDY.replace(HIDDEN, "hidden = self.lost(x)"))
    words = ["compare", path, *SMALL, "-j", jobs, "--out", file.parent / f"failed_{jobs}"]
    # A process of its own: what its workers print can be seen.
    result = subprocess.run(
        [sys.executable, "-m", "regaug", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(Path(regaug.__file__).resolve().parents[1])},
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (result.returncode, result.stdout) == (1, "")
    line = STUDY.splitlines().index(f"        {HIDDEN}") + 1
    said = result.stderr[result.stderr.index("Error: ") :]
    assert said.startswith(  # another worker may still print
        "Error: failing.py failed: AttributeError: 'Net' object has no attribute 'lost'\n"
        f"  failing.py, line {line}, in forward\n"
        "    hidden = self.lost(x)\n"
    )
    assert "in the net\n" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_error_in_the_function_shows_the_users_line(file, run):
    path = file.with_name("wrong.py")
    path.write_text(STUDY.replace('metric="mae"', 'metric="mea"').replace("ready =", "# "))
    result = run("compare", path)
    assert result.exit_code == 1
    first, place, code = result.stderr.splitlines()
    assert "wrong.py failed: `metric` must be one of" in first
    assert place.endswith(", in problem")
    assert code == '    return Problem(splits, model=make_net, metric="mea")'


@pytest.mark.parametrize(
    ("name", "metric"),
    [("exchange-rate", "rmse"), ("rcf-mnist", "rmse"), ("davis", "pearson"), ("echo", "rmse")],
)
def test_a_named_data_set_has_its_own_network_and_metric(name, metric):
    problem = open_problem(name, {})
    assert (problem.name, problem.metric, problem.kind) == (name, metric, "network")
    assert (len(problem.splits), problem.source) == (10, name)
    assert len(open_problem(name, {}, quick=True).splits) == 5
    other = open_problem(name, {}, splits=2, metric="mae")
    assert (len(other.splits), other.metric) == (2, "mae")


def test_a_table_is_none_of_these(file):
    assert open_problem("diabetes", {"target": None}) is None
    assert open_problem("houses.csv", {"target": ["price"]}) is None
    with pytest.raises(ArgumentError, match="`--time` is for files"):
        open_problem(str(file), {"time": "sold"})
    with pytest.raises(UnknownNameError):
        open_problem("lost.py", {})


@pytest.mark.parametrize("name", ["echo", "povertymap"])
def test_missing_data_says_how_to_get_it(fails, monkeypatch, tmp_path, name):
    for variable in ("REGAUG_DATA", "REGAUG_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    said = fails("compare", name, "--out", tmp_path / "runs")
    assert "is not on this machine. " in said
    assert "set REGAUG_DATA to that folder" in said
    assert not (tmp_path / "runs").exists()


def test_what_a_file_calls_model_is_no_option(run, tmp_path):
    file = tmp_path / "textual.py"
    file.write_text(STUDY.replace("return Net()", "return 'net'"))
    result = run("compare", file, *SMALL, "-j", 1)
    assert result.exit_code == 1
    assert "`model` must return a torch.nn.Module, got str" in result.stderr

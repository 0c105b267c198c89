"""Help: at once, without what a command needs to work, and in words of a user."""

import os
import re
import statistics
import subprocess
import sys
import time

import pytest

from regaug import methods
from regaug.cli import names
from regaug.cli.reproduce import ALIASES, SETTINGS
from regaug.data import NAMES
from regaug.ensemble.contents import NETS
from regaug.ensemble.entry import BLENDS
from regaug.metrics import FOCUSES, METRICS
from regaug.reproduction.figures import FIGURES
from regaug.reproduction.tables import EXPERIMENTS
from regaug.reproduction.timing import TIME
from regaug.training.estimators import REGRESSORS

COMMANDS = ["compare", "fit", "predict", "augment", "dimension", "report", "reproduce", "data"]
HELPS = [
    (),
    *((name,) for name in COMMANDS),
    *(("data", name) for name in ("list", "fetch", "path")),
]
HEAVY = ["torch", "numpy", "pandas", "sklearn", "scipy", "matplotlib", "jinja2"]


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_speaks_no_python(run, words):
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert not re.search(r"<\w+[>\[]|\bNone\b|\w\(\.\.\.", result.stdout)
    assert not re.search(r"\w\.\.\.$", result.stdout, re.MULTILINE)  # no summary is cut


@pytest.mark.parametrize("words", [(name,) for name in COMMANDS[:-1]] + HELPS[-3:], ids=" ".join)
def test_help_has_an_example(run, words):
    shown = run(*words, "--help").stdout
    assert re.search(rf"Example: .*regaug {' '.join(words)}", shown)
    assert "--json" in shown


def test_no_help_imports_what_a_command_needs():
    code = f"""
from typer.testing import CliRunner
from regaug.cli.main import app
import sys
for words in {HELPS}:
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0, words
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def seconds(*words):
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


@pytest.mark.serial
@pytest.mark.parametrize(
    "helps", [HELPS[:2], pytest.param(HELPS[2:], marks=pytest.mark.slow)], ids=["some", "others"]
)
def test_help_takes_less_than_half_the_time_of_importing_torch(helps):
    programs = {"torch": ("-c", "import torch")}
    programs |= {words: ("-m", "regaug", *words, "--help") for words in helps}
    taken = {name: [] for name in programs}
    for _ in range(3):  # in turns: what else a machine does changes
        for name, words in programs.items():
            taken[name].append(seconds(*words))
    times = {name: statistics.median(own) for name, own in taken.items()}
    assert max(times[words] for words in helps) < 0.5 * times["torch"], times


def test_the_package_is_a_program():
    from regaug import __version__

    words = [sys.executable, "-m", "regaug", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"regaug {__version__}\n"


def test_names_that_are_shown_are_those_that_there_are():
    ends = {"tail-rmse-high", "tail-rmse-low"}  # which --focus is for
    assert set(names.METRICS) == set(METRICS) - ends
    assert tuple(names.METHODS) == methods.names()
    unusual = tuple(name for name in methods.names() if name not in methods.usual())
    assert unusual == names.UNUSUAL
    assert set(names.MAKERS) <= set(methods.MAKERS)
    assert names.FOCUSES == FOCUSES
    assert set(names.MODELS) == set(BLENDS)
    assert set(names.TRAINED) == {NETS, *REGRESSORS}
    assert set(names.datasets()) == set(NAMES)
    assert set(names.EXPERIMENTS) == {*EXPERIMENTS, TIME, SETTINGS, *FIGURES, *ALIASES}


def test_every_metric_is_explained(run):
    shown = " ".join(run("compare", "--help").stdout.split())
    for name, words in names.METRICS.items():
        assert f"{name} ({words})" in shown


def complete(*words):
    """What a shell offers for the last word."""
    told = {"_REGAUG_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(["regaug", *words])}
    done = subprocess.run(
        [sys.executable, "-c", "from regaug.cli.main import app; app(prog_name='regaug')"],
        env=os.environ | told | {"COMP_CWORD": str(len(words))},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("d",), ["dimension", "data"]),
        (("augment", "x.csv", "--method", "c-"), ["c-mixup"]),
        (("fit", "x.csv", "--method", "r"), ["ridge", "rare"]),
        (("compare", "-m", "mixup,foma,fo"), ["mixup,foma,foma-rho"]),
        (("compare", "--metric", "ma"), ["mae", "mape"]),
        (("compare", "diab"), ["diabetes"]),
        (("compare", "houses.c"), []),  # the shell's own turn: files
        (("data", "path", "no"), ["no2"]),
        (("reproduce", "figure"), ["figure1", "figure2", "figure3", "figure4"]),
    ],
)
def test_a_shell_completes_commands_and_names(words, offered):
    assert complete(*words) == offered


def test_completion_can_be_installed(run):
    assert "--install-completion" in run("--help").stdout

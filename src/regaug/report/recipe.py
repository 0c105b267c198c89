"""What to write next, to train with what a study has chosen: Python, and a command."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from regaug.data import NAMES
from regaug.studies.study import Study
from regaug.training.settings import Settings

# What stands for a name that only the user knows.
DATA, TARGET = "DATA.csv", "TARGET"
COLUMNS = ("target", "group", "time", "drop", "encoding")


def python_recipe(study: Study, method: str) -> str:
    """Return a script that trains one net with a method's chosen settings."""
    run, hidden = study.best[method], study.config.hidden
    log = ", log=True" if run.log else ""
    settings = f"settings = Settings(\n{_settings(run.settings or Settings())}\n)"
    shown = f'print(result.scores["test"].{study.comparison.metric})\n'
    end = f"result = fit(net, split, {_value(method)}, settings)\n{shown}"
    if not hidden:  # not the net for tables
        return f"""\
import regaug
from regaug.training import Settings, fit

problem = {_problem(study)}
split = problem.split(0{log})
{settings}
net = problem.make_net(split, seed=0)
{end}"""
    if run.can_stack:
        return f"""\
import regaug
from regaug.data import standardize
from regaug.training import Settings, fit_many

data = {_open(study)}
split = standardize(data.split(seed=0){log})
{settings}
(result,) = fit_many(split, {_value(method)}, [settings], hidden={hidden!r})
{shown}"""
    return f"""\
import regaug
from regaug.data import standardize
from regaug.models import MLP
from regaug.training import Settings, fit

data = {_open(study)}
split = standardize(data.split(seed=0){log})
{settings}
net = MLP(split.train.x.shape[1], split.train.y.shape[1], hidden={hidden!r})
{end}"""


def command_recipe(study: Study, method: str) -> str:
    """Return the command that trains an ensemble with a method and keeps it; empty without one."""
    if not study.config.hidden:
        return ""
    given = _given(study)
    words = ["regaug", "fit", given["source"]]
    for option in COLUMNS:
        values = given.get(option, [])
        for value in [values] if isinstance(values, str) else values:
            words += [f"--{option}", value]
    words += ["--method", method, "--out", "model/"]
    return shlex.join(words)


def _problem(study: Study) -> str:
    name = study.config.problem
    if name in NAMES:
        return f"regaug.Problem.named({_value(name)})"
    return "regaug.Problem(splits, model=make_net)  # as it was compared"


def _open(study: Study) -> str:
    given = _given(study)
    source = given["source"]
    if "target" not in given:
        return f"regaug.data.load({_value(source)})"
    options = {name: given[name] for name in COLUMNS if name in given}
    if len(options["target"]) == 1:
        options["target"] = options["target"][0]
    listed = ", ".join(f"{name}={_value(value)}" for name, value in options.items())
    return f"regaug.data.read_table({_value(source)}, {listed})"


def _given(study: Study) -> Mapping[str, Any]:
    """Return how the data are named, with placeholders for what is not known."""
    if study.facts is not None and study.facts.given.get("source"):
        return study.facts.given
    name = study.config.problem
    return {"source": name} if name in NAMES else {"source": DATA, "target": [TARGET]}


def _settings(settings: Settings) -> str:
    """Write out the settings that differ from the defaults; each run's seed is its own."""
    plain = Settings().to_dict() | {"seed": settings.seed}
    given = [item for item in settings.to_dict().items() if item[1] != plain.get(item[0])]
    return "\n".join(f"    {name}={_value(value)}," for name, value in given)


def _value(value: object) -> str:
    """Write a value as Python, drawn numbers with six digits."""
    if isinstance(value, Mapping):
        items = "".join(f"        {_value(name)}: {_value(own)},\n" for name, own in value.items())
        return f"{{\n{items}    }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # as Python, but always in double quotes
    return repr(float(f"{value:.6g}") if isinstance(value, float) else value)

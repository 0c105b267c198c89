"""What to write next, to train with what a study has chosen: Python, and a command."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from regaug.data import NAMES
from regaug.studies.facts import Facts
from regaug.studies.study import Study
from regaug.training.settings import Settings

# What stands for a name that only the user knows.
DATA, TARGET = "DATA.csv", "TARGET"


def python_recipe(study: Study, method: str, facts: Facts | None) -> str:
    """Return a script that trains one net with a method's chosen settings."""
    run = study.settings[method]
    log = ", log=True" if run.get("log") else ""
    metric = study.comparison.metric
    hidden = tuple(study.configuration["hidden"])
    return f"""\
import regaug
from regaug.data import standardize
from regaug.models import MLP
from regaug.training import Settings, fit

data = {_open(study, facts)}
split = standardize(data.split(seed=0){log})
settings = Settings(
{_settings(run["settings"])}
)
net = MLP(split.train.x.shape[1], split.train.y.shape[1], hidden={hidden!r})
result = fit(net, split, {_value(method)}, settings)
print(result.scores["test"].{metric})
"""


def command_recipe(study: Study, method: str, facts: Facts | None) -> str:
    """Return the command that trains an ensemble with a method and keeps it."""
    given = _given(study, facts)
    words = ["regaug", "fit", given["source"]]
    for option in ("target", "group", "time", "drop"):
        values = given.get(option, [])
        for value in [values] if isinstance(values, str) else values:
            words += [f"--{option}", value]
    words += ["--method", method, "--out", "model/"]
    return shlex.join(words)


def _open(study: Study, facts: Facts | None) -> str:
    given = _given(study, facts)
    source = given["source"]
    if "target" not in given:
        return f"regaug.data.load({_value(source)})"
    options = {name: given[name] for name in ("target", "group", "time", "drop") if name in given}
    if len(options["target"]) == 1:
        options["target"] = options["target"][0]
    listed = ", ".join(f"{name}={_value(value)}" for name, value in options.items())
    return f"regaug.data.read_table({_value(source)}, {listed})"


def _given(study: Study, facts: Facts | None) -> Mapping[str, Any]:
    """Return how the data are named, with placeholders for what is not known."""
    if facts is not None and facts.given.get("source"):
        return facts.given
    name = study.configuration["data"]["name"]
    return {"source": name} if name in NAMES else {"source": DATA, "target": [TARGET]}


def _settings(values: Mapping[str, Any]) -> str:
    """Write out the settings that differ from the defaults; each run's seed is its own."""
    plain = Settings().to_dict()
    lines = [
        f"    {name}={_value(value)},"
        for name, value in values.items()
        if name in plain and name != "seed" and value != plain[name]
    ]
    return "\n".join(lines)


def _value(value: Any) -> str:
    """Write a value as Python, drawn numbers with six digits."""
    if isinstance(value, Mapping):
        items = "".join(f"        {_value(name)}: {_value(own)},\n" for name, own in value.items())
        return f"{{\n{items}    }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # as Python, but always in double quotes
    return repr(float(f"{value:.6g}") if isinstance(value, float) else value)

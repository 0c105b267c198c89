"""What to write next: the command and the lines of Python that make the model a study advises."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from regaug._scripts import is_script
from regaug.data import NAMES
from regaug.ensemble.contents import AUTO, NETS
from regaug.ensemble.entry import BLENDS, QUICK_ROWS
from regaug.methods import ROWS
from regaug.metrics import is_logged
from regaug.studies.config import REFERENCE
from regaug.studies.names import listed
from regaug.studies.study import MODEL, Study
from regaug.training.estimators import REGRESSORS
from regaug.training.settings import Settings

# What stands for a name that only the user knows.
DATA, TARGET, ROWS_FILE = "DATA.csv", "TARGET", "ROWS.csv"
COLUMNS = ("target", "group", "time", "drop", "encoding")
OUT = "model/"


def command_recipe(study: Study) -> str:
    """Return the command that makes the model a study advises; empty if there is none.

    There is none for a network or splits of one's own, nor for settings of a study that was not
    kept.
    """
    if not study.config.hidden or _is_own(study):
        return ""
    how = ["--method", study.advised]
    if study.advised not in BLENDS:  # with settings that the study has found
        if study.folder is None:
            return ""
        how = ["--from", str(study.folder)]
    given = _given(study)
    words = ["regaug", "fit", given["source"]]
    for option in COLUMNS:
        values = given.get(option, [])
        for value in [values] if isinstance(values, str) else values:
            words += [f"--{option}", value]
    return shlex.join([*words, *how, "--out", OUT])


def python_recipe(study: Study) -> str:
    """Return the lines of Python that make the same model; empty for a network or own splits.

    A regressor of one's own is called ``model`` in them.
    """
    if study.config.kind == "estimator":
        return _regressor_recipe(study)
    if not study.config.hidden or _is_own(study):
        return ""
    method, imports, how = study.advised, "import regaug\n", ""
    if method in BLENDS:
        how = f"model = regaug.fit(data, method={as_python(method)})"
    elif study.folder is not None:
        how = f"model = regaug.Study.open({as_python(str(study.folder))}).model(data)"
    else:
        settings = _settings(study.settings_of(method), exact=True)
        log = ", log=True" if study.best[method].log else ""
        imports += "from regaug.training import Settings\n"
        how = f"settings = Settings(\n{settings}\n)\n"
        how += f"model = regaug.fit(data, method={as_python(method)}, settings=settings{log})"
    return f"{imports}\ndata = {_open(study)}\n{how}\nmodel.save({as_python(OUT)})\n"


def _regressor_recipe(study: Study) -> str:
    """Return the lines that fit a regressor on the rows that a study advises."""
    method, name = study.advised, study.config.model
    own = study.settings_of(method).method_settings
    model = as_python(name) if name in REGRESSORS else "model"
    options = [as_python(method)]
    remark = "" if name in REGRESSORS else "  # your own, as it was compared"
    foreign = ""
    if method == ROWS:
        foreign = f"parts, _ = read_foreign({as_python(ROWS_FILE)}, data, [split])\n"
        options.append("parts[0]")
    if study.config.keep_integers:
        options.append("keep_integers=True")
    imports = "from regaug.data.tabular.foreign import read_foreign\n" if foreign else ""
    settings = f"Settings(method_settings={as_python(own, exact=True)})" if own else "Settings()"
    return f"""\
import regaug
{imports}from regaug.training import Settings
from regaug.training.estimators import NewRows, fit_estimator

data = {_open(study)}
split = data.split(seed=0)
{foreign}settings = {settings}
new = NewRows({", ".join(options)})
result = fit_estimator({model}, split, settings, new){remark}
{_print_score(study)}
"""


def _print_score(study: Study) -> str:
    """Return the line that prints the test error of a result."""
    metric = study.comparison.metric
    own = metric if metric.isidentifier() else f"value({as_python(metric)})"
    return f'print(result.scores["test"].{own})'


def about_model(study: Study) -> str:
    """Say what the model in a study's folder is beside that of the command; empty without one."""
    if study.folder is None or not (study.folder / MODEL).is_dir():
        return ""
    model, seed = study.folder / MODEL, f" --seed {study.config.seed}" if study.config.seed else ""
    less = ["three folds"] if study.advised in BLENDS else []
    less += ["plain training alone"] if study.advised in (AUTO, NETS) else []
    # A study of many rows looks at some of them, and does not know of the others.
    less += [f"at most {QUICK_ROWS:,} rows"] if study.config.rows > 0.9 * QUICK_ROWS else []
    if not less:
        return f"{model} has been fitted in the same way{seed and f', with{seed}'}."
    return (
        f"{model} is the same, fitted quickly: {listed(less)}. The command makes it with "
        f"--quick{seed}."
    )


def net_recipe(study: Study, method: str) -> str:
    """Return a script that trains one net with a method's chosen settings."""
    run, hidden = study.best[method], study.config.hidden
    if is_logged(study.config.metric):
        return _lightning_recipe(method, run.settings or Settings())
    log = ", log=True" if run.log else ""
    settings = f"settings = Settings(\n{_settings(run.settings or Settings())}\n)"
    shown = f"{_print_score(study)}\n"
    end = f"result = fit(net, split, {as_python(method)}, settings)\n{shown}"
    if not hidden or _is_own(study):  # not the net for tables, or not a table
        return f"""\
import regaug
from regaug.training import Settings, fit

problem = {problem_of(study)}
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
(result,) = fit_many(split, {as_python(method)}, [settings], hidden={hidden!r})
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


def _lightning_recipe(method: str, settings: Settings) -> str:
    """Return a script that trains a Lightning module with a method's chosen settings."""
    trainer = f"trainer = pl.Trainer(max_epochs={settings.epochs}"
    end = "trainer.fit(make_module(), datamodule=make_datamodule())\n"
    if method == REFERENCE:
        return f"import lightning.pytorch as pl\n\n{trainer})\n{end}"
    return f"""\
import lightning.pytorch as pl
from regaug.integrations.lightning import AugmentCallback

callback = AugmentCallback(
    {as_python(method)},
    method_settings={as_python(settings.method_settings)},
)
{trainer}, callbacks=[callback])
{end}"""


def problem_of(study: Study) -> str:
    """Return how a problem with a network of its own is made again, in Python."""
    name, source = study.config.problem, str(_given(study)["source"])
    if is_script(source):
        return f"regaug.Problem.from_file({as_python(source)})"
    if name in NAMES:
        return f"regaug.Problem.named({as_python(name)})"
    return "regaug.Problem(splits, model=make_net)  # as it was compared"


def _is_own(study: Study) -> bool:
    """Tell whether what was compared is a problem in a file of the user's own, not a table."""
    return is_script(str(_given(study)["source"]))


def _open(study: Study) -> str:
    given = _given(study)
    source = given["source"]
    if "target" not in given:
        return f"regaug.data.load({as_python(source)})"
    options = {name: given[name] for name in (*COLUMNS, "relevance") if name in given}
    if len(options["target"]) == 1:
        options["target"] = options["target"][0]
    listed = ", ".join(f"{name}={as_python(value)}" for name, value in options.items())
    return f"regaug.data.read_table({as_python(source)}, {listed})"


def _given(study: Study) -> Mapping[str, Any]:
    """Return how the data are named, with placeholders for what is not known."""
    if study.facts is not None and study.facts.given.get("source"):
        return study.facts.given
    name = study.config.problem
    return {"source": name} if name in NAMES else {"source": DATA, "target": [TARGET]}


def _settings(settings: Settings, *, exact: bool = False) -> str:
    """Write out the settings that differ from the defaults; each run's seed is its own."""
    plain = Settings().to_dict() | {"seed": settings.seed}
    given = [item for item in settings.to_dict().items() if item[1] != plain.get(item[0])]
    return "\n".join(f"    {name}={as_python(value, exact=exact)}," for name, value in given)


def as_python(value: object, *, exact: bool = False) -> str:
    """Write a value as Python, drawn numbers with six digits or all of them."""
    if isinstance(value, Mapping):
        items = "".join(
            f"        {as_python(name)}: {as_python(own, exact=exact)},\n"
            for name, own in value.items()
        )
        return f"{{\n{items}    }}"
    if isinstance(value, list | tuple):
        listed = ", ".join(as_python(item, exact=exact) for item in value)
        return f"[{listed}]" if isinstance(value, list) else f"({listed})"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # as Python, but always in double quotes
    is_drawn = isinstance(value, float) and not exact
    return repr(float(f"{value:.6g}") if is_drawn else value)

"""The pages of the API: every public name in a table of its group, each with a page of its own.

The names are those of the modules' ``__all__``, and those that a user is handed but does not
import. An object has one page, under the shortest name that it is imported by.
"""

import ast
import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

SUMMARY = "See :doc:`the guide by task </guide>` for how the parts are used together."


@dataclass(frozen=True)
class Group:
    """A page of the API: names of ``regaug`` itself, modules whose names it has, and more names."""

    title: str
    own: str = ""
    modules: str = ""
    more: str = ""


GROUPS = {
    "studies": Group(
        "Which method helps: studies",
        own="compare Study Problem",
        modules="regaug.problems regaug.report",
        more="""regaug.studies.statistics.Comparison regaug.studies.statistics.Row
            regaug.studies.pairs.Pair regaug.studies.details.Details
            regaug.studies.verdict.Verdict regaug.studies.checks.Check
            regaug.studies.steps.Steps regaug.studies.progress.Progress
            regaug.runs.run.Run regaug.runs.record.RunRecord""",
    ),
    "ensembles": Group(
        "A model that predicts: ensembles",
        own="fit",
        modules="regaug.ensemble",
        more="regaug.ensemble.importance.Importance regaug.ensemble.coverage.Coverage",
    ),
    "augmentations": Group(
        "Augmentations", modules="regaug.augment", more="regaug.augment.layer.AtLayer"
    ),
    "samplers": Group("Batch samplers", modules="regaug.samplers"),
    "functional": Group("Pure functions", modules="regaug.functional"),
    "methods": Group("Methods by name", modules="regaug.methods"),
    "testing": Group("Checks of your own parts", modules="regaug.testing"),
    "data": Group(
        "Data",
        modules="regaug.data",
        more="""regaug.data.tabular.table.Table regaug.data.tabular.encoding.Encoder
            regaug.data.tabular.generation.generate""",
    ),
    "training": Group(
        "Training",
        modules="regaug.training regaug.training.baselines",
        more="regaug.training.estimators.fit_estimator regaug.training.estimators.NewRows",
    ),
    "metrics": Group("Metrics", modules="regaug.metrics"),
    "models": Group("Networks", modules="regaug.models"),
    "dimension": Group(
        "Dimension",
        own="two_nn linear_dimension",
        more="regaug.dimension.TwoNN regaug.dimension.two_nn_of_each",
    ),
    "integrations": Group(
        "Lightning, scikit-learn, skorch",
        modules="regaug.integrations.sklearn regaug.integrations.lightning",
        more="regaug.integrations.skorch.AugmentedNetRegressor",
    ),
    "reproduction": Group("The paper's figures", modules="regaug.reproduction.published"),
    "exceptions": Group("Errors", modules="regaug.exceptions"),
}


def public_names(module: ModuleType) -> list[str]:
    """Return the names of a module that are for its users: ``__all__``, or what it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [name for name, value in vars(module).items() if _home(value) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _home(value: object) -> str | None:
    return getattr(value, "__module__", None) if callable(value) else None


def find(name: str) -> object:
    """Return what a full name stands for."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def names_of(group: Group) -> list[str]:
    """Return the full names that a group lists, shortest first where there are several."""
    import regaug

    names = [f"regaug.{name}" for name in group.own.split()]
    for path in group.modules.split():
        module = import_module(path)
        for name in public_names(module):
            same = getattr(regaug, name, None) is getattr(module, name)
            names.append(f"regaug.{name}" if same else f"{path}.{name}")
    names += group.more.split()
    return [name for name in dict.fromkeys(names) if not inspect.ismodule(find(name))]


def documented() -> dict[str, list[str]]:
    """Return the groups' names, each object once: in the first group that has it."""
    seen: set[int] = set()
    listed = {}
    for key, group in GROUPS.items():
        names = [name for name in names_of(group) if id(find(name)) not in seen]
        seen.update(id(find(name)) for name in names if has_page(name))
        listed[key] = names
    return listed


def has_page(name: str) -> bool:
    """Tell whether a name is a class or a function: a constant stands on its group's page."""
    return inspect.isclass(find(name)) or inspect.isfunction(find(name))


def write_group(group: Group, names: list[str]) -> str:
    """Return a group's page."""
    lines = [group.title, "=" * len(group.title), ""]
    for path in group.modules.split():
        described = inspect.getdoc(import_module(path)) or ""
        lines += [f".. currentmodule:: {path}", "", described, ""]
    lines += [
        ".. currentmodule:: regaug",
        "",
        ".. autosummary::",
        "   :toctree: .",
        "   :nosignatures:",
        "",
    ]
    lines += [f"   ~{name.removeprefix('regaug.')}" for name in names if has_page(name)]
    constants = [name for name in names if not has_page(name)]
    if constants:
        lines += ["", "Constants", "---------", ""]
    for name in constants:
        lines += [*describe_constant(name), ""]
    return "\n".join(lines) + "\n"


def describe_constant(name: str) -> list[str]:
    """Return a constant's entry: its value if that is short, and its comment."""
    value = repr(find(name))
    module, _, last = name.rpartition(".")
    lines = [f".. currentmodule:: {module}", "", f".. py:data:: {last}"]
    if len(value) <= 70 and " object at " not in value:
        lines.append(f"   :value: {value}")
    return [*lines, "", *(f"   {line}" for line in comment_of(name))]


def comment_of(name: str) -> list[str]:
    """Return the comment above or beside a constant where it is set, or nothing."""
    path, _, last = name.rpartition(".")
    package = Path(inspect.getfile(import_module(path))).parent
    for file in sorted(package.glob("*.py")):
        text = file.read_text()
        for node in ast.parse(text).body:
            if last in _assigned(node):
                return _comment_above(text.splitlines(), node.lineno - 1)
    return []


def _assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _comment_above(lines: list[str], at: int) -> list[str]:
    if "  # " in lines[at]:
        return [lines[at].split("  # ", 1)[1]]
    found: list[str] = []
    while at > 0 and lines[at - 1].startswith("# "):
        at -= 1
        found.insert(0, lines[at].removeprefix("# "))
    return found


def write_pages(app: Sphinx, config: object) -> None:
    """Write ``api.rst`` and a page for each group; what has not changed keeps its date."""
    docs = Path(app.srcdir)
    listed = documented()
    pages = {docs / "api" / f"{key}.rst": write_group(GROUPS[key], listed[key]) for key in GROUPS}
    contents = "\n".join(f"   api/{key}" for key in GROUPS)
    pages[docs / "api.rst"] = f"API\n===\n\n{SUMMARY}\n\n.. toctree::\n\n{contents}\n"
    wanted = {f"{name}.rst" for names in listed.values() for name in names if has_page(name)}
    for stale in (docs / "api").glob("regaug.*.rst"):
        if stale.name not in wanted:
            stale.unlink()
    (docs / "api").mkdir(exist_ok=True)
    for path, text in pages.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

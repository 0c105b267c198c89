"""The import graph: every module imports what stands above it, and nothing goes round."""

import ast
from pathlib import Path

import regaug

ROOT = Path(regaug.__file__).parent
# DESIGN.md's order: a line may import itself and what stands above it.
ORDER = [
    ["exceptions", "_version"],
    [
        "_checks",
        "_registry",
        "_random",
        "_regular",
        "_files",
        "_tensors",
        "_outputs",
        "_scripts",
        "formatting",
    ],
    ["functional"],
    ["metrics"],
    ["dimension"],
    ["augment"],
    ["samplers"],
    ["methods"],
    ["testing"],
    ["data"],  # what the rest of data stands on: base, splits, scaling and so on
    ["data.tabular"],
    ["data.datasets"],
    ["data.__init__"],
    ["models"],
    ["training"],
    ["problems"],
    ["runs"],
    ["ensemble"],
    ["studies"],
    ["report"],
    ["reproduction"],
    ["integrations"],
    ["cli"],
    ["__init__"],
    ["__main__"],
]
LINES = {name: line for line, names in enumerate(ORDER) for name in names}


def module_name(path: Path) -> str:
    """``data.base`` for regaug/data/base.py, ``data.__init__`` for regaug/data/__init__.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def resolve(dotted: str) -> str | None:
    """Return the module that ``regaug.a.b`` is, or None if it is a name inside a module."""
    inner = dotted.removeprefix("regaug").removeprefix(".")
    package = f"{inner}.__init__" if inner else "__init__"
    return next((name for name in (inner, package) if name in MODULES), None)


def imports_of(module: str) -> set[str]:
    """Return every module of regaug that ``module`` imports, wherever in its text."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: imports are written out, not relative"
            dotted = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in dotted:
            if name.split(".")[0] == "regaug":
                target = resolve(name) or resolve(name.rpartition(".")[0])
                assert target, f"{module} imports {name}, which is not there"
                found.add(target)
    return found


IMPORTS = {module: imports_of(module) for module in MODULES}


def line_of(module: str) -> int:
    """Return the line of the order on which a module stands: that of its longest known prefix."""
    parts = module.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    line = next((LINES[prefix] for prefix in prefixes if prefix in LINES), None)
    assert line is not None, f"{module} has no line in the order of imports: add it to DESIGN.md"
    return line


def test_imports_point_up():
    down = {
        (module, target)
        for module, targets in IMPORTS.items()
        for target in targets
        if line_of(target) > line_of(module)
    }
    assert sorted(down) == []


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach one another."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting.extend(graph[name])
        return seen

    reached = {module: reach(module) for module in graph}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
        if module in reached[module]
    }
    return sorted(sorted(group) for group in groups)


def test_no_imports_go_round():
    assert cycles(IMPORTS) == []


def test_the_graph_is_read_wherever_an_import_is_written():
    assert "_version" in IMPORTS["__init__"]  # from regaug.a import a_name
    assert "_random" in IMPORTS["dimension"]  # from regaug import a_module
    assert resolve("regaug.data") == "data.__init__"
    assert resolve("regaug.data.base.Data") is None
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == [["b", "c"], ["d"]]

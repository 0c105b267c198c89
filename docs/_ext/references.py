"""Where a name in a docstring leads: to the page of what it stands for, by whatever name.

Docstrings name things as the code around them does, ``regaug.augment.foma.FOMA``; the page is
that of ``regaug.FOMA``. What exists and has no page (a type of another package, a private part)
stays plain text. What does not exist is left to Sphinx, which complains.
"""

import builtins
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from api_page import documented, find, has_page
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

# A link from a page of source to the page of a name.
BACK = re.compile(r"(href=\"(?:\.\./)+api/)([\w.]+)\.html#([\w.]+)")


@cache
def pages() -> dict[int, str]:
    """Return the name of the page of each object that has one."""
    names = [name for group in documented().values() for name in group if has_page(name)]
    return {id(find(name)): name for name in names}


def import_path(path: str) -> Iterator[tuple[object, str]]:
    """Yield what the parts of a path stand for, each with the rest of the path."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        chain = [(found, ".".join(parts[length:]))]
        for at, part in enumerate(parts[length:], length + 1):
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", {}):
                return
            found = getattr(found, part, None)
            chain.append((found, ".".join(parts[at:])))
        yield from chain
        return


def page_of(target: str) -> str | None:
    """Return the name of the page that a path leads to; "" if it exists and has none."""
    chain = list(import_path(target))
    for found, rest in chain:
        if id(found) in pages():
            return ".".join(filter(None, [pages()[id(found)], rest]))
    return "" if chain else None


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement
) -> nodes.Node | None:
    """Make the link of a name that Sphinx does not find."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    if hasattr(builtins, target):
        return text
    around = [node.get("py:module"), node.get("py:class")]
    for prefix in ([], around[:1], around):
        path = ".".join([*filter(None, prefix), target])
        name = page_of(path)
        if name is not None:
            return link(app, env, node, name, text) or text
    first, _, rest = target.partition(".")
    ends = [name for name in pages().values() if name.endswith(f".{first}")]
    if len(ends) == 1:
        return link(app, env, node, ".".join(filter(None, [ends[0], rest])), text)
    # In a signature: a type that is imported for those who check types.
    return None if isinstance(text, nodes.literal) else text


def link(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, name: str, text: nodes.TextElement
) -> nodes.Node | None:
    """Return a link to the place of a documented name, or None if it has none."""
    entry = env.domains.python_domain.objects.get(name)
    if entry is None:
        return None
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, [text], name)


def skip_foreign(
    app: Sphinx, kind: str, name: str, value: object, skip: bool, options: object
) -> bool | None:
    """Leave out what a class has from another package: its page is elsewhere."""
    inner = getattr(value, "fget", None) or getattr(value, "func", None) or value
    home = getattr(inner, "__module__", None)
    return True if isinstance(home, str) and not home.startswith("regaug") else None


def follow_own(app: Sphinx, module: str, path: str) -> str | None:
    """Say where a source is looked for: that of other packages nowhere but where it is named."""
    chain = list(import_path(f"{module}.{path}"))
    home = getattr(chain[-1][0], "__module__", None) if chain else None
    return None if isinstance(home, str) and home.startswith("regaug") else module


def lead_back(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: object) -> None:
    """Let the links from a source lead to names as their pages have them."""
    if page.startswith("_modules/"):
        context["body"] = BACK.sub(_lead, context["body"])


def _lead(match: re.Match[str]) -> str:
    start, name, anchor = match.groups()
    last = name.rpartition(".")[2]
    parts = anchor.split(".")
    if last in parts:
        anchor = ".".join([name, *parts[parts.index(last) + 1 :]])
    return f"{start}{name}.html#{anchor}"


def keep_colon(app: Sphinx, what: str, name: str, value: object, *rest: Any) -> None:
    """Say that a property's words before a colon are no type, as napoleon thinks."""
    lines = rest[-1]
    if what in {"attribute", "data", "property"} and lines and ":" in lines[0]:
        lines[0] = f": {lines[0]}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect what is above with Sphinx's events."""
    app.connect("missing-reference", resolve)
    app.connect("viewcode-follow-imported", follow_own)
    app.connect("html-page-context", lead_back)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", keep_colon, priority=400)  # napoleon has 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}

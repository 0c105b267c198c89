"""Which page stands under which: one list, from which every table of contents is made.

A page that is not there is left out, so that a page comes into the navigation by being written.
``*`` stands for all pages of a folder.
"""

import fnmatch
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

UNDER = {
    "index": [
        "start",
        "guide",
        "methods",
        "study",
        "results",
        "examples/index",
        "api",
        "commands",
        "faq",
        "pitfalls",
        "formats",
        "contributing",
        "changelog",
    ],
    "start": ["which_method"],
    "guide": [
        "compare",
        "loop",
        "own_network",
        "integrations",
        "data",
        "samplers",
        "training",
        "dimension",
        "shift",
        "cluster",
        "notebooks/*",
    ],
    "methods": ["foma", "methods/*"],
    "study": ["checks", "sentences"],
    "results": ["reproduction", "atlas", "field"],
}
# Where a page goes whose own place is not there: "guide" until "study" is written, for instance.
ELSEWHERE = {"start": "guide", "study": "guide"}


def pages_under(page: str, found: set[str]) -> list[str]:
    """Return the pages that stand under one, in order, of those that are there."""
    patterns = list(UNDER.get(page, []))
    for absent, stand_in in ELSEWHERE.items():
        if stand_in == page and absent not in found:
            patterns += UNDER[absent]
    return [name for pattern in patterns for name in sorted(fnmatch.filter(found, pattern))]


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Give a page its table of contents: unseen, the theme shows it at the side."""
    if pages := pages_under(page, app.env.found_docs):
        source[0] += (
            "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(f"/{p}" for p in pages) + "\n```\n"
        )


def read_again(app: Sphinx, env: BuildEnvironment, *_: Any) -> list[str]:
    """Return the pages under which other pages stand now than when they were read."""
    now = {page: pages_under(page, env.found_docs) for page in UNDER}
    before = getattr(env, "regaug_navigation", {})
    env.regaug_navigation = now
    return [page for page in UNDER if page in env.found_docs and now[page] != before.get(page)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect what is above with Sphinx's events."""
    app.connect("source-read", add_contents)
    app.connect("env-get-outdated", read_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

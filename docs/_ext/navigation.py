"""Which page stands under which: one list, from which tables of contents and cards are made.

A page that is not there is left out, so that a page comes into the navigation by being written.
``*`` stands for all pages of a folder. A page whose text has a table of contents of its own keeps
it. The line ``<!-- cards: guide -->`` becomes a card for each page under ``guide``.
"""

import fnmatch
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

UNDER = {
    "index": [
        *("start", "guide", "methods/index", "study", "results", "examples/index"),
        *("api", "commands", "faq", "pitfalls", "formats", "contributing", "changelog"),
    ],
    "start": ["which_method"],
    "guide": [
        *("compare", "loop", "own_network", "integrations", "data", "shift", "cluster"),
        *("training", "samplers", "dimension", "notebooks/*"),
    ],
    "study": ["checks", "sentences"],
    "results": ["reproduction", "atlas", "field", "speed"],
}
# Where pages go whose own place is not there.
ELSEWHERE = {"start": "guide", "study": "guide"}

# What a page is called in the navigation, where that is not its heading, and what its card says.
TITLES = {
    "start": "Start",
    "methods/index": "Methods",
    "study": "How a study decides",
    "faq": "FAQ",
    "pitfalls": "Pitfalls",
    "formats": "File formats",
    "commands": "Commands",
    "compare": "My CSV",
    "loop": "My PyTorch loop",
    "own_network": "My own network",
    "integrations": "Lightning, scikit-learn, skorch",
    "data": "Data: tables, images, series, pairs",
    "shift": "Out of distribution",
    "cluster": "On a cluster",
    "training": "Training",
    "samplers": "Batch samplers",
    "dimension": "Dimension",
    "which_method": "Which method should I start with?",
    "checks": "Checks of a study",
    "sentences": "What a study says",
    "reproduction": "The paper",
    "atlas": "The atlas",
    "field": "The field",
    "speed": "Speed",
    "examples/index": "Gallery",
}
SENTENCES = {
    "compare": "Which augmentation helps on a table: one command, one report.",
    "loop": "Two lines in a training loop: on the inputs, at a layer, in a loader.",
    "own_network": "Which augmentation helps a network of yours: images, series, pairs, anything.",
    "integrations": "Keep your trainer, and add a callback, an estimator or a sampler.",
    "data": "What a table may look like, the data sets by name, and data of your own.",
    "shift": "When the rows to be predicted are not like the rows that were learned from.",
    "cluster": "One study on many machines: a shared folder, or Ray.",
    "training": "The recipe of a training: rate, schedule, batches, interrupted runs.",
    "samplers": "Which samples share a batch: random, nearest, weighted, rare.",
    "dimension": "How many dimensions a cloud of points really has.",
    "which_method": "A drawing and a table: situation, first choice, why.",
    "reproduction": "Every table and figure of the FOMA paper, measured again.",
    "atlas": "What the search, the ensembles and the baselines are worth on many real tables.",
    "field": "Every method against plain training on real tables, with its interval.",
    "speed": "What is faster than the textbook way, by how much, and how it was before.",
    "checks": "The coded warnings of a study: how each is found, and what to do.",
}
CARDS = re.compile(r"^<!-- cards: ([\w/]+) -->$", re.MULTILINE)


def pages_under(page: str, found: set[str]) -> list[str]:
    """Return the pages that stand under one, in order, of those that are there."""
    patterns = list(UNDER.get(page, []))
    for absent, stand_in in ELSEWHERE.items():
        if stand_in == page and absent not in found:
            patterns += UNDER[absent]
    names = [name for pattern in patterns for name in sorted(fnmatch.filter(found, pattern))]
    return [name for name in dict.fromkeys(names) if name != page]


def write_cards(page: str, found: set[str]) -> str:
    """Return a grid of cards: a title, and a sentence where there is one, each a link."""
    lines = ["::::{grid} 1 2 3 3", ":gutter: 3"]
    for name in pages_under(page, found):
        title = TITLES.get(name, name.rpartition("/")[2].replace("_", " ").capitalize())
        lines += [f":::{{grid-item-card}} {title}", f":link: /{name}", ":link-type: doc"]
        lines += ["", SENTENCES.get(name, ""), ":::"]
    return "\n".join([*lines, "::::"])


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Give a page its cards and its table of contents: unseen, the theme shows it at the side."""
    found = app.env.found_docs
    source[0] = CARDS.sub(lambda match: write_cards(match[1], found), source[0])
    pages = pages_under(page, found)
    if pages and "toctree}" not in source[0]:
        entries = (f"{TITLES[name]} </{name}>" if name in TITLES else f"/{name}" for name in pages)
        source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n"


def read_again(app: Sphinx, env: BuildEnvironment, *_: Any) -> list[str]:
    """Return the pages to read, as other pages stand in the navigation than when they were read."""
    now = {page: pages_under(page, env.found_docs) for page in UNDER}
    before = getattr(env, "regaug_navigation", None)
    env.regaug_navigation = now
    return [page for page in UNDER if page in env.found_docs and now != before]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect what is above with Sphinx's events."""
    app.connect("source-read", add_contents)
    app.connect("env-get-outdated", read_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

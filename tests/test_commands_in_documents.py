"""Commands in the README and the docs are such that there are, with options that they have."""

import re
import shlex
from pathlib import Path

import pytest
from benchmarks.tables.commands import commands

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted(PROJECT.glob("docs/**/*.md"))]
COMMANDS = commands()
EVERYWHERE = {"--help", "--version", "--install-completion"}


def commands_in(text):
    """Return the words of every ``regaug`` command in blocks of a shell, and after pipes."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    parts = [part for line in lines for part in re.split(r" \| | && ", line)]
    return [shlex.split(part, comments=True) for part in parts if part.startswith("regaug ")]


def options_of(words):
    """Return the options of a command that there are, and those that it is given."""
    name = " ".join(words[1:3]) if words[1] == "data" else words[1]
    known = (
        {option for own in COMMANDS[name].params for option in own.opts}
        if name[0] != "-"
        else set()
    )
    return known | EVERYWHERE, {
        word.partition("=")[0] for word in words if word.startswith("-") and word != "-"
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_commands_have_the_options_that_they_are_given(page):
    for words in commands_in(page.read_text()):
        known, given = options_of(words)
        assert given <= known, " ".join(words)


def test_commands_are_found():
    text = "```sh\ncat a.csv | regaug compare - --target y  # why\nregaug data list\n```\n"
    assert commands_in(text) == [
        ["regaug", "compare", "-", "--target", "y"],
        ["regaug", "data", "list"],
    ]
    assert len(commands_in((PROJECT / "README.md").read_text())) >= 3
    known, given = options_of(["regaug", "compare", "--taget", "y"])
    assert not given <= known

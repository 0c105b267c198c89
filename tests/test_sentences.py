"""What a verdict or a check can say stands on the page that explains it, and nothing else does."""

import ast
import re
from pathlib import Path

import pytest

from regaug.data.tabular import leaks
from regaug.studies import advice, checks, verdict

DOCS = Path(__file__).resolve().parents[1] / "docs"
SENTENCES, CHECKS = DOCS / "sentences.md", DOCS / "checks.md"
# Modules that make sentences, and where these are explained.
SOURCES = {verdict: SENTENCES, advice: SENTENCES, checks: CHECKS, leaks: CHECKS}
PARTS = ("**How it is found.**", "**Why it matters.**", "**What to do.**")
FEWEST_WORDS = 2


class Texts(ast.NodeVisitor):
    """The texts of functions, with ``{}`` for whatever is put in."""

    def __init__(self):
        self.found = []

    def visit_JoinedStr(self, node):
        parts = [own.value if isinstance(own, ast.Constant) else "{}" for own in node.values]
        self.found.append("".join(parts))
        for own in node.values:  # what is put in may have a text of its own
            if isinstance(own, ast.FormattedValue):
                self.visit(own.value)

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.found.append(node.value)

    def visit_FunctionDef(self, node):
        for own in node.body[ast.get_docstring(node) is not None :]:
            self.visit(own)


def templates(code):
    """Return the texts of some code that a reader may meet: two words or more."""
    texts = Texts()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef):
            texts.visit(node)
    words = {text: re.findall(r"[A-Za-z]{2,}", text) for text in texts.found}
    return [text for text in words if len(words[text]) >= FEWEST_WORDS]


def is_in(template, quote):
    """Tell whether a quotation has a text, whatever was put into it."""
    pattern = ".*?".join(map(re.escape, template.split("{}")))
    return re.search(pattern, quote, re.IGNORECASE) is not None


def quotes(page):
    return re.findall(r"^> (.+)$", page.read_text(), re.MULTILINE)


CODE = {module: Path(module.__file__).read_text() for module in SOURCES}
TEXTS = [(text, SOURCES[module]) for module in SOURCES for text in templates(CODE[module])]


@pytest.mark.parametrize(("text", "page"), TEXTS, ids=[text[:40] for text, _ in TEXTS])
def test_what_can_be_said_is_explained(text, page):
    assert any(is_in(text, quote) for quote in quotes(page)), f"{page.name} lacks {text!r}"


@pytest.mark.parametrize("page", [SENTENCES, CHECKS], ids=lambda page: page.name)
def test_what_is_explained_can_be_said(page):
    known = [text for text, _ in TEXTS]
    for quote in quotes(page):
        assert any(is_in(text, quote) for text in known) or quote == "Use mixup.", quote


def test_every_sentence_is_explained_in_three_parts():
    sections = re.split(r"^## ", SENTENCES.read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) > 10
    for section in sections[1:]:  # that on leaks leads to the checks
        assert [section.count(part) for part in PARTS] == [1, 1, 1], section.splitlines()[0]
        assert "\n> " in section


def test_every_check_says_what_it_says():
    for section in re.split(r"^## ", CHECKS.read_text(), flags=re.MULTILINE)[1:]:
        assert section.splitlines()[2].startswith("> "), section.splitlines()[0]


def test_a_sentence_that_is_new_is_found():
    code = '''
def say(name, size):
    """A docstring is no sentence."""
    return f"{name} has surprised us by {size}{' or so' if size else ''}."
'''
    assert templates(code) == ["{} has surprised us by {}{}.", " or so"]
    assert is_in("{} has surprised us by {}.", "Mixup has surprised us by 5 %.")
    assert not is_in("{} has surprised us by {}.", "Mixup has surprised us.")

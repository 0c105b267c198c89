"""The built site, file by file: links lead somewhere, nothing is fetched, everything has a name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

pytestmark = pytest.mark.site

SITE = Path(__file__).resolve().parents[2] / "site"
# Tags whose address a browser fetches by itself, and the attribute that has it.
FETCHED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src"}


@dataclass
class Page(HTMLParser):
    """What the tests ask of a page."""

    path: Path
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    raw: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.raw = self.path.read_text()
        self.feed(self.raw)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in FETCHED and found.get(FETCHED[tag]):
            self.fetched.append(found[FETCHED[tag]])
        if tag == "link" and found.get("rel") in {"stylesheet", "icon", "preload"}:
            self.fetched.append(found["href"])
        if tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.headings.append(tag)
        # A thumbnail has its title beside it, in the same link.
        decorates = found.get("src", "").endswith("_thumb.png") and "alt" in found
        says = found.get("alt") or found.get("title") or decorates
        if tag in {"img", "iframe"} and not says:
            self.nameless.append(self.get_starttag_text() or tag)


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    if not (SITE / "index.html").exists():
        pytest.skip("needs the built site: make docs")
    return {
        path: Page(path) for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts
    }


def local(links: list[str]) -> Iterator[str]:
    """Yield the links that stay on the site."""
    for link in links:
        if not urlsplit(link).scheme and not link.startswith("//"):
            yield link


def test_every_link_leads_to_a_page_and_a_place_that_are_there(pages):
    broken = set()
    for path, page in pages.items():
        for link in local([*page.links, *page.fetched]):
            address, anchor = urldefrag(link)
            file = unquote(urlsplit(address).path)
            target = (path.parent / file).resolve() if file else path
            there = target.is_file()
            if anchor and target in pages:
                there = unquote(anchor) in pages[target].ids
            if not there:
                broken.add((path.relative_to(SITE).as_posix(), link))
    assert not broken, sorted(broken)[:20]


def test_nothing_is_fetched_from_another_host(pages):
    for path, page in pages.items():
        foreign = [at for at in page.fetched if urlsplit(at).netloc]
        assert not foreign, (path, foreign)
    for style in SITE.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", style.read_text(), flags=re.DOTALL)
        assert not re.findall(r"(?:@import\s+|url\()\s*['\"]?(?:https?:)?//", text), style


def test_every_page_has_one_heading_of_the_first_level_and_leaves_out_no_level(pages):
    for path, page in pages.items():
        assert page.headings.count("h1") == 1, path
        body = page.headings[page.headings.index("h1") :]
        steps = [(int(a[1]), int(b[1])) for a, b in pairwise(body)]
        assert all(after <= before + 1 for before, after in steps), (path, body)


def test_every_picture_says_what_it_shows(pages):
    assert not {str(path): page.nameless for path, page in pages.items() if page.nameless}


def test_no_markup_is_left_as_it_was_written(pages):
    for path, page in pages.items():
        text = re.sub(
            r"<pre.*?</pre>|<code.*?</code>|<script.*?</script>", "", page.raw, flags=re.S
        )
        text = re.sub(r"<[^>]*>", "", text)
        assert not re.findall(r":(?:class|func|meth|attr|mod|data|math|py:\w+):`", text), path
        formulas = re.findall(r"<math.*?</math>", page.raw, flags=re.DOTALL)
        assert not [one for one in formulas if "\\" in one], path


def test_examples_of_the_api_are_blocks_of_code(pages):
    examples = 0
    for path, page in pages.items():
        if path.parent.name == "api":
            assert not re.search(r"<blockquote>(?:(?!</blockquote>).)*&gt;&gt;&gt;", page.raw, re.S)
            examples += len(re.findall(r"class=\"[^\"]*doctest highlight-", page.raw))
    assert examples > 60


def test_every_public_name_has_a_page_with_a_link_to_its_source(pages):
    import regaug

    for name in regaug.__all__:
        page = pages.get(SITE / "api" / f"regaug.{name}.html")
        if name[0].isupper() or page is not None:  # the others are modules, with pages of a group
            assert page is not None, name
            assert any(link.startswith("../_modules/") for link in page.links), name

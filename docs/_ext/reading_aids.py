"""What a reader with a screen reader needs, and Sphinx and its theme leave out."""

import re
from functools import wraps
from html import escape
from typing import Any

from sphinx.application import Sphinx

# A signature of several lines is a <dl> of <dd> alone, inside the <dt> of what it belongs to.
LINES = re.compile(r"<dl>\n((?:<dd>.*?</dd>\n)+)</dl>")
# In the sidebar, what opens the pages under another one is an arrow without a name.
ARROW = re.compile(r"(<a [^>]*>([^<]*(?:<(?!/a>)[^<]*)*)</a>\s*<details[^>]*>\s*)<summary>")

# The link of a thumbnail of the gallery has its words hidden by the gallery's style.
THUMBNAIL = re.compile(
    r'(<a class="reference internal" href="[^"]*plot_[^"]*")>(<span class="doc">([^<]*)</span>)'
)


def name_thumbnails(body: str) -> str:
    """Return a page's text in which the links of thumbnails say where they lead."""
    return THUMBNAIL.sub(r'\1 aria-label="\3">\2', body)


def name_lines(body: str) -> str:
    """Return a page's text whose signatures are lines, and no lists of definitions."""

    def as_lines(match: re.Match[str]) -> str:
        lines = match[1].replace("<dd>", "<div>").replace("</dd>", "</div>")
        return f'<div class="sig-lines">\n{lines}</div>'

    return LINES.sub(as_lines, body)


def name_arrows(sidebar: str) -> str:
    """Return a sidebar in which every arrow says what it opens."""

    def as_named(match: re.Match[str]) -> str:
        title = re.sub(r"(?:<[^>]*>|\s)+", " ", match[2]).strip()
        return f'{match[1]}<summary aria-label="Pages under {escape(title)}">'

    return ARROW.sub(as_named, sidebar)


def mend(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: object) -> None:
    """Mend a page that is about to be written."""
    if context.get("body"):
        context["body"] = name_thumbnails(name_lines(context["body"]))
    if "generate_toctree_html" in context:
        make = context["generate_toctree_html"]

        @wraps(make)
        def make_named(*given: Any, **options: Any) -> Any:
            made = make(*given, **options)
            return name_arrows(made) if isinstance(made, str) else made

        context["generate_toctree_html"] = make_named


def setup(app: Sphinx) -> dict[str, bool]:
    """Mend what the theme has made, after the theme."""
    app.connect("html-page-context", mend, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

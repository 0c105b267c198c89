"""Pages from templates: one HTML file with its style in it, in light and dark."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from regaug._files import write_text
from regaug._outputs import Output, has_mark
from regaug._version import __version__
from regaug.report import drawing


def render_template(template: str, /, **values: Any) -> str:
    """Return a page as text; plots are put in as they are, all else is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("regaug.report", package_path=""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template(template).render(
        generator=f"regaug {__version__}",  # by which the page is known as regaug's own
        svg=Markup,  # the plots escape what they write
        colors={"light": drawing.LIGHT, "dark": drawing.DARK},
        style=Markup(drawing.page_style()),
        **values,
    )
    return re.sub(drawing.FORBIDDEN, "\ufffd", page)


def write_page(path: str | Path, render: Callable[[], str], *, force: bool = False) -> Path:
    """Write a page, unless something else is there; it is not made if it could not be written."""
    place = report_output(path, force=force)
    page = render()
    place.check()
    write_text(place.path, page)
    return place.path


def report_output(
    path: str | Path,
    *,
    inputs: Sequence[str | Path] = (),
    force: bool = False,
    name: str = "path",
) -> Output:
    """Say whether a report may be written there: a new file, or an earlier report."""
    return Output(Path(path), inputs, force=force, name=name, endings=(".html",), is_own=has_mark)

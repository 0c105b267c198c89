"""Pages from templates: one HTML file with its style in it, in light and dark."""

import re
from typing import Any

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
        svg=Markup,  # the plots escape what they write
        colors={"light": drawing.LIGHT, "dark": drawing.DARK},
        style=Markup(drawing.page_style()),
        **values,
    )
    return re.sub(drawing.FORBIDDEN, "\ufffd", page)

"""What readers with a keyboard, a phone or a screen reader need, and Sphinx leaves out."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class WrapTables(SphinxPostTransform):
    """Put every table into a box that scrolls, by the keyboard too: a phone is narrower."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        """Wrap the tables of a page."""
        for table in list(self.document.findall(nodes.table)):
            if isinstance(table.parent, nodes.container) and "wide" in table.parent["classes"]:
                continue
            box = nodes.container(classes=["wide"])
            table.replace_self(box)
            box += table


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform."""
    app.add_post_transform(WrapTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

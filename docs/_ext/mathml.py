"""Formulas as MathML, made at build time: browsers show it by themselves, nothing is loaded."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def write_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def write_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; a wide one scrolls, by the keyboard too."""
    label = node["label"] if node.get("label") else None
    anchor = f' id="equation-{label}"' if label else ""
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="formula" tabindex="0" role="math"{anchor}>{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer it as the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

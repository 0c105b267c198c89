"""Notebooks as pages: what is saved in them is shown, nothing is run."""

import json
from html import escape
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx


class NotebookParser(MystParser):
    """Read a notebook as the Markdown that says the same."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the notebook's text."""
        super().parse(to_markdown(json.loads(inputstring)), document)


def to_markdown(notebook: dict[str, Any]) -> str:
    """Return a notebook's cells, with the outputs that are saved in it, as Markdown."""
    parts = []
    for cell in notebook["cells"]:
        text = _joined(cell["source"])
        if cell["cell_type"] == "code":
            parts.append(_fence("python", text))
            parts += [_show(output) for output in cell["outputs"]]
        else:
            parts.append(text)
    return "\n\n".join(part for part in parts if part)


def _show(output: dict[str, Any]) -> str:
    if output["output_type"] == "error":
        return _fence("text", f"{output['ename']}: {output['evalue']}")
    if output["output_type"] == "stream":
        return _fence("text", _joined(output["text"]).rstrip())
    data = output["data"]
    described = output.get("metadata", {}).get("alt", "Figure that the cell above draws")
    if "image/png" in data:
        picture = _joined(data["image/png"]).replace("\n", "")
        return _raw(f'<img alt="{escape(described)}" src="data:image/png;base64,{picture}">')
    if "text/html" in data:
        return _raw(f'<div class="output" tabindex="0">{_joined(data["text/html"])}</div>')
    return _fence("text", _joined(data.get("text/plain", "")))


def _fence(language: str, text: str) -> str:
    return f"`````{{code-block}} {language}\n{text}\n`````"


def _raw(html: str) -> str:
    return f"`````{{raw}} html\n{html}\n`````"


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Read ``*.ipynb`` so."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

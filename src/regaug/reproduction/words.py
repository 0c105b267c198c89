"""Measured tables as rows of text, for a terminal and for a page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from regaug.reproduction import published

MARKS = {"own": "", "re-run": " (re-run)", "quoted": " (quoted)"}


@dataclass(frozen=True)
class Text:
    """A table of text: a title, a header, rows, and sentences below."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def measured_tables(found: Mapping[str, Any]) -> Iterator[Text]:
    """Give the tables of a measured experiment: the paper's protocol, then the tuned one."""
    notes = tuple(
        sentence
        for sentence in (
            f"Data: {found['note']}." if found["note"] else "",
            found["size"],
            f"Made by: {found['command']}",
        )
        if sentence
    )
    names = list(dict.fromkeys((f["metric"], f["domain"]) for f in _figures(found)))
    header = ["paper protocol"]
    for metric, domain in names:
        column = metric if domain == "average" else f"{metric}, {domain}"
        header += [column] if domain == "unshifted" else [column, "published", "apart"]
    rows = []
    for line in found["paper"]:
        cells = [line["label"] + _say_epochs(line)]
        known = {(f["metric"], f["domain"]): f for f in line["figures"]}
        for name in names:
            cells += _cells(known.get(name), is_published=name[1] != "unshifted")
        rows.append(tuple(cells))
    below = ("apart: difference of the means in combined standard errors",)
    title = f"{found['experiment']}, {found['data']}"
    yield Text(title, tuple(header), tuple(rows), below + notes)
    if found["tuned"]:
        yield _tuned(found, title)


def _figures(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for line in found["paper"]:
        yield from line["figures"]


def _cells(figure: Mapping[str, Any] | None, *, is_published: bool) -> list[str]:
    if figure is None:
        return ["", "", ""] if is_published else [""]
    spread = "" if figure["sd"] is None else f" ± {figure['sd']:.2g}"
    cells = [f"{figure['mean']:.4g}{spread}"]
    if is_published:
        printed = figure["published"]
        apart = figure["apart"]
        cells.append("" if printed is None else printed + MARKS[figure["source"]])
        cells.append("" if apart is None else f"{apart:+.1f}")
    return cells


def _say_epochs(line: Mapping[str, Any]) -> str:
    words = ""
    if line["epochs"] is not None and line["epochs"] < line["of_epochs"]:
        words += f", {line['epochs']} of {line['of_epochs']} epochs"
    if line["done"] < line["planned"]:
        words += f", {line['done']} of {line['planned']} runs"
    return words


def _tuned(found: Mapping[str, Any], title: str) -> Text:
    rows = []
    for row in found["tuned"]:
        change = row["change"]
        rows.append(
            (
                row["name"],
                "failed" if row["mean"] is None else f"{row['mean']:.4g}",
                _between(row["low"], row["high"], ".4g"),
                "" if change is None else f"{change:+.1f} %",
                _between(row["change_low"], row["change_high"], "+.1f"),
                "" if row["p_holm"] is None else f"{row['p_holm']:.2g}",
            )
        )
    header = ("tuned protocol", "mean", "95 % interval", "against erm", "95 % interval", "p (Holm)")
    return Text(f"{title}, tuned", header, tuple(rows), (found["search"], found["verdict"]))


def _between(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def time_table(found: Mapping[str, Any]) -> Text:
    """Return the table of what an epoch costs on one data set."""
    rows = tuple(
        (
            row["method"] + ("" if row["place"] is None else f", {row['place']}"),
            f"{row['seconds']:.3g}",
            f"{row['ratio']:.2f}",
            "" if row["published_ratio"] is None else f"{row['published_ratio']:.2f}",
        )
        for row in found["rows"]
    )
    notes = (
        *((f"Data: {found['note']}.",) if found["note"] else ()),
        f"Medians of {found['rounds']} rounds; the paper's seconds are those of another machine.",
        f"Made by: {found['command']}",
    )
    header = ("variant", "seconds per epoch", "times plain", "times plain, published")
    return Text(f"time, {found['data']}", header, rows, notes)


def settings_tables() -> Iterator[Text]:
    """Give the paper's tables of settings, 8 and 9."""
    for number in (8, 9):
        table = published.table(number)
        rows = tuple((row.label, *row.values) for row in table.rows)
        yield Text(f"table {number}: {table.title}", ("", *table.columns), rows)


def as_markdown(text: Text) -> str:
    """Return a table as Markdown, without its title."""
    lines = ["| " + " | ".join(text.header) + " |", "|" + " --- |" * len(text.header)]
    lines += ["| " + " | ".join(row) + " |" for row in text.rows]
    return "\n".join(lines) + "\n"

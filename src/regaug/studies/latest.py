"""The newest study of a table: ``runs/houses/latest`` leads to it."""

import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from regaug._files import write_link, write_text
from regaug._outputs import has_mark
from regaug._regular import read_regular
from regaug._version import __version__
from regaug.exceptions import StoreError
from regaug.runs.store import STUDY, read_study

LATEST, PAGE, REPORT = "latest", "latest.html", "report.html"
_HINT = "Name the folder that `regaug compare` has written."


def mark_latest(folder: Path) -> Path | None:
    """Let ``latest`` beside the folder of a study lead to it; return the path of the link.

    Where there are no symbolic links, or one may not make any, it is the page ``latest.html``,
    which leads to the report. What somebody else has called so is left alone, and None returned.
    """
    link, page = folder.with_name(LATEST), folder.with_name(PAGE)
    is_mine = page.exists() and has_mark(page)
    is_free = not os.path.lexists(link) or (link.is_symlink() and "/" not in os.readlink(link))
    if is_free and write_link(link, folder.name):
        if is_mine:  # one of them is enough, and must be right
            page.unlink()
        return link
    if page.exists() and not is_mine:
        return None
    write_text(page, _make_page(f"{folder.name}/{REPORT}"))
    return page


def _make_page(target: str) -> str:
    address = escape(target)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="generator" content="regaug {__version__}">\n'
        f'<meta http-equiv="refresh" content="0; url={address}"><title>{address}</title></head>\n'
        f'<body><a href="{address}">{address}</a></body></html>\n'
    )


def find_study(folder: str | Path) -> Path:
    """Return the folder of a study: this one, or the newest of a table.

    ``runs/houses`` is the study that ``runs/houses/latest`` leads to, and so is ``runs`` if it has
    the studies of one table only.
    """
    folder = Path(folder).expanduser()
    if (folder / STUDY).exists():
        return folder.parent / os.readlink(folder) if folder.is_symlink() else folder
    newest = _newest(folder)
    if newest is not None:
        return newest
    tables = [place for place in _folders_in(folder) if any(_studies_in(place))]
    if len(tables) > 1:
        listed = ", ".join(str(place) for place in tables)
        raise StoreError(f"There are studies of several tables in {folder}: name one of {listed}.")
    for table in tables:
        return find_study(table)
    raise StoreError(f"There is no study in {folder}. {_HINT}")


def _newest(folder: Path) -> Path | None:
    """Return the newest of the studies right below a folder; None if there is none."""
    studies = list(_studies_in(folder))
    for name in _marked(folder):
        if folder / name in studies:
            return folder / name
    problems = {str(read_study(study).configuration.get("problem")) for study in studies}
    if len(problems) > 1:
        listed = ", ".join(str(study) for study in studies)
        raise StoreError(f"There are several studies in {folder}: name one of {listed}.")
    return max(studies, key=_time, default=None)


def _marked(folder: Path) -> Iterator[str]:
    """Give the name that ``latest`` leads to, as a link and as a page."""
    if (folder / LATEST).is_symlink():
        yield os.readlink(folder / LATEST)
    if has_mark(folder / PAGE):
        found = re.search(
            rf'href="(.*)/{REPORT}"', read_regular(folder / PAGE).decode("utf-8", "replace")
        )
        yield from [found[1]] if found else []


def _time(study: Path) -> float:
    report = study / REPORT
    return (report if report.exists() else study / STUDY).stat().st_mtime


def _studies_in(folder: Path) -> Iterator[Path]:
    yield from (place for place in _folders_in(folder) if (place / STUDY).exists())


def _folders_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        places = (place for place in sorted(folder.iterdir()) if not place.is_symlink())
        yield from (place for place in places if place.is_dir())

"""Where studies are kept: a folder for every configuration, below one for every table.

``runs/houses/quick``, ``runs/houses/full-seed-1``: the same command continues the same study, and
another command has another folder.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from regaug import methods
from regaug._files import JSON
from regaug._outputs import is_free
from regaug.exceptions import StoreError
from regaug.methods import NO_ROWS, REPEATS, ROWS
from regaug.runs.store import STUDY, Store, is_same, read_study
from regaug.studies.budget import Asked
from regaug.studies.config import REFERENCE, StudyConfig
from regaug.studies.differences import say_differences
from regaug.studies.plan import QUICK_METHODS, QUICK_SPLITS, QUICK_TRIALS, SPLITS, TRIALS

# Methods or columns that a name lists; of more it says how many there are.
_LISTED = 3
# How the name of a folder says which columns were named.
_COLUMNS = {
    "target": "",
    "group": "group-",
    "time": "time-",
    "drop": "without-",
    "relevance": "focus-",
}
_LONGEST = 40  # characters that a name takes of a user's own


@dataclass(frozen=True)
class Place:
    """Where a study is kept.

    Attributes:
        folder: Its own folder.
        others: Folders of other studies of the table, which may have runs in common with it.
        notes: Why it has another name than the plain one, in sentences.
    """

    folder: Path
    others: Sequence[Path] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _Kept:
    """A study that is in a folder."""

    folder: Path
    configuration: Mapping[str, JSON]
    about: Mapping[str, Any]


def claim_place(
    out: Path, config: StudyConfig, *, name: str, given: Mapping[str, Any] | None = None
) -> Place:
    """Find the folder of a study, where it was begun or a new one, and say there whose it is.

    Args:
        out: The folder of all studies.
        config: What the study is.
        name: What its folder is to be called, if nothing else is called so: see
            :func:`name_study`.
        given: How the user named the data: ``source``, ``target`` and so on.
    """
    about: dict[str, Any] = dict(given or {})
    if "source" in about:
        path = Path(about["source"]).expanduser()
        about["source"] = str(path.resolve()) if path.exists() else about["source"]
    while True:
        place = _find_place(out, config, name, about)
        try:
            Store(place.folder, config.to_dict(), about=about, differ=say_differences)
            kept = f"The study is kept in {place.folder}."
            return replace(place, notes=[*place.notes, kept])
        except StoreError:
            # Another process may have begun another study there just now.
            if place == _find_place(out, config, name, about):
                raise


def find_about(
    out: Path, configuration: Mapping[str, JSON], about: Mapping[str, JSON]
) -> Mapping[str, Any] | None:
    """Return what is kept with a study, of which this much is known; None if there is none.

    Args:
        out: The folder of all studies.
        configuration: Some of its configuration, ``problem`` among it.
        about: Some of what is kept with it.
    """
    for table in _tables(out, _stem(str(configuration["problem"]))):
        for own in _studies_in(table):
            known = {name: own.configuration.get(name) for name in configuration}
            kept = {name: own.about.get(name) for name in about}
            if is_same({"a": known, "b": kept}, {"a": configuration, "b": about}):
                return own.about
    return None


def name_study(
    config: StudyConfig,
    *,
    quick: bool,
    splits: int | None = None,
    split: str | None = None,
    asked: Asked | None = None,
) -> str:
    """Return what the folder of a study is called: what was asked for beside the defaults.

    ``splits`` and ``split`` are what the user asked for, None if nothing; ``asked`` is what was
    asked for of the study of a network, whose size is chosen.

    Example:
        >>> config = StudyConfig("houses.csv", methods.usual(), (), TRIALS, SPLITS, "mae", 0.25)
        >>> name_study(config, quick=False)
        'full-mae'
        >>> name_study(config, quick=False, asked=Asked(max_minutes=20.0))
        'full-20-minutes-mae'
    """
    usual, trials, number = (
        (QUICK_METHODS, QUICK_TRIALS, QUICK_SPLITS) if quick else (methods.usual(), TRIALS, SPLITS)
    )
    words = ["quick" if quick else "full"]
    own = config.methods
    if config.kind == "estimator":
        words += [_slug(config.model.rpartition("-")[0] or config.model)]
        words += ["rows"] if ROWS in own else []
        words += ["integers"] if config.keep_integers else []
        usual = tuple(name for name in usual if methods.get(name).as_maker() is not None)
        own = tuple(name for name in own if name not in (NO_ROWS, REPEATS, ROWS))
    if asked is not None:
        words += [] if asked.methods is None else [_say_methods(asked.methods)]
        words += [] if asked.trials is None else [f"trials-{asked.trials}"]
        words += [] if asked.epochs is None else [f"epochs-{asked.epochs}"]
        words += [] if asked.fair == "epochs" else ["same-time"]
        words += [] if asked.max_minutes is None else [f"{asked.max_minutes:g}-minutes"]
        words += [] if splits is None else [f"splits-{splits}"]
    else:
        words += [] if set(own) == set(usual) else [_say_methods(config.methods)]
        words += [] if config.trials == trials else [f"trials-{config.trials}"]
        words += [] if splits in (None, number) else [f"splits-{splits}"]
    words += [] if split is None else [f"split-{split}"]
    words += [] if config.metric == "rmse" else [_slug(config.metric)]
    words += [] if config.search == "random" else [config.search]
    words += ["independent"] if config.independent else []
    words += [f"seed-{config.seed}"] if config.seed else []
    return "-".join(words)


def _say_methods(names: Sequence[str]) -> str:
    others = [name for name in names if name not in (REFERENCE, NO_ROWS, REPEATS)] or [names[0]]
    return "+".join(others) if len(others) <= _LISTED else f"{len(names)}-methods"


def _find_place(out: Path, config: StudyConfig, name: str, about: Mapping[str, Any]) -> Place:
    tables = _tables(out, _stem(config.problem))
    kept = [own for table in tables for own in _studies_in(table)]
    for own in kept:
        if is_same(own.configuration, config.to_dict()):
            return Place(own.folder, [one.folder for one in kept if one is not own])
    table, notes = _choose_table(out, tables, _stem(config.problem), about)
    folder, more = _choose_folder(table, name, config, about)
    return Place(folder, [own.folder for own in kept], [*notes, *more])


def _choose_table(
    out: Path, tables: Sequence[Path], stem: str, about: Mapping[str, Any]
) -> tuple[Path, list[str]]:
    """Return the folder of a table: the one with its studies, or the first without others."""
    sources = {
        table: {own.about.get("source") for own in _studies_in(table)}
        | ({STUDY} if (table / STUDY).exists() else set())
        for table in tables
    }
    mine = [table for table, known in sources.items() if about.get("source") in known]
    table = next(iter(mine), None) or next(
        folder for folder in _numbered(out / stem) if not sources.get(folder)
    )
    if table.name == stem:
        return table, []
    known = sorted(str(source) for source in sources.get(out / stem, ()) if source)
    other = f"studies of {known[0]}" if known and known[0] != STUDY else "something else"
    return table, [f"{out / stem} holds {other}."]


def _choose_folder(
    table: Path, name: str, config: StudyConfig, about: Mapping[str, Any]
) -> tuple[Path, list[str]]:
    """Return a free folder below that of the table, and why it is not called as it might be."""
    first, words = table / name, list[str]()
    if is_free(first):
        return first, []
    try:
        described = read_study(first)
    except StoreError:
        why = f"{first} holds something else."
    else:
        words = _say_given(described.about, about)
        told = say_differences(described.configuration, config.to_dict())
        other = "; ".join([*(["it is about other columns"] if words else told)])
        why = f"{first} holds another study: {other}."
    named = table / "-".join([name, *words])
    return next(folder for folder in _numbered(named) if is_free(folder)), [why]


def _say_given(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the columns that a study has named otherwise than another one, for a name."""
    words = []
    for option, prefix in _COLUMNS.items():
        if now.get(option) and now[option] != was.get(option):
            columns = [now[option]] if isinstance(now[option], str) else list(now[option])
            listed = "+".join(_slug(column) for column in columns)
            is_short = len(columns) <= _LISTED and len(listed) <= _LONGEST
            words.append(prefix + (listed if is_short else f"{len(columns)}-columns"))
    return words


def _studies_in(table: Path) -> Iterator[_Kept]:
    """Give the studies right below a folder; what cannot be read is left out."""
    for file in sorted(table.glob(f"*/{STUDY}")):
        if not file.parent.is_symlink():
            with suppress(StoreError):
                described = read_study(file.parent)
                yield _Kept(file.parent, described.configuration, described.about)


def _tables(out: Path, stem: str) -> list[Path]:
    """Return the folders of tables of this name that are there, the plain one first."""
    names = os.listdir(out) if out.is_dir() else []
    numbers = {name: re.fullmatch(rf"{re.escape(stem)}(?:-(\d+))?", name) for name in names}
    found = [(int(match[1] or 1), name) for name, match in numbers.items() if match]
    return [out / name for _, name in sorted(found) if (out / name).is_dir()]


def _numbered(folder: Path) -> Iterator[Path]:
    """Give a folder, and others that are called so with a number."""
    yield folder
    for number in count(2):
        yield folder.with_name(f"{folder.name}-{number}")


def _stem(name: str) -> str:
    """Return the name of a file without its endings, as a name of a folder."""
    return _slug(Path(Path(name).name.removesuffix(".gz")).stem)[:_LONGEST] or "table"


def _slug(text: str) -> str:
    return re.sub(r"[^\w-]+", "-", str(text)).strip("-")

"""The page of findings, written from the measured tables by ``make findings``."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from regaug import formatting
from regaug._files import read_json, write_bytes, write_json, write_text
from regaug._outputs import Output, check_own_folder
from regaug.exceptions import ArgumentError
from regaug.reproduction import answers, conclusions, differences, picture, reasons
from regaug.reproduction.cuts import Cut
from regaug.reproduction.experiments import TABLES
from regaug.reproduction.figures import FIGURES
from regaug.reproduction.measured import TUNED, Line, Measured
from regaug.reproduction.problems import SCALINGS
from regaug.reproduction.tables import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION
from regaug.reproduction.timing import TIME, Times
from regaug.runs.record import RunRecord
from regaug.runs.store import STUDY, Store

INTRO = """\
# The paper, measured again

FOMA (Kaufman and Azencot, ICML 2024) was published with large gains over plain training. This page
repeats its tables and figures and says what came out, why, and by which command.
"""
HOW = """\
*Here* is the paper's protocol: its splits, raw targets, epochs and settings (its tables 8 and 9, or
what was released; the best of these rows by the test error, in FOMA's favor), and for plain
training (`erm`) those of C-Mixup, from which the paper quotes it. *Scaled targets* is the same with
targets min-max scaled or standardized, whichever is better; it is ours, not the paper's. *Tuned*
is the study that `regaug compare` makes: recipes of plain training first, then as many settings of
every method, `erm` included, at the best recipes; what is compared are ensembles, chosen and
weighted by validation rows of each split, with inputs and targets standardized; whole states of
crimes and whole leagues of skillcraft are held out, other ones in every split. The better of FOMA
and FOMA_rho is shown, in their favor; the change has a 95 % interval. {older}↓: lower is better, ↑:
higher is better; MAPE is in percent (↓). What is cut short says so, and is no test of the paper.
"""
READ = """\
*Written by `make findings` from the runs in `benchmarks/results/reproduction`. The figures called
"published" are the paper's; all others were measured, by the commands below the tables. "Apart" is
the difference of measured and published mean in combined standard errors, where both have a
standard deviation: beyond 2 it is more than chance.*
"""
# The cuts of FOMA in an epoch of batches, without a training.
COUNTED = "cuts.json"
# SkillCraft is in the tables of C-Mixup and ADA.
ORDER = (*IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION, "skillcraft")
SECTIONS = {
    "in-distribution": "In distribution (tables 3 and 10)",
    "out-of-distribution": "Out of distribution (tables 4 and 11)",
    TUNED: "The study of every data set (ours)",
    "batches": "Random or close batches (table 1)",
    "ablation": "Where FOMA acts (table 5)",
    "noise": "Noise (tables 6 and 7)",
    TIME: "What an epoch costs (table 2)",
}


def make_page(folder: str | Path) -> str:
    """Return the page as Markdown: measured tables are in ``tables/``, figures' numbers beside."""
    folder = Path(folder)
    tables = read_tables(folder)
    compared = compared_tables(tables)
    counted = read_counted(folder)
    parts = [INTRO, "## Does FOMA work?\n", conclusions.say_answer(compared, counted) + "\n"]
    parts += [answers.make_table(compared).to_markdown(), HOW.format(older=_say_older(tables))]
    parts += [f"- **{found.data}**: {conclusions.say_briefly(found)}" for found in compared]
    points = picture.list_points(compared)
    parts.append(f"\n![{picture.say_points(points)}](figures/{picture.NAME}.png)\n")
    parts += ["## Why do the published gains not appear?\n"]
    parts += reasons.explain(compared, counted)
    parts += ["## When does it help?\n", *reasons.tell_cases(compared)]
    parts += ["## Every table and figure of the paper\n", READ]
    for name, title in SECTIONS.items():
        own = [found for found in tables if found.experiment == name]
        if own:
            parts.append(f"### {title}\n")
            parts += [_section(found) for found in own]
    parts += ["### Figures\n", *_figures(folder), "### What each training took\n"]
    parts += [_efforts(tables)]
    parts += ["## Differences between paper and scripts\n", differences.make_table().to_markdown()]
    return "\n".join(parts)


def read_counted(folder: Path) -> dict[str, dict[str, Cut]]:
    """Return what FOMA does to the batches of an epoch, by data set and row, where it was counted.

    ``python -m benchmarks.cuts`` writes it.
    """
    path = folder / COUNTED
    if not path.exists():
        return {}
    found = read_json(path, dict)
    return {
        data: {label: Cut(**own) for label, own in rows.items()} for data, rows in found.items()
    }


def read_tables(folder: Path) -> list[Measured | Times]:
    """Return the measured tables of a folder, in the paper's order of data sets."""
    tables = [read_table(path) for path in sorted((folder / TABLES).glob("*.json"))]
    return sorted(tables, key=lambda found: ORDER.index(found.data))


def compared_tables(tables: Sequence[Measured | Times]) -> list[Measured]:
    """Return those in which all methods are compared, one for each data set.

    The tuned part is that of the study, if there is one.
    """
    own = [found for found in tables if isinstance(found, Measured)]
    studies = {found.data: found for found in own if found.experiment == TUNED}
    compared = [
        replace(found, tuned=studies[found.data].tuned) if found.data in studies else found
        for found in own
        if found.experiment.endswith("-distribution")
    ]
    known = {found.data for found in compared}
    return [*compared, *(found for name, found in studies.items() if name not in known)]


def _say_older(tables: Sequence[Measured | Times]) -> str:
    """Say where the tuned part is no study yet."""
    studied = {found.data for found in tables if found.experiment == TUNED}
    older = [
        found.data
        for found in tables
        if isinstance(found, Measured) and found.tuned is not None and found.data not in studied
    ]
    if not older:
        return ""
    words = "it is an earlier search of every method by itself, without ensembles."
    return f"On {', '.join(older)} {words} "


def read_table(path: Path) -> Measured | Times:
    """Return a measured table of a file."""
    values = read_json(path, dict)
    return (Times if values["experiment"] == TIME else Measured).from_dict(values)


def _section(found: Measured | Times) -> str:
    parts = []
    if isinstance(found, Measured) and found.experiment.endswith(("-distribution", TUNED)):
        parts.append("".join(f"- {sentence}\n" for sentence in conclusions.summarize(found)))
    for title, table in _without_scaled(found).tables().items():
        said = [re.sub(r"^Made by: (.+)$", r"Made by `\1`.", note) for note in table.notes]
        notes = "".join(f"{note}\n\n" for note in said)
        parts.append(f"**{found.data}, {title}**\n\n{table.to_markdown()}\n{notes}")
    return "\n".join([f"#### {found.data}\n", *parts])


def _without_scaled(found: Measured | Times) -> Measured | Times:
    """Leave out rows with scaled targets: they have a table of their own."""
    if isinstance(found, Times):
        return found
    ends = tuple(f"; targets {scaling}" for scaling in SCALINGS)
    return replace(found, paper=tuple(own for own in found.paper if not own.label.endswith(ends)))


def _figures(folder: Path) -> Iterator[str]:
    for name, figure in FIGURES.items():
        path = folder / f"{name}.json"
        if path.exists():
            caption = figure.caption(read_json(path, dict))
            command = f"Made by `regaug reproduce {name}`."
            yield f"![{figure.title}](figures/{name}.png)\n\n{caption} {command}\n"


def _efforts(tables: Sequence[Measured | Times]) -> str:
    """Say of every comparison how many runs are done, by which command and in which time."""
    rows = []
    for found in compared_tables(tables):
        nets: dict[str, list[Line]] = {}
        for line in found.paper:
            if line.epochs is not None:
                nets.setdefault(line.command or found.command, []).append(line)
        rows += [(found.data, *_effort(lines), f"`{command}`") for command, lines in nets.items()]
    header = ("data", "runs done", "share of the epochs, least to most", "time", "command")
    return formatting.TextTable("Efforts", header, rows).to_markdown()


def _effort(lines: Sequence[Line]) -> tuple[str, str, str]:
    done, planned = (sum(getattr(line, name) for line in lines) for name in ("done", "planned"))
    shares = [line.epochs / line.of_epochs for line in lines if line.epochs and line.of_epochs]
    hours = sum(line.hours for line in lines)
    time = formatting.duration(3600 * hours) if hours else "not kept"
    share = f"{formatting.percent(min(shares))} to {formatting.percent(max(shares))}"
    return f"{done} of {planned}", share, time


def collect(store: str | Path, folder: str | Path) -> None:
    """Copy the tables and figures of a store, and the runs that they are made from.

    Of the tuned protocol these are the runs that the splits have chosen, not all that were tried:
    what is kept with the code stays small. A table of the store replaces that of the folder; of
    what it has nothing of (other rows, the tuned protocol) what the folder has stays, unless the
    folder has a study of the data set. A run that other tables of the folder are made from too must
    not have come out otherwise.
    """
    store, folder = Path(store), Path(folder)
    check_own_folder(folder, STUDY, name="folder")
    new, kept_records = Store.open(store), _records(folder)
    fresh = [read_table(path) for path in sorted((store / TABLES).glob("*.json"))]
    taken = new.records()
    again = {key: taken[key] for found in fresh for key in found.keys}
    _check_others(folder, fresh, kept_records, again)
    records = {**kept_records, **again}
    for path in sorted((store / TABLES).glob("*.json")):
        found, kept = read_table(path), folder / TABLES / path.name
        before = read_table(kept) if kept.exists() else None
        if isinstance(found, Measured) and isinstance(before, Measured):
            found = found.on_top_of(before)
        if (
            isinstance(found, Measured)
            and (folder / TABLES / f"{TUNED}-{found.data}.json").exists()
        ):
            found = found if found.experiment == TUNED else replace(found, tuned=None)
        write_json(kept, found.to_dict(), indent=1)
    for path in store.glob("*.json"):
        if path.stem in FIGURES or path.name == COUNTED:
            write_bytes(folder / path.name, path.read_bytes())
    wanted = {key: None for found in read_tables(folder) for key in found.keys}
    for path in (*folder.glob("runs-*.jsonl"), folder / STUDY):
        path.unlink(missing_ok=True)
    written = Store(folder, new.configuration)
    for key in wanted:
        written.add(records[key])
    (file,) = folder.glob("runs-*.jsonl")
    file.rename(folder / "runs-1.jsonl")  # not the name of a machine


def _records(folder: Path) -> dict[str, RunRecord]:
    return Store.open(folder).records() if (folder / STUDY).exists() else {}


def _check_others(
    folder: Path,
    fresh: Sequence[Measured | Times],
    before: Mapping[str, RunRecord],
    again: Mapping[str, RunRecord],
) -> None:
    """Refuse runs that came out otherwise while other tables still say what they were."""
    changed = {
        key for key in before.keys() & again.keys() if before[key].to_dict() != again[key].to_dict()
    }
    new = {(found.experiment, found.data) for found in fresh}
    stale = [
        f"{found.experiment} on {found.data}"
        for found in read_tables(folder)
        if (found.experiment, found.data) not in new and changed & set(found.keys)
    ]
    if stale:
        raise ArgumentError(
            f"`store` must have {', '.join(stale)} too, since it has other results of runs that "
            "these are made from. Run them with the same --out first."
        )


def main(arguments: Sequence[str]) -> None:
    """Write the page of the tables in a folder to a file; of a new store, if one is given first."""
    *store, folder, path = arguments
    place = Output(Path(path), name="path", force=None, endings=(".md",), is_own=_is_page)
    if store:
        collect(store[0], folder)
    points = picture.list_points(compared_tables(read_tables(Path(folder))))
    if points:
        picture.draw_picture(points, place.path.parent / "figures")
    write_text(place.path, make_page(folder))


def _is_page(path: Path) -> bool:
    return path.read_text("utf-8", errors="replace").startswith(INTRO.splitlines()[0])


if __name__ == "__main__":
    main(sys.argv[1:])

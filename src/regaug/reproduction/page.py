"""The page of findings, written from the measured tables by ``make findings``."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from regaug import formatting
from regaug._files import read_json, write_bytes, write_text
from regaug._outputs import Output, check_own_folder
from regaug.metrics import METRICS
from regaug.reproduction.experiments import TABLES
from regaug.reproduction.figures import FIGURES
from regaug.reproduction.measured import Figure, Measured, Tuned
from regaug.reproduction.tables import FOMA, IN_DISTRIBUTION, OUT_OF_DISTRIBUTION
from regaug.reproduction.timing import TIME, Times
from regaug.runs.store import STUDY, Store
from regaug.training import Settings
from regaug.training.baselines import BASELINES

INTRO = """\
# The paper, measured again

*This page is written by `make findings` from the runs in `benchmarks/results/reproduction`. The
figures called "published" are the paper's (Kaufman and Azencot, ICML 2024); all others were
measured, by the commands below the tables.*

Every method is trained twice:

- **paper**: the splits, raw targets, epochs and settings that the paper gives for FOMA (its tables
  8 and 9), and those of C-Mixup's released configuration for plain training (`erm`) and the others,
  which the paper says it uses. No setting was changed to come closer.
- **tuned**: inputs and targets standardized, the same number of settings for every method, `erm`
  included, each split choosing by its own validation error; ten splits for tables, with a test that
  accounts for how many methods there are and for what the splits have in common.

"Apart" is the difference of measured and published mean in combined standard errors, where both
have a standard deviation: beyond 2 it is more than chance.
"""

CUT = (
    " The nets have not finished learning, and where a method's batches are smaller it takes more "
    "steps in as many epochs, so the rows of the paper's protocol are no test of the paper."
)
ORDER = IN_DISTRIBUTION + OUT_OF_DISTRIBUTION
SECTIONS = {
    "in-distribution": "In distribution (tables 3 and 10)",
    "out-of-distribution": "Out of distribution (tables 4 and 11)",
    "batches": "Random or close batches (table 1)",
    "ablation": "Where FOMA acts (table 5)",
    "noise": "Noise (tables 6 and 7)",
    TIME: "What an epoch costs (table 2)",
}
# A mean this many times worse is another result, whatever the noise.
MUCH = 1.5


def make_page(folder: str | Path) -> str:
    """Return the page as Markdown: measured tables are in ``tables/``, figures' numbers beside."""
    folder = Path(folder)
    tables = [read_table(path) for path in sorted((folder / TABLES).glob("*.json"))]
    tables.sort(key=lambda found: ORDER.index(found.data))
    parts = [INTRO, "## What reproduces, and what does not\n"]
    for found in tables:
        if isinstance(found, Measured) and found.experiment.endswith("-distribution"):
            note = f" ({found.note})" if found.note else ""
            sentences = "".join(f"- {line}\n" for line in summarize(found))
            parts.append(f"**{found.data}**{note}\n\n{sentences}")
    for name, title in SECTIONS.items():
        own = [found for found in tables if found.experiment == name]
        if own:
            parts.append(f"## {title}\n")
            parts += [_section(found) for found in own]
    return "\n".join([*parts, "## Figures\n", *_figures(folder)])


def read_table(path: Path) -> Measured | Times:
    """Return a measured table of a file."""
    values = read_json(path, dict)
    return (Times if values["experiment"] == TIME else Measured).from_dict(values)


def summarize(found: Measured) -> Iterator[str]:
    """Give what a data set has shown, in sentences."""
    first = {line.label: line.figures[0] for line in found.paper if line.figures}
    if found.size:
        yield found.size + CUT
    elif found.note:
        yield "The data differs from the paper's, so the errors do not compare; their order may."
    else:
        yield from _against_published(first)
    if "erm" in first and not found.size:
        yield from _against_plain(first)
    yield from _trained_alike(first)
    yield from _baselines_win(first)
    if found.tuned is not None:
        yield from _about_tuned(found.tuned)


def _against_published(first: Mapping[str, Figure]) -> Iterator[str]:
    known = {name: own.apart for name, own in first.items() if own.apart is not None}
    near = [name for name, apart in known.items() if abs(apart) <= 2]
    far = {name: first[name] for name, apart in known.items() if abs(apart) > 2}
    if near:
        yield f"Within two standard errors of the published figure: {', '.join(near)}."
    if far:
        both = [f"{n} ({own.score}, published {own.published_mean:.4g})" for n, own in far.items()]
        yield f"Further apart: {', '.join(both)}."
    # Where the training itself, and not the method, explains a large error.
    for name in far:
        plain = first.get(f"erm, trained as {name}")
        if plain is not None and "erm" in first and _is_much_worse(plain, first["erm"]):
            yield (
                f"Plain training with the published rate, batches and epochs of {name} has "
                f"{plain.score} itself: they are too few steps for this data, with or without the "
                "method."
            )


def _is_much_worse(one: Figure, other: Figure) -> bool:
    if METRICS[one.metric].higher_is_better:
        return MUCH * one.mean < other.mean
    return one.mean > MUCH * other.mean


def _against_plain(first: Mapping[str, Figure]) -> Iterator[str]:
    plain = first["erm"]
    known = [(name, first[name].score.against(plain.score)) for name in FOMA if name in first]
    if known:
        words = " and ".join(f"{name} is {change} than plain training" for name, change in known)
        yield f"In the paper's protocol, by {METRICS[plain.metric].title}, {words} here."


def _trained_alike(first: Mapping[str, Figure]) -> Iterator[str]:
    """Tell what the method does from what its rate, batches and epochs do."""
    words = [
        f"of {name}: {name} {first[name].score}, plain training {first[plain].score}"
        for name in FOMA
        if name in first and (plain := f"erm, trained as {name}") in first
    ]
    if words:
        yield f"Trained alike, with the rate, batches and epochs {'; '.join(words)}."


def _baselines_win(first: Mapping[str, Figure]) -> Iterator[str]:
    if "erm" not in first:
        return
    plain = first["erm"].score
    better = [
        f"{name} ({first[name].score})"
        for name in BASELINES
        if name in first and first[name].score.is_better_than(plain)
    ]
    if better:
        yield f"Plain training ({plain}) is beaten by {', '.join(better)}, without a net."


def _about_tuned(tuned: Tuned) -> Iterator[str]:
    yield f"Tuned: {tuned.verdict}"
    comparison = tuned.comparison
    metric, unit = METRICS[comparison.metric], comparison.unit
    known = [row for row in comparison.rows if row.name in FOMA and row.change is not None]
    if not known:
        return
    best = min(known, key=lambda row: metric.error(row.change))
    interval = formatting.between(best.change_low, best.change_high, unit)
    level = formatting.percent(comparison.level)
    yield (
        f"The better FOMA is {best.name}: {metric.title} {formatting.change(best.change, unit)} "
        f"against tuned plain training, "
        + (f"{level} interval {interval}, " if interval else "")
        + f"with {_say_settings(tuned.best[best.name])}."
    )


def _say_settings(settings: Settings) -> str:
    own = settings.method_settings
    cut = f"rho {own['rho']}" if own.get("rho") is not None else f"k {own.get('k')}"
    fade = own["anneal"]
    until = "throughout" if fade is None else f"faded out over {formatting.percent(fade)}"
    return (
        f"{own['sampler']} batches at the {own['place']}, {cut}, a batch touched with probability "
        f"{own['p']:.2g} {until}"
    )


def _section(found: Measured | Times) -> str:
    parts = []
    for title, table in found.tables().items():
        said = [re.sub(r"^Made by: (.+)$", r"Made by `\1`.", note) for note in table.notes]
        notes = "".join(f"{note}\n\n" for note in said)
        parts.append(f"### {found.data}: {title}\n\n{table.to_markdown()}\n{notes}")
    return "\n".join(parts)


def _figures(folder: Path) -> Iterator[str]:
    for name, figure in FIGURES.items():
        path = folder / f"{name}.json"
        if path.exists():
            caption = figure.caption(read_json(path, dict))
            command = f"Made by `regaug reproduce {name}`."
            yield f"![{figure.title}](figures/{name}.png)\n\n{caption} {command}\n"


def collect(store: str | Path, folder: str | Path) -> None:
    """Copy the tables and figures of a store, and the runs that they are made from.

    Of the tuned protocol these are the runs that the splits have chosen, not all that were tried:
    what is kept with the code stays small. What is in the folder is replaced.
    """
    store, folder = Path(store), Path(folder)
    check_own_folder(folder, STUDY, name="folder")
    old = Store.open(store)
    records = old.records()
    wanted: dict[str, None] = {}
    for path in sorted((store / TABLES).glob("*.json")):
        wanted |= dict.fromkeys(read_table(path).keys)
        write_bytes(folder / TABLES / path.name, path.read_bytes())
    for path in store.glob("*.json"):
        if path.stem in FIGURES:
            write_bytes(folder / path.name, path.read_bytes())
    for path in (*folder.glob("runs-*.jsonl"), folder / STUDY):
        path.unlink(missing_ok=True)
    new = Store(folder, old.configuration)
    for key in wanted:
        new.add(records[key])
    (written,) = folder.glob("runs-*.jsonl")
    written.rename(folder / "runs-1.jsonl")  # not the name of a machine


def main(arguments: Sequence[str]) -> None:
    """Write the page of the tables in a folder to a file; of a new store, if one is given first."""
    *store, folder, path = arguments
    place = Output(Path(path), name="path", force=None, endings=(".md",), is_own=_is_page)
    if store:
        collect(store[0], folder)
    write_text(place.path, make_page(folder))


def _is_page(path: Path) -> bool:
    return path.read_text("utf-8", errors="replace").startswith(INTRO.splitlines()[0])


if __name__ == "__main__":
    main(sys.argv[1:])

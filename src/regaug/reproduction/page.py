"""The page of findings, written from the measured tables by ``make findings``."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regaug._files import read_json, write_bytes, write_text
from regaug.reproduction.figures import FIGURES
from regaug.reproduction.words import Text, as_markdown, measured_tables, time_table
from regaug.runs.store import STUDY, Store

Found = Mapping[str, Any]

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
ORDER = (
    "airfoil",
    "no2",
    "exchange-rate",
    "electricity",
    "echo",
    "rcf-mnist",
    "crimes",
    "dti",
    "povertymap",
)


def make_page(folder: str | Path) -> str:
    """Return the page as Markdown.

    Args:
        folder: Has the measured tables in ``tables/`` and the numbers of the figures beside.
    """
    folder = Path(folder)
    tables = [read_json(path, dict) for path in sorted((folder / "tables").glob("*.json"))]
    tables.sort(key=lambda found: ORDER.index(found["data"]))
    compared = [found for found in tables if found["experiment"].endswith("-distribution")]
    parts = [INTRO, "## What reproduces, and what does not\n"]
    parts += [_summary(found) for found in compared]
    for title, names in (
        ("In distribution (tables 3 and 10)", ("in-distribution",)),
        ("Out of distribution (tables 4 and 11)", ("out-of-distribution",)),
        ("Random or close batches (table 1)", ("batches",)),
        ("Where FOMA acts (table 5)", ("ablation",)),
        ("Noise (tables 6 and 7)", ("noise",)),
        ("What an epoch costs (table 2)", ("time",)),
    ):
        own = [found for found in tables if found["experiment"] in names]
        if own:
            parts.append(f"## {title}\n")
            parts += [_section(found) for found in own]
    parts.append("## Figures\n")
    parts += list(_figures(folder))
    return "\n".join(parts)


def _summary(found: Found) -> str:
    """Return what a data set has shown, in sentences."""
    sentences = [*_about_paper(found), *_about_tuned(found)]
    note = f" ({found['note']})" if found["note"] else ""
    return f"**{found['data']}**{note}\n\n" + "".join(f"- {line}\n" for line in sentences)


def _about_paper(found: Found) -> Iterator[str]:
    first = {line["label"]: line["figures"][0] for line in found["paper"] if line["figures"]}
    if found["size"]:
        yield found["size"] + CUT
        yield from _trained_alike(first)
        yield from _baselines_win(first)
        return
    if found["note"]:
        yield "The data differs from the paper's, so the errors do not compare; their order may."
    else:
        near = [name for name, figure in first.items() if _is_near(figure)]
        far = [name for name, figure in first.items() if _is_far(figure)]
        if near:
            yield f"Within two standard errors of the published figure: {', '.join(near)}."
        if far:
            listed = ", ".join(
                f"{name} ({first[name]['mean']:.3g}, published {first[name]['published_mean']:.3g})"
                for name in far
            )
            yield f"Further apart: {listed}."
        yield from _under_trained(first, far)
    if "erm" in first:
        yield from _against_plain(first)


def _under_trained(first: Mapping[str, Found], far: Sequence[str]) -> Iterator[str]:
    """Say where the training itself, and not the method, explains a large error."""
    for name in far:
        plain = first.get(f"erm, trained as {name}")
        if plain is not None and plain["mean"] > 1.5 * first["erm"]["mean"]:
            yield (
                f"Plain training with the published rate, batches and epochs of {name} has an "
                f"error of {plain['mean']:.3g} itself: they are too few steps for this data, with "
                "or without the method."
            )


def _against_plain(first: Mapping[str, Found]) -> Iterator[str]:
    plain = first["erm"]
    sign = -1 if plain["metric"] == "pearson" else 1
    words = []
    for name in ("foma", "foma-rho"):
        if name in first:
            change = 100 * (first[name]["mean"] / plain["mean"] - 1)
            verdict = "better" if sign * change < 0 else "worse"
            words.append(f"{name} is {abs(change):.3g} % {verdict} than plain training")
    if words:
        yield f"In the paper's protocol {' and '.join(words)} here."
    yield from _trained_alike(first)
    yield from _baselines_win(first)


def _trained_alike(first: Mapping[str, Found]) -> Iterator[str]:
    """Tell what the method does from what its rate, batches and epochs do."""
    words = [
        f"of {name}: {name} {first[name]['mean']:.4g}, plain training {first[plain]['mean']:.4g}"
        for name in ("foma", "foma-rho")
        if name in first and (plain := f"erm, trained as {name}") in first
    ]
    if words:
        yield f"Trained alike, with the rate, batches and epochs {'; '.join(words)}."


def _baselines_win(first: Mapping[str, Found]) -> Iterator[str]:
    if "erm" not in first:
        return
    plain = first["erm"]
    sign = -1 if plain["metric"] == "pearson" else 1
    baselines = [name for name in ("mean", "last-value", "ridge", "boosting") if name in first]
    better = [name for name in baselines if sign * (first[name]["mean"] - plain["mean"]) < 0]
    if better:
        listed = ", ".join(f"{name} ({first[name]['mean']:.4g})" for name in better)
        yield f"Plain training ({plain['mean']:.4g}) is beaten by {listed}, without a net."


def _is_near(figure: Found) -> bool:
    return figure["apart"] is not None and abs(figure["apart"]) <= 2


def _is_far(figure: Found) -> bool:
    return figure["apart"] is not None and abs(figure["apart"]) > 2


def _about_tuned(found: Found) -> Iterator[str]:
    if not found["tuned"]:
        return
    yield f"Tuned: {found['verdict']}"
    rows = {row["name"]: row for row in found["tuned"]}
    known = [rows[name] for name in ("foma", "foma-rho") if name in rows]
    known = [row for row in known if row["change"] is not None]
    if not known:
        return
    best = min(known, key=lambda row: row["change"] if row["change"] is not None else 0.0)
    yield (
        f"The better FOMA is {best['name']}: {best['change']:+.1f} % against tuned plain training, "
        f"95 % interval {best['change_low']:+.1f} to {best['change_high']:+.1f}, with "
        f"{_say_settings(found['best'][best['name']])}."
    )


def _say_settings(settings: Found) -> str:
    own = settings["method"]
    cut = f"rho {own['rho']}" if own.get("rho") is not None else f"k {own.get('k')}"
    until = "throughout" if own["anneal"] is None else f"faded out over {own['anneal']:.0%}"
    return (
        f"{own['sampler']} batches at the {own['place']}, {cut}, a batch touched with probability "
        f"{own['p']:.2g} {until}"
    )


def _section(found: Found) -> str:
    texts = [time_table(found)] if found["experiment"] == "time" else list(measured_tables(found))
    return "\n".join(_table(text, found["data"]) for text in texts)


def _table(text: Text, data: str) -> str:
    notes = "".join(f"{_as_note(note)}\n\n" for note in text.notes if note)
    return f"### {data}: {text.header[0]}\n\n{as_markdown(text)}\n{notes}"


def _as_note(note: str) -> str:
    head, _, command = note.partition("Made by: ")
    return f"Made by `{command}`." if command and not head else note


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
    what is kept with the code stays small.

    Args:
        store: Where ``regaug reproduce`` has put its runs: ``runs/reproduction``.
        folder: Where to; what is there is replaced.
    """
    store, folder = Path(store), Path(folder)
    known = Store.open(store).results()
    wanted: dict[str, None] = {}
    for path in sorted((store / "tables").glob("*.json")):
        found = read_json(path, dict)
        for line in (*found.get("paper", ()), *found.get("tuned", ())):
            wanted |= dict.fromkeys(line["keys"])
        write_bytes(folder / "tables" / path.name, path.read_bytes())
    wanted |= {key: None for key, run in known.items() if run.run.get("experiment") == "time"}
    for path in store.glob("*.json"):
        if path.stem in FIGURES:
            write_bytes(folder / path.name, path.read_bytes())
    for path in (*folder.glob("runs-*.jsonl"), folder / STUDY):
        path.unlink(missing_ok=True)
    new = Store(folder, Store.open(store).configuration)
    for key in wanted:
        new.add(key, known[key].run, known[key].result)
    (written,) = folder.glob("runs-*.jsonl")
    written.rename(folder / "runs-1.jsonl")  # not the name of a machine


def main(arguments: Sequence[str]) -> None:
    """Write the page of the tables in a folder to a file; of a new store, if one is given first."""
    *store, folder, path = arguments
    if store:
        collect(store[0], folder)
    write_text(Path(path), make_page(folder))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The page about the atlas, written from the results files.

python -m benchmarks.atlas.page        writes docs/atlas.md
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.atlas.field import RESULTS as FIELD
from benchmarks.atlas.field import unfinished
from benchmarks.atlas.plain import BEFORE, ENSEMBLE, SINGLE
from benchmarks.atlas.plain import RESULTS as PLAIN
from benchmarks.atlas.pooling import FEWEST, change, interval, table
from benchmarks.atlas.protocol import RESULTS, SPLITS, index, lines
from regaug.formatting import between, count, number, percent
from regaug.formatting import change as told

PAGE = Path(__file__).parents[2] / "docs" / "atlas.md"
BASELINES = ("ridge", "boosting", "trees", "gp")
MODELS = {
    "catboost": "CatBoost's defaults",
    "realmlp": "RealMLP's defaults (pytabkit)",
    "tabm": "TabM's defaults (pytabkit)",
    "mlp": "scikit-learn's `MLPRegressor`",
    **{name: f"`fit --method {name}`" for name in BASELINES},
    "erm-before": "`fit --method erm` before the recipe (revision 7de531c)",
    "erm": "`fit --method erm`: the recipe without a search",
    "nets": "`fit --method nets`",
    "auto": "`fit`: the blend",
}
STUDY = {
    "default net": "one net, the default recipe",
    "single erm": "one net, chosen by the validation rows",
    "erm": "ensemble of plain training",
    "nets": "ensemble of all nets, with any augmentation",
    "auto": "these and the baselines: the blend",
    **{name: name for name in BASELINES},
}
Errors = Mapping[str, Sequence[float]]


def cells_of_models() -> dict[str, dict[str, dict[int, float]]]:
    """Return the errors of every model by table and split."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for file in (*MODELS, "blend"):
        for line in lines(file):
            own = line["rmse"] if file == "blend" else {file: line["rmse"]}
            for name, error in own.items():
                found.setdefault(name, {}).setdefault(line["table"], {})[line["split"]] = error
    return found


def fitted() -> dict[str, dict[str, list[float]]]:
    """Return the errors of the models that are measured on every split of all tables."""
    found, splits = cells_of_models(), range(SPLITS)
    cells = [(table, split) for table in index() for split in splits]
    return {
        name: {t: [own[split] for split in splits] for t, own in sorted(found[name].items())}
        for name in MODELS
        if name in found and all(split in found[name].get(table, {}) for table, split in cells)
    }


def studies() -> dict[str, Errors]:
    """Return the errors of the studies of all tables."""
    known = lines(FIELD)
    whole = [line for line in known if not any(None in line["errors"][name] for name in STUDY)]
    return {line["table"]: line["errors"] for line in whole}


def standings(errors: Errors) -> dict[str, list[str]]:
    """Return on how many tables each is the best, and on what share within 2 % of the best."""
    own = np.array(list(errors.values()))
    best = own.min(axis=0)
    wins, near = (own == best).sum(axis=1), (own <= 1.02 * best).mean(axis=1)
    return {name: [str(wins[i]), percent(near[i])] for i, name in enumerate(errors)}


def models_part(found: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    known = sorted(set.intersection(*(set(own) for own in found.values())))
    means = {name: [geometric(own[t]) for t in known] for name, own in found.items()}
    places, rows = standings(means), []
    for name, own in found.items():
        logs = [change(own[t], found["catboost"][t]) for t in known]
        low, middle, high = (1 + value / 100 for value in interval(logs))
        span = "" if name == "catboost" else f"{low:.3f} to {high:.3f}"
        rows.append(
            [MODELS[name], f"{middle:.3f}", span, f"{np.exp(np.median(logs)):.3f}", *places[name]]
        )
    splits = len(found["catboost"][known[0]])
    head = ["model", "RMSE, CatBoost = 1", "95 % interval", "median", "best on", "within 2 %"]
    return [
        f"## Fitted models: {len(known)} tables, {count(splits, 'split')} of each",
        "",
        "Each learns from the training and validation rows of a split in any way it likes;",
        "ours put a tenth of them aside for their intervals. Columns: the geometric mean over",
        "splits and tables with its 95 % interval over tables, the median over tables, on how many",
        "tables it is the best, and on what share of them within 2 % of the best of all of these.",
        "",
        *table(head, rows),
        *coverage(),
        *recipe_part(found, known),
        *unfinished_part(list(found)),
    ]


def unfinished_part(whole: Sequence[str]) -> list[str]:
    """Compare ours with a model that is not measured on every split of all tables, where it is."""
    cells, out = cells_of_models(), list[str]()
    for name in (name for name in MODELS if name in cells and name not in whole):
        shared = [
            (t, split)
            for t, own in cells[name].items()
            for split in own
            if split in cells["nets"].get(t, {})
        ]
        tables = sorted({t for t, _ in shared})
        if len(tables) < FEWEST:
            continue
        words = []
        for other in ("erm", "nets", "auto"):
            logs = [
                np.mean(
                    [np.log(cells[other][t][s] / cells[name][t][s]) for u, s in shared if u == t]
                )
                for t in tables
            ]
            low, middle, high = interval(logs)
            span = between(low, high, "percent")
            words.append(f"`{other}` by {told(middle, 'percent')} ({span})")
        out += [
            f"{MODELS[name]} are measured on {len(tables)} of the tables,",
            f"{count(len(shared), 'split')} in all. There the errors of ours differ from its own:",
            f"{', '.join(words)}.",
            "",
        ]
    return out


def plain_studies() -> tuple[dict[str, Errors], dict[str, Sequence[float]]]:
    """Return the errors of studies of plain training, and of the net that was chosen before."""
    now = {line["table"]: line["errors"] for line in lines(PLAIN)}
    return now, {line["table"]: line["errors"][SINGLE] for line in lines(BEFORE)}


def plain_part() -> list[str]:
    """Compare studies of plain training with what they were."""
    now, before = plain_studies()
    shared = sorted(now.keys() & before.keys())
    shared = [t for t in shared if not any(None in own for own in (before[t], now[t][ENSEMBLE]))]
    if len(shared) < FEWEST:
        return []
    names = {SINGLE: "one net, chosen by the validation rows", ENSEMBLE: "the ensemble"}
    names |= {name: STUDY[name] for name in ("auto", *BASELINES)}
    rows = []
    for name, words in names.items():
        known = [t for t in shared if None not in now[t].get(name, [None])]
        logs = [change(now[t][name], before[t]) for t in known]
        low, middle, high = interval(logs)
        better = f"{sum(value < 0 for value in logs)} of {len(logs)}"
        rows.append([words, told(middle, "percent"), between(low, high, "percent"), better])
    head = ["row of the study", "change of the RMSE", "95 % interval", "better on"]
    return [
        f"## Studies of plain training, before and now: {len(shared)} tables, four splits each",
        "",
        '`compare(..., methods=["erm"])` with its defaults (`python -m benchmarks.atlas.plain`).',
        "Changes are against the net that the study of revision 7de531c chooses from its settings",
        "of plain training, geometric means over splits and tables.",
        "",
        *table(head, rows),
    ]


def recipe_part(found: Mapping[str, Mapping[str, Sequence[float]]], known: list[str]) -> list[str]:
    """Compare plain training with what it was."""
    logs = [change(found["erm"][t], found["erm-before"][t]) for t in known]
    low, middle, high = interval(logs)
    better = sum(value < 0 for value in logs)
    return [
        "The recipe changes the error of plain training without a search by "
        f"{told(middle, 'percent')}",
        f"({between(low, high, 'percent')}) against revision 7de531c, and is better on {better} of",
        f"{len(known)} tables. [Taken apart](#the-recipe-taken-apart) below.",
        "",
    ]


def geometric(errors: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(errors))))


def coverage() -> list[str]:
    # Of the smallest tables another level was measured.
    large = [name for name, entry in index().items() if entry["rows"] > 100]
    found = [line for line in lines("blend") if line["table"] in large and "covered" in line]
    if not found:
        return []
    seconds = sorted(line["seconds"] for line in found)
    covered = 100 * np.mean([line["covered"] for line in found])
    return [
        f"The 90 % intervals of the blend cover {covered:.1f} % of the test rows,",
        f"mean over the {len({line['table'] for line in found})} tables above 100 rows. It took",
        f"{seconds[len(seconds) // 2]:.0f} s (median; at most {seconds[-1]:.0f} s) on one of two",
        "busy cores.",
        "",
    ]


def study_part(found: Mapping[str, Errors]) -> list[str]:
    names = [name for name in STUDY if all(name in own for own in found.values())]
    means = {name: [geometric(own[name]) for own in found.values()] for name in names}
    places, rows = standings(means), []
    for name in names:
        low, middle, high = interval([change(own[name], own["erm"]) for own in found.values()])
        cells = [told(middle, "percent"), between(low, high, "percent")]
        rows.append([STUDY[name], *cells, *places[name]])
    head = ["row of the study", "change of the RMSE", "95 % interval", "best on", "within 2 %"]
    return [
        f"## Studies: {len(found)} tables, four splits each",
        "",
        "`regaug compare` with all methods and three settings of each. Nets and baselines train on",
        "60 % of a table, 20 % choose, 20 % test. Changes are against the ensemble of plain",
        "training, geometric means over splits and tables.",
        *unfinished(lines(FIELD)),
        "",
        *table(head, rows),
    ]


def augmentation_part() -> list[str]:
    return [
        "## Does augmentation add anything?",
        "",
        "[The field](field.md) has every method against plain training, on these tables and more.",
        "",
    ]


def tables_part(
    found: Mapping[str, Errors], models: Mapping[str, Mapping[str, Sequence[float]]]
) -> list[str]:
    now, before = plain_studies()
    of_plain, of_all = (SINGLE, ENSEMBLE, "auto", *BASELINES), ("nets", "auto")
    entries, rows = index(), []
    for t in sorted(entries):
        size = f"{entries[t]['rows']} x {entries[t]['inputs']}"
        own = [before.get(t), *(now.get(t, {}).get(name) for name in of_plain)]
        own += [found[t][name] if t in found else None for name in of_all]
        fits = marked([models[name].get(t) for name in models])
        rows.append([t, size, *marked(own), *fits])
    head = ["table", "rows x columns", "study before: single erm"]
    head += [f"study: {name}" for name in of_plain]
    head += [f"all methods: {name}" for name in of_all] + [f"fit: {name}" for name in models]
    return [
        "## Every table",
        "",
        "RMSE, geometric means over the splits; the best row of the studies and the best fitted",
        "model are bold. Studies are those of plain training above; of all methods, where there",
        "is one, its ensemble of all nets and its blend.",
        "",
        *table(head, rows),
    ]


def marked(errors: Sequence[Sequence[float | None] | None]) -> list[str]:
    """Return geometric means as text, the lowest one bold; nothing where a split has none."""
    means = [None if own is None or None in own else geometric(own) for own in errors]
    best = min((value for value in means if value is not None), default=None)
    words = ["" if value is None else number(value) for value in means]
    return [
        f"**{own}**" if value is not None and value == best else own
        for own, value in zip(words, means, strict=True)
    ]


def ablation_part() -> list[str]:
    """Take over what ``recipes show`` and ``methods show`` have written, one level below."""
    found: list[str] = []
    for name in ("recipes", "methods"):
        file = RESULTS / f"{name}.md"
        text = file.read_text().splitlines() if file.exists() else []
        found += [f"#{line}" if line.startswith("#") else line for line in text] + [""]
    return found


def write() -> None:
    found, models = studies(), fitted()
    parts = [
        "# The atlas: what is worth what on real tables",
        "",
        "Figures of benchmarks/results/atlas, on public tables of 60 to 5,000 rows (those above",
        "1,200 are a draw of so many).",
        "The defaults were chosen on these tables, so others are a fairer judge of them.",
        "",
        "```sh",
        "python -m benchmarks.atlas.recipes run     # then: recipes show",
        "python -m benchmarks.atlas.methods run     # then: methods show",
        "python -m benchmarks.atlas.fits blend      # and erm",
        "python -m benchmarks.atlas.shares          # then: shares again",
        "pip install catboost pytabkit tabm         # nothing but rivals needs them",
        "python -m benchmarks.atlas.rivals catboost # and realmlp, tabm, mlp",
        "python -m benchmarks.atlas.plain           # plain training alone",
        "python -m benchmarks.atlas.field",
        "python -m benchmarks.atlas.page            # writes this page",
        "```",
        "",
        "What stands for before is the same command with revision 7de531c first in `PYTHONPATH`:",
        "`fits erm 2 erm-before`, `plain 2 plain-before`.",
        "",
        *models_part(models),
        *plain_part(),
        *(study_part(found) if found else []),
        *augmentation_part(),
        *ablation_part(),
        *tables_part(found, models),
    ]
    PAGE.write_text("\n".join(parts).rstrip() + "\n")


if __name__ == "__main__":
    write()

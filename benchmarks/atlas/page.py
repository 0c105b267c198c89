"""The page about the atlas, written from the results files.

python -m benchmarks.atlas.page        writes docs/atlas.md
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from benchmarks.atlas.protocol import SPLITS, index, lines
from regaug.formatting import between, number, percent
from regaug.formatting import change as told

PAGE = Path(__file__).parents[2] / "docs" / "atlas.md"
METHODS = ("mixup", "manifold-mixup", "c-mixup", "ada", "cems", "noise", "foma", "foma-rho")
BASELINES = ("ridge", "boosting", "trees", "gp")
MODELS = {
    "catboost": "CatBoost's defaults",
    "realmlp": "RealMLP's defaults (pytabkit)",
    "tabm": "TabM's defaults (pytabkit)",
    "mlp": "scikit-learn's `MLPRegressor`",
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


def first_split(name: str) -> dict[str, float]:
    return {line["table"]: line["rmse"] for line in lines(name) if line["split"] == 0}


def studies(name: str = "studies") -> dict[str, Errors]:
    return {line["table"]: line["errors"] for line in lines(name)}


def change(errors: Sequence[float], others: Sequence[float]) -> float:
    """Return the mean over the splits of log(error / other error)."""
    return float(np.mean(np.log(np.array(errors) / np.array(others))))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of logarithms and its 95 % interval over tables, as percent."""
    mean, n = np.mean(values), len(values)
    half = student.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    low, middle, high = (100 * np.expm1(v) for v in (mean - half, mean, mean + half))
    return float(low), float(middle), float(high)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "| --- " * len(head) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def standings(errors: Errors) -> dict[str, list[str]]:
    """Return on how many tables each is the best, and on what share within 2 % of the best."""
    own = np.array(list(errors.values()))
    best = own.min(axis=0)
    wins, near = (own == best).sum(axis=1), (own <= 1.02 * best).mean(axis=1)
    return {name: [str(wins[i]), percent(near[i])] for i, name in enumerate(errors)}


def models_part() -> list[str]:
    found = {name: own for name in MODELS if (own := first_split(name))}
    known = sorted(set.intersection(*(set(own) for own in found.values())))
    places = standings({name: [own[t] for t in known] for name, own in found.items()})
    rows = []
    for name, own in found.items():
        logs = [np.log(own[t] / found["catboost"][t]) for t in known]
        means = [f"{np.exp(middle(logs)):.3f}" for middle in (np.mean, np.median)]
        rows.append([MODELS[name], *means, *places[name]])
    head = ["model", "RMSE, CatBoost = 1", "median", "best on", "within 2 % of the best"]
    return [
        f"## Fitted models: {len(known)} tables, the first split",
        "",
        "Each learns from the training and validation rows of the split in any way it likes;",
        "ours put a tenth of them aside for their intervals.",
        "The first column is the geometric mean over the tables.",
        "",
        *table(head, rows),
        *coverage(),
        *recipe_part(),
    ]


def recipe_part() -> list[str]:
    """Compare plain training with what it was, on the tables that have all splits of both."""
    now, before = (
        {(line["table"], line["split"]): line["rmse"] for line in lines(name)}
        for name in ("erm", "erm-before")
    )
    logs = [
        change(*([own[name, split] for split in range(SPLITS)] for own in (now, before)))
        for name in index()
        if all((name, split) in own for own in (now, before) for split in range(SPLITS))
    ]
    low, middle, high = interval(logs)
    better = sum(value < 0 for value in logs)
    return [
        f"On all four splits of {len(logs)} tables the recipe changes the error of plain training",
        f"by {told(middle, 'percent')} ({between(low, high, 'percent')}),",
        f"and is better on {better}.",
        "",
    ]


def coverage() -> list[str]:
    found = [line for line in lines("auto") if line["split"] == 0]
    # Of the smallest tables another level was measured.
    large = [name for name, entry in index().items() if entry["rows"] > 100]
    shares = [line["covered"] for line in found if line["table"] in large]
    seconds = sorted(line["seconds"] for line in found)
    return [
        f"The 90 % intervals of the blend cover {100 * np.mean(shares):.1f} % of the test rows,",
        f"mean over the {len(shares)} tables above 100 rows. It took",
        f"{seconds[len(seconds) // 2]:.0f} s (median; at most {seconds[-1]:.0f} s) on one of two",
        "busy threads.",
        "",
    ]


def study_part(found: Mapping[str, Errors]) -> list[str]:
    names = [name for name in STUDY if all(name in own for own in found.values())]
    means = {name: [float(np.mean(own[name])) for own in found.values()] for name in names}
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
        "",
        *table(head, rows),
    ]


def augmentation_part(found: Mapping[str, Errors]) -> list[str]:
    rows, logs = [], {}
    for name in METHODS:
        own = [change(errors[name], errors["erm"]) for errors in found.values()]
        logs[name] = own
        low, middle, high = interval(own)
        helped = sum(value < 0 for value in own)
        rows.append(
            [
                name,
                told(middle, "percent"),
                between(low, high, "percent"),
                f"{helped} of {len(own)}",
            ]
        )
    head = ["method", "change of the RMSE", "95 % interval over tables", "better on"]
    return [
        "## Does augmentation add anything?",
        "",
        "Each method's ensemble against that of plain training, with the same number of trainings",
        "at the same recipes.",
        "",
        *table(head, rows),
        *where_part(found, logs),
    ]


def where_part(found: Mapping[str, Errors], logs: Mapping[str, Sequence[float]]) -> list[str]:
    sizes = {line["table"]: line for line in lines("studies")}
    # The share of the variance that the blend leaves: how noisy a table is.
    noise = {t: np.exp(2 * change(own["auto"], own["mean"])) for t, own in found.items()}
    traits = {
        "rows": np.array([sizes[t]["rows"] for t in found]),
        "columns": np.array([sizes[t]["columns"] for t in found]),
        "unexplained variance": np.array([noise[t] for t in found]),
    }
    rows = []
    for trait, values in traits.items():
        middle = np.median(values)
        for word, chosen in (("at most", values <= middle), ("above", values > middle)):
            cells = []
            for name in ("mixup", "c-mixup", "foma", "foma-rho"):
                own = np.array(logs[name])[chosen]
                low, mean, high = interval(own.tolist())
                cells.append(f"{told(mean, 'percent')} ({between(low, high, 'percent')})")
            rows.append([f"{trait} {word} {middle:.3g}", *cells])
    return [
        "Where: the tables in halves.",
        "",
        *table(["tables with", "mixup", "c-mixup", "foma", "foma-rho"], rows),
    ]


def tables_part(found: Mapping[str, Errors]) -> list[str]:
    fits = {name: first_split(name) for name in ("erm-before", "erm", "auto", "catboost")}
    names = [name for name in STUDY if all(name in own for own in found.values())]
    entries, rows = index(), []
    for t in sorted(found):
        means = {name: np.mean(found[t][name]) for name in names}
        best = min(means.values())
        cells = [
            f"**{number(value)}**" if value == best else number(value) for value in means.values()
        ]
        own = [number(fits[name][t]) if t in fits[name] else "" for name in fits]
        rows.append([t, f"{entries[t]['rows']} x {entries[t]['inputs']}", *cells, *own])
    head = ["table", "rows x columns", *names, *(f"fit: {name}" for name in fits)]
    return [
        "## Every table",
        "",
        "RMSE; rows of the study are means over its splits.",
        "",
        *table(head, rows),
    ]


def write() -> None:
    found = studies()
    parts = [
        "# The atlas: what is worth what on real tables",
        "",
        "Figures of benchmarks/results/atlas, on public tables of 60 to 5,000 rows (those above",
        "1,200 are a draw of so many).",
        "The defaults were chosen on these tables, so others are a fairer judge of them.",
        "",
        "```sh",
        "python -m benchmarks.atlas.fits auto       # and erm, nets",
        "pip install catboost pytabkit tabm         # nothing but rivals needs them",
        "python -m benchmarks.atlas.rivals catboost # and realmlp, tabm, mlp",
        "python -m benchmarks.atlas.studies",
        "python -m benchmarks.atlas.page            # writes this page",
        "```",
        "",
        "What stands for before is the same command with revision 7de531c first in `PYTHONPATH`:",
        "`python -m benchmarks.atlas.fits erm 2 erm-before`.",
        "",
        *models_part(),
        *(study_part(found) if found else []),
        *(augmentation_part(found) if found else []),
        *(tables_part(found) if found else []),
    ]
    PAGE.write_text("\n".join(parts).rstrip() + "\n")


if __name__ == "__main__":
    write()

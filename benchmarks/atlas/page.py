"""The page about the atlas, written from the results files.

python -m benchmarks.atlas.page        writes docs/atlas.md
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from benchmarks.atlas.protocol import RESULTS, SPLITS, index, lines
from regaug.formatting import between, count, number, percent
from regaug.formatting import change as told

PAGE = Path(__file__).parents[2] / "docs" / "atlas.md"
METHODS = ("mixup", "manifold-mixup", "c-mixup", "ada", "cems", "noise", "foma", "foma-rho")
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


def fitted() -> dict[str, dict[str, list[float]]]:
    """Return the errors of every model on the splits of each table that all models have."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for file in (*MODELS, "blend"):
        for line in lines(file):
            own = line["rmse"] if file == "blend" else {file: line["rmse"]}
            for name, error in own.items():
                found.setdefault(name, {}).setdefault(line["table"], {})[line["split"]] = error
    measured = [name for name in MODELS if len(found.get(name, {})) == len(index())]
    shared = set[int](range(SPLITS))
    shared.intersection_update(*(own for name in measured for own in found[name].values()))
    return {
        name: {
            t: [own[split] for split in sorted(shared)] for t, own in sorted(found[name].items())
        }
        for name in measured
    }


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
        "training, geometric means over splits and tables. Measured with revision 6ca4559: with an",
        "earlier recipe, and shares of the blend by least squares.",
        "",
        *table(head, rows),
        *before_part(found),
    ]


def before_part(found: Mapping[str, Errors]) -> list[str]:
    """Compare with the study that there was before, plain training with 20 settings."""
    before = studies("studies-before")
    known = sorted(before.keys() & found.keys())
    if not known:
        return []
    logs = [change(found[t]["erm"], before[t]["single erm"]) for t in known]
    low, middle, high = interval(logs)
    return [
        "Before (revision 7de531c) a study chose the best of 20 settings of plain training by its",
        f"validation rows. Against that net the ensemble of plain training now has an error of "
        f"{told(middle, 'percent')}",
        f"({between(low, high, 'percent')}; {len(known)} tables, better on "
        f"{sum(value < 0 for value in logs)}).",
        "",
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


def tables_part(
    found: Mapping[str, Errors], models: Mapping[str, Mapping[str, Sequence[float]]]
) -> list[str]:
    before = studies("studies-before")
    names = [name for name in STUDY if all(name in own for own in found.values())]
    entries, rows = index(), []
    for t in sorted(entries):
        size = f"{entries[t]['rows']} x {entries[t]['inputs']}"
        own = {name: found[t][name] for name in names} if t in found else {}
        chosen = marked([own.get(name) for name in names])
        fits = marked([models[name].get(t) for name in models])
        old = number(geometric(before[t]["single erm"])) if t in before else ""
        rows.append([t, size, old, *chosen, *fits])
    head = ["table", "rows x columns", "study before: single erm"]
    head += [f"study: {name}" for name in names] + [f"fit: {name}" for name in models]
    return [
        "## Every table",
        "",
        "RMSE, geometric means over the splits; the best row of the study and the best fitted",
        "model are bold.",
        "",
        *table(head, rows),
    ]


def marked(errors: Sequence[Sequence[float] | None]) -> list[str]:
    """Return geometric means as text, the lowest one bold."""
    means = [None if own is None else geometric(own) for own in errors]
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
        "python -m benchmarks.atlas.field",
        "python -m benchmarks.atlas.page            # writes this page",
        "```",
        "",
        "What stands for before is the same command with revision 7de531c first in `PYTHONPATH`:",
        "`fits erm 2 erm-before`, and `studies 2 studies-before plain`.",
        "",
        *models_part(models),
        *(study_part(found) if found else []),
        *(augmentation_part(found) if found else []),
        *ablation_part(),
        *tables_part(found, models),
    ]
    PAGE.write_text("\n".join(parts).rstrip() + "\n")


if __name__ == "__main__":
    write()

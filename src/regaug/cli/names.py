"""Names that a shell completes and a help text lists, without importing what they name."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files

# Each with a few words; the tests compare them with the library's own tables.
METRICS = {
    "rmse": "root of the mean squared error",
    "mae": "mean absolute error",
    "mape": "mean absolute error in per cent of the target",
    "r2": "share of the variance that is explained",
    "pearson": "correlation of predictions and targets",
    "balanced-rmse": "every tenth of the target's range counts alike",
    "tail-rmse": "of the tenth of the rows at the ends of the target",
}
METHODS = {
    "erm": "plain training",
    "noise": "adds noise to inputs and targets",
    "mixup": "moves every sample toward a random other one",
    "manifold-mixup": "the same at a hidden layer",
    "c-mixup": "moves every sample toward one with a close target",
    "ada": "moves samples toward or away from the centers of clusters",
    "foma": "shrinks small singular values of a batch, cut by its dimension",
    "foma-rho": "the same, cut by a share",
    "cems": "samples the curved surface that a neighborhood lies on",
    "k-mixup": "mixup with partners by the best assignment of inputs",
    "neighbor-mixup": "mixup with partners whose inputs are near",
    "epbeta-mixup": "mixup that keeps the spread of the data",
    "sk-mixup": "mixup that mixes far samples less",
    "feature-mix": "swaps some columns of every sample for those of a random other one",
    "teacher-rows": "takes new samples near the data, labeled by boosting, trees or a process",
    "rare": "draws samples with rare targets more often",
}
# Those that a study tries only if they are named.
UNUSUAL = (
    "k-mixup",
    "neighbor-mixup",
    "epbeta-mixup",
    "sk-mixup",
    "feature-mix",
    "teacher-rows",
    "rare",
)
# Those that make rows, and nothing else.
MAKERS = {"smogn": "makes rows where targets are rare"}
FOCUSES = ("high", "low", "both")
MODELS = {
    "auto": "a blend of nets and baselines",
    "nets": "a blend of nets alone",
    "ridge": "ridge regression",
    "boosting": "gradient boosting",
    "trees": "extremely randomized trees",
    "gp": "a Gaussian process",
    "mean": "the mean of the targets",
}
TRAINED = {
    "nets": "nets for tables",
    "ridge": "ridge regression",
    "boosting": "gradient boosting",
    "trees": "extremely randomized trees",
    "gp": "a Gaussian process",
}
EXPERIMENTS = (
    "in-distribution",
    "out-of-distribution",
    "batches",
    "time",
    "ablation",
    "noise",
    "settings",
    *(f"table{number}" for number in range(1, 12)),
    *(f"figure{number}" for number in range(1, 5)),
    "perturbation",
)
Completion = Callable[[str], list[tuple[str, str]]]


@cache
def datasets() -> dict[str, str]:
    """Return the names of the data sets, each with what its samples are."""
    text = files("regaug").joinpath("data", "datasets", "datasets.toml").read_text("utf-8")
    return {name: str(entry.get("task", "")) for name, entry in tomllib.loads(text).items()}


def describe(words: Mapping[str, str]) -> str:
    """Return names and what they mean as one text, for a help.

    Example:
        >>> describe({"mae": "mean absolute error", "r2": "explained share"})
        'mae (mean absolute error), r2 (explained share)'
    """
    return ", ".join(f"{name} ({meaning})" for name, meaning in words.items())


def one_of(*tables: Mapping[str, str] | Iterable[str]) -> Completion:
    """Return what completes a name."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        return [pair for pair in _pairs(tables) if pair[0].startswith(incomplete)]

    return complete


def several_of(*tables: Mapping[str, str] | Iterable[str]) -> Completion:
    """Return what completes the last of several names with commas between them."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        return [
            (f"{before}{comma}{name}", words)
            for name, words in _pairs(tables)
            if name.startswith(last) and name not in given
        ]

    return complete


def dataset(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a data set."""
    return one_of(datasets())(incomplete)


def some_datasets(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of several names of data sets."""
    return several_of(datasets())(incomplete)


def _pairs(tables: Iterable[Mapping[str, str] | Iterable[str]]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for table in tables:
        words = table if isinstance(table, Mapping) else dict.fromkeys(table, "")
        pairs += words.items()
    return pairs

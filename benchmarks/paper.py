"""The tuned protocol on the paper's data sets: the study that ``regaug compare`` makes of each.

    python -m benchmarks.paper runs airfoil no2 crimes skillcraft     resumable
    python -m benchmarks.paper runs exchange-rate --minutes 20

Plain training is tried with recipes, then every method is run at the best ones, on the same splits;
what is compared are ensembles. Nothing differs from ``regaug compare NAME``, except that groups of
``crimes`` and ``skillcraft`` are dealt anew for every split: the rule of the scripts leaves one
split only, of which nothing could be said. The runs are kept in the folder that is named first;
``results/reproduction/tables`` gets the test error of every row on every split, from which ``make
findings`` computes the rest.
"""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from regaug import compare, formatting, methods
from regaug._files import write_json
from regaug.data import info, load
from regaug.problems import Problem
from regaug.reproduction.experiments import TABLES
from regaug.reproduction.measured import TUNED, Measured, Tuned
from regaug.reproduction.problems import deal_anew
from regaug.studies.study import Study

FOLDER = Path(__file__).parent / "results" / "reproduction" / TABLES
SPLITS = 10


def make_problem(name: str) -> Problem:
    """Return a data set as ``regaug compare`` takes it, with groups that are dealt anew."""
    if info(name).task != "table":
        return Problem.named(name, splits=SPLITS)
    return Problem.from_table(deal_anew(load(name)), splits=SPLITS)


def tell(name: str, study: Study, command: str) -> Measured:
    """Return what is kept of a study: the errors of every row, and the best settings of methods."""
    config, comparison = study.config, study.comparison
    seconds = sum(record.seconds for record in study.records)
    search = (
        f"{formatting.count(config.recipes, 'recipe')} of plain training, then "
        f"{formatting.count(study.trials, 'setting')} of each of "
        f"{formatting.count(len(config.methods), 'method')} at the best of them, on "
        f"{formatting.count(comparison.n_splits, comparison.case)} of {config.rows:,} rows; "
        f"{len(study.records):,} runs, {formatting.duration(seconds)} of a core."
    )
    best = {
        method: run.settings
        for method, run in study.best.items()
        if method in methods.names() and run.settings is not None
    }
    tuned = Tuned(comparison, {}, best, search)
    return Measured(TUNED, name, "", "", command, (), tuned)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the studies that are named, or go on with them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="+")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--minutes", type=float)
    given = parser.parse_args(arguments)
    for name in given.names:
        words = ["python", "-m", "benchmarks.paper", "runs", name]
        words += [] if given.trials is None else ["--trials", f"{given.trials}"]
        words += [] if given.minutes is None else ["--minutes", f"{given.minutes:g}"]
        study = compare(
            make_problem(name),
            trials=given.trials,
            max_minutes=given.minutes,
            out=given.folder,
            progress=True,
        )
        print(study, flush=True)
        found = tell(name, study, shlex.join(words))
        write_json(FOLDER / f"{TUNED}-{name}.json", found.to_dict(), indent=1)


if __name__ == "__main__":
    main()

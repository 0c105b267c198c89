"""Studies of the tables of the atlas: what recipe, ensemble, augmentation and blend are worth.

    python -m benchmarks.atlas.studies [jobs] [results] [all|plain]

A line of the results file is a table: the test error of every row of the study on each of the four
splits, and that of the default recipe's single net. ``results`` names the file, ``studies`` by
default: give another name to a measurement of an older revision. ``plain`` is plain training alone,
with as many settings as a study has by default, and the run that each split chooses.
"""

import sys
from typing import Any

from benchmarks.atlas.protocol import Cell, index, measure, problem
from regaug import compare

# Settings of every method on every split, and of plain training as of any other.
TRIALS = 3


def run(cell: Cell) -> dict[str, Any]:
    study = compare(problem(cell.table), trials=TRIALS)
    found = {row["name"]: row["errors"] for row in study.to_dict()["rows"]}
    first = [
        record.score("test", "rmse")
        for record in sorted(study.records, key=lambda own: own.run.split)
        if record.run.stage == "recipe" and record.run.trial == 0
    ]
    single = [own.score("test", "rmse") for own in study.chosen["erm"]]
    errors = {"default net": first, "single erm": single, **found}
    sizes = {"rows": study.config.rows, "columns": study.config.columns}
    return {**sizes, "errors": errors, "use": study.verdict.use}


def run_plain(cell: Cell) -> dict[str, Any]:
    study = compare(problem(cell.table), methods=["erm"])
    return {"errors": {"single erm": [own.score("test", "rmse") for own in study.chosen["erm"]]}}


if __name__ == "__main__":
    jobs, name, what = [*sys.argv[1:], *["2", "studies", "all"][len(sys.argv) - 1 :]]
    do = run_plain if what == "plain" else run
    measure(name, do, [Cell(table, 0) for table in index()], jobs=int(jobs))

"""Studies of plain training alone, with as many settings as a study has by default.

    python -m benchmarks.atlas.plain [jobs] [results]     resumable

A line of the results file is a table: on each of the four splits the test error of the net that the
validation rows choose, and that of every row of the study where it has rows of that kind. What
stands for before is the same command with revision 7de531c first in ``PYTHONPATH``:
``plain 2 plain-before``.
"""

import sys
from typing import Any

from benchmarks.atlas.protocol import Cell, cells, measure, problem
from regaug import compare

RESULTS, BEFORE = "plain", "plain-before"
# What a line calls the net that was chosen, and the ensemble where there is one.
SINGLE, ENSEMBLE = "single erm", "erm"


def run(cell: Cell) -> dict[str, Any]:
    study = compare(problem(cell.table), methods=["erm"])
    single = [own.score("test", "rmse") for own in study.chosen["erm"]]
    # The revision before has rows of another kind: single nets.
    rows = study.to_dict()["rows"] if hasattr(study, "to_dict") else []
    found = {row["name"]: row["errors"] for row in rows}
    return {"errors": {**found, SINGLE: single}}


if __name__ == "__main__":
    jobs, name = [*sys.argv[1:], *["2", RESULTS][len(sys.argv) - 1 :]]
    measure(name, run, [cell for cell in cells() if cell.split == 0], jobs=int(jobs))

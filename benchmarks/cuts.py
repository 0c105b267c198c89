"""What FOMA does to the paper's batches, counted in an epoch without a training.

    python -m benchmarks.cuts exchange-rate electricity

For rows whose trainings take hours: those that act on the inputs change what they change whatever
the net has learned. ``results/reproduction/cuts.json`` gets the counts, and the page shows them
until a training has counted its own; then ``make findings``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from regaug._files import read_json, write_json
from regaug.reproduction.cuts import Cut, count_in_an_epoch
from regaug.reproduction.page import COUNTED
from regaug.reproduction.problems import find
from regaug.reproduction.tables import EXPERIMENTS, FOMA, IN_DISTRIBUTION, Size, make_rows

FOLDER = Path(__file__).parent / "results" / "reproduction"


def count(name: str) -> dict[str, Cut]:
    """Return the cuts of every row of FOMA on the inputs of a data set, of the first seed."""
    data = find(name)
    table = "in-distribution" if name in IN_DISTRIBUTION else "out-of-distribution"
    rows = make_rows(EXPERIMENTS[table], data, size=Size(seeds=1, protocols=("paper",)))
    split = data.problem("paper").split(0)
    found = {}
    for row in rows:
        settings = row.runs[0].settings
        if row.method in FOMA and settings is not None and row.runs[0].problem.endswith("/paper"):
            cut = count_in_an_epoch(split, row.method, settings)
            found |= {} if cut is None else {row.label: cut}
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Count on the data sets that are named, and keep what is there of others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    path = FOLDER / COUNTED
    known = read_json(path, dict) if path.exists() else {}
    for name in parser.parse_args(arguments).names:
        known[name] = {label: asdict(cut) for label, cut in count(name).items()}
        print(name, known[name], flush=True)
        write_json(path, known, indent=1)


if __name__ == "__main__":
    main()

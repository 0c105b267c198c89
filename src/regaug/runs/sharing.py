"""Runs that two studies have in common: done once, and kept by both.

A record is taken over only if it would come out the same to the last bit: see
:class:`regaug.runs.origins.Origins`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from regaug.exceptions import StoreError
from regaug.problems import Problem
from regaug.runs.origins import Origins
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.runs.tasks import make_tasks

# By the key of a run and its origin: who has it, and what came out of it.
Offers = dict[tuple[str, str], tuple[Path, RunRecord]]


def borrow(
    rounds: Iterable[Sequence[Run]], store: Store, lenders: Sequence[Path], problem: Problem
) -> Mapping[Path, int]:
    """Take over the runs of a study that other ones have, round by round as far as they go.

    Args:
        rounds: The runs, each round asked for when the one before is in the store.
        store: Where they are put.
        lenders: Folders of other studies.
        problem: What the runs are of.

    Returns:
        How many runs each folder has given; only those that have given any.
    """
    given: dict[Path, int] = {}
    origins, offers, done = Origins([problem]), _read(lenders), store.done()
    for runs in rounds if offers else ():
        for task in make_tasks(runs, {problem.name: problem}):
            for key, origin in origins.of(task).items():
                if (key, origin) in offers and key not in done:
                    folder, record = offers[key, origin]
                    store.add(record, origin=origin)
                    done.add(key)
                    given[folder] = given.get(folder, 0) + 1
        if not {run.key for run in runs} <= done:
            break
    return given


def _read(lenders: Sequence[Path]) -> Offers:
    found: Offers = {}
    for folder in lenders:
        try:
            own = Store.open(folder)
            records, origins = own.records(), own.origins
        except StoreError:  # damaged, or of another version: then it has nothing to give
            continue
        for key, origin in origins.items():
            found.setdefault((key, origin), (folder, records[key]))
    return found

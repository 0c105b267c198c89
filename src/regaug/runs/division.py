"""Which tasks are whose: several processes and machines share the work of one folder."""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from pathlib import Path
from typing import Self

from regaug._files import remove_leftovers
from regaug.runs.claims import Claim
from regaug.runs.run import run_key
from regaug.runs.store import Store
from regaug.runs.worker import Task

_PATTERN = "claim-*.json"


class Division:
    """The tasks that this process does of a round, beside others who have the same store.

    Each claims a task when its turn comes, with a file in the store's folder, and lets it go when
    its records are in the store: then all others find them there. A task whose claim is another
    one's is left to them; if that process is killed, whoever asks next has it.

    Args:
        store: Where the records are put.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[Path, tuple[Claim, Task]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.let_go()

    def pending(self, tasks: Iterable[Task], *, is_over: Callable[[], bool]) -> Iterator[Task]:
        """Give tasks that are left to do, each when its turn comes and it is claimed."""
        done = self._store.done()
        for task in tasks:
            if not left_of(task, done):
                continue
            if is_over():
                return
            path = claim_file(self._store.folder, task)
            claim = Claim.take(path)
            if claim is None:
                continue
            # Its records are there before a claim is let go, so now is the time to look.
            done = self._store.done()
            left = left_of(task, done)
            self._held[path] = claim, left
            if left:
                yield left
            else:
                self._let_go(path)

    def settle(self, done: Set[str]) -> None:
        """Let tasks go whose runs are all done."""
        for path, (_, task) in list(self._held.items()):
            if all(run.key in done for run in task):
                self._let_go(path)

    def let_go(self) -> None:
        """Let all tasks go: they are done, or others may do them."""
        for path in list(self._held):
            self._let_go(path)

    def _let_go(self, path: Path) -> None:
        claim, _ = self._held.pop(path)
        claim.end()


def left_of(task: Task, done: Set[str]) -> Task:
    """Return what is to be done of a task: of baselines those that are not done.

    What a net becomes depends on those that it is trained beside: such a task stays as it is.
    """
    if task[0].is_baseline:
        return tuple(run for run in task if run.key not in done)
    return () if all(run.key in done for run in task) else task


def claim_file(folder: Path, task: Task) -> Path:
    """Return the file that says who does a task.

    It lies beside the records: a network disk that is asked for a new file there looks what else
    is new.
    """
    return folder / _PATTERN.replace("*", run_key({"runs": [run.key for run in task]})[:16])


def clear_claims(folder: Path) -> None:
    """Remove what killed processes have left in the folder of a study that is finished."""
    remove_leftovers(folder, _PATTERN)
    for file in folder.glob(_PATTERN):
        with suppress(OSError):  # another process does the same
            file.unlink()

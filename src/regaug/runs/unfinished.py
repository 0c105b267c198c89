"""Network runs that are not finished: their state in a study's folder, for whoever goes on."""

import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from regaug._files import remove_leftovers
from regaug.exceptions import CheckpointError, StoreError
from regaug.runs.claims import Claim
from regaug.runs.run import Run
from regaug.training.checkpoint import Checkpoints

CHECKPOINTS = "checkpoints"
CLAIM = "claim.json"
# A state is saved when the training has taken so many times what saving takes: 1 % of the time.
PACE = 100.0
# Seconds that saving takes, as long as nothing is known of it.
_GUESS = 2e-3
_DAY = 24 * 3600.0


class Unfinished(Checkpoints):
    """The checkpoints of one run of a study.

    Saving takes at most about 1 % of the time: where epochs take a fraction of a second it is not
    done after each of them. A checkpoint survives the end of its process, not always the loss of
    power; one that is damaged is left out. Processes that train the same run do not disturb each
    other.

    Args:
        study: The study's folder.
        run: The run; where it pauses does not count.
        until: A time, in seconds since 1970, at which it pauses; None goes on.
        flag: It pauses when there is such a file.
    """

    _sync = False
    _age = _DAY

    def __init__(
        self, study: Path, run: Run, *, until: float | None = None, flag: Path | None = None
    ) -> None:
        super().__init__(study / CHECKPOINTS / name_of(run))
        self.until, self.flag = until, flag
        self._took: list[float] = []  # the last two times
        self._last = time.monotonic()

    def claim(self) -> Claim | None:
        """Say that this process trains the run; None if another one does."""
        return Claim.take(self.folder / CLAIM)

    def is_due(self) -> bool:
        """Tell whether saving now takes a small part of the time since it was done last."""
        # The shorter one: a disk has slow moments.
        return time.monotonic() - self._last >= PACE * min(self._took, default=_GUESS)

    def is_over(self) -> bool:
        """Tell whether the time is up, or somebody has asked for a pause."""
        is_late = self.until is not None and time.time() >= self.until
        return is_late or (self.flag is not None and self.flag.exists())

    def save(self, epoch: int, state: Mapping[str, object]) -> None:
        """Write the state after so many epochs, and look how long that takes."""
        start = time.monotonic()
        try:
            super().save(epoch, state)
        except CheckpointError as error:
            # Another process has finished the run, and removed the folder just now.
            if not self.folder.exists():
                return
            raise StoreError(str(error)) from error  # the earlier ones are good
        self._last = time.monotonic()
        self._took = [*self._took[-1:], self._last - start]

    def drop_latest(self) -> bool:
        """Remove the newest checkpoint, from which nobody can go on; say whether there was one."""
        epochs = self._epochs()
        if epochs:
            self.path(epochs[-1]).unlink(missing_ok=True)
        return bool(epochs)

    def clear(self) -> None:
        """Remove all there is of the run; what cannot be removed stays."""
        with suppress(CheckpointError):
            super().clear()
        with suppress(OSError):
            remove_leftovers(self.folder, "*")
            (self.folder / CLAIM).unlink(missing_ok=True)
            self.folder.rmdir()


def name_of(run: Run) -> str:
    """Return what the checkpoints of a run are called, wherever it pauses."""
    settings = run.settings
    if settings is None or settings.stop_after is None:
        return run.key
    return replace(run, settings=replace(settings, stop_after=None)).key


def clear_all(study: Path) -> None:
    """Remove what a finished study has left of runs that paused and did not go on."""
    shutil.rmtree(study / CHECKPOINTS, ignore_errors=True)

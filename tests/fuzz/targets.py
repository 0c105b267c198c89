"""What is tried with changed files: each reader, and what is done with what it returns."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz import corpus, sealed
from tests.fuzz.mutations import mutate_bytes

from regaug.data import read_table
from regaug.ensemble import Ensemble
from regaug.exceptions import RegaugError
from regaug.studies.study import Study

FRAME = corpus.make_frame()


@dataclass(frozen=True)
class Target:
    """A kind of file, or folder, and who reads it.

    Attributes:
        write: Writes one that is sound.
        change: Changes a copy of it.
        use: Reads the copy and does something with it.
        share: How often it is tried, beside the others.
    """

    write: Callable[[Path], object]
    change: Callable[[Path, Random], object]
    use: Callable[[Path], object]
    share: int = 1

    def attempt(self, sound: Path, copy: Path, rng: Random) -> bool:
        """Change a copy and use it; say whether it was accepted. Other errors are not ours."""
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sound, copy)
        self.change(copy, rng)
        try:
            self.use(copy)
        except RegaugError as error:
            text = str(error)
            if not text or len(text) > LONGEST:
                raise AssertionError(f"a message of {len(text):,} characters") from error
            return False
        return True


LONGEST = 5_000  # characters of a message


def change_a_table(folder: Path, rng: Random) -> None:
    """Keep one of the tables, with other bytes."""
    files = sorted(folder.iterdir())
    kept = rng.choice(files)
    for file in files:
        if file != kept:
            file.unlink()
    kept.write_bytes(mutate_bytes(kept.read_bytes(), rng))


def use_tables(folder: Path) -> None:
    """Read every table of a folder, and split it."""
    for file in folder.iterdir():
        table = read_table(file, target="price")
        table.split(seed=0)
        str(table.summary)


def change_bytes(folder: Path, rng: Random) -> None:
    """Change the bytes of one of the files of a folder."""
    file = rng.choice(sorted(file for file in folder.rglob("*") if file.is_file()))
    file.write_bytes(mutate_bytes(file.read_bytes(), rng))


def change_study(folder: Path, rng: Random) -> None:
    """Change one of the documents of a study, checksums included."""
    file = rng.choice(sorted(folder.iterdir()))
    for start, reseal in (
        ("study", sealed.reseal_study),
        ("runs", sealed.reseal_runs),
        ("targets", sealed.reseal_tensors),
        ("", sealed.reseal_json),
    ):
        if file.name.startswith(start):
            reseal(file, rng)
            return


def use_model(folder: Path) -> None:
    """Load a model, predict some rows, look whether they are finite."""
    model = Ensemble.load(folder)
    found = model.predict(FRAME, interval=0.5 if model.calibration else None)
    for values in (found.mean, found.spread, found.low, found.high):
        assert values is None or bool(values.isfinite().all()), "not finite"
    str(model)


def use_study(folder: Path) -> None:
    """Open a study, say what it has found, and draw it."""
    study = Study.open(folder)
    str(study)
    study.to_dict()
    study.to_frame()
    study.runs_frame()
    study.report(folder / "page.html")


def change_checkpoint(folder: Path, rng: Random) -> None:
    """Change the newest checkpoint, checksums included."""
    sealed.reseal_tensors(max(folder.iterdir()), rng)


def go_on(folder: Path) -> None:
    """Train on from a checkpoint."""
    corpus.train(folder, epochs=4)


def write_checkpoint(folder: Path) -> None:
    """Write two checkpoints, and keep the last one."""
    corpus.train(folder)
    min(folder.iterdir()).unlink()


TARGETS = {
    "table": Target(corpus.write_tables, change_a_table, use_tables, 4),
    "model, bytes": Target(corpus.write_model, change_bytes, use_model),
    "model, sealed": Target(corpus.write_model, sealed.reseal_model, use_model, 4),
    "study, bytes": Target(corpus.write_study, change_bytes, use_study),
    "study, sealed": Target(corpus.write_study, change_study, use_study, 4),
    "checkpoint, bytes": Target(write_checkpoint, change_bytes, go_on),
    "checkpoint, sealed": Target(write_checkpoint, change_checkpoint, go_on, 3),
}

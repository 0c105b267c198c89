"""Write files that appear complete or not at all."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from regaug.exceptions import ArgumentError, DataError


def write_table(frame: Any, path: Path) -> None:
    """Write a pandas frame as CSV (``.csv``, ``.tsv``) or Parquet (``.parquet``)."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise ArgumentError(f"`--out` must end in .csv, .tsv or .parquet, got {str(path)!r}.")

    def write(temporary: Path) -> None:
        if kind != ".parquet":
            frame.to_csv(temporary, index=False, sep="\t" if kind == ".tsv" else ",")
            return
        try:
            frame.to_parquet(temporary, index=False)
        except (TypeError, ValueError) as error:  # Arrow's errors are children of these
            reason = str(error).splitlines()[0]
            raise DataError(
                f"The table cannot be written as Parquet: {reason} Write a .csv file instead."
            ) from error

    write_whole(path, write)


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` make a file under another name, and put it in place when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"Could not write {path}: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()

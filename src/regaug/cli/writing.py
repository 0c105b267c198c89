"""Write a table to a file that appears complete or not at all."""

import os
from pathlib import Path
from typing import Any

from regaug.exceptions import ArgumentError, DataError


def write_table(frame: Any, path: Path) -> None:
    """Write a pandas frame as CSV (``.csv``, ``.tsv``) or Parquet (``.parquet``)."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise ArgumentError(f"`--out` must end in .csv, .tsv or .parquet, got {str(path)!r}.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, index=False, sep="\t" if kind == ".tsv" else ",")
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"Could not write {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)

"""A table written to a file, all of it or a piece after the other."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from regaug.data.tabular.formulas import without_formulas
from regaug.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

PARQUET = ".parquet"


class TableWriter:
    """Writes CSV (``.csv``, ``.tsv``) or Parquet, by an ending.

    Args:
        path: A new file.
        ending: What it is, as the file may have another name until it is whole.
        safe: No cell of a CSV file is a formula: see
            :func:`regaug.data.tabular.formulas.as_text`.
    """

    def __init__(self, path: Path, ending: str, *, safe: bool = False) -> None:
        self.path, self.ending, self.safe = path, ending.lower(), safe
        self._stack, self._is_begun = ExitStack(), False
        self._file: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def write(self, frame: "pd.DataFrame", batch: Any = None, *, new: int = 0) -> None:
        """Write rows.

        Args:
            frame: The rows.
            batch: The rows as Parquet has them, if they came from there, without the last columns
                of ``frame``: they are written with the types that they have.
            new: How many columns of ``frame`` these are.
        """
        if self.ending == PARQUET:
            self._write_parquet(frame, batch, new)
            return
        file = self._file
        if file is None:
            opened = open(self.path, "w", newline="", encoding="utf-8")  # noqa: SIM115
            file = self._file = self._stack.enter_context(opened)
        frame = without_formulas(frame) if self.safe else frame
        sign = "\t" if self.ending == ".tsv" else ","
        frame.to_csv(file, index=False, sep=sign, header=not self._is_begun)
        self._is_begun = True

    def _write_parquet(self, frame: "pd.DataFrame", batch: Any, new: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if batch is None:
                table = pa.Table.from_pandas(frame, preserve_index=False)
            else:
                names = list(frame.columns)
                old = names[: len(names) - new]
                columns = {name: batch.column(name) for name in old}
                columns |= {name: pa.array(frame[name]) for name in names[len(old) :]}
                fields = [batch.schema.field(name) for name in old]
                fields += [pa.field(name, columns[name].type) for name in names[len(old) :]]
                table = pa.table(list(columns.values()), schema=pa.schema(fields))
            if self._file is None:
                own = pq.ParquetWriter(self.path, table.schema)
                self._file = self._stack.enter_context(own)
            self._file.write_table(table)
        except (TypeError, ValueError) as error:  # Arrow's errors are children of these
            reason = str(error).splitlines()[0]
            raise DataError(
                f"The table cannot be written as Parquet: {reason} Write a .csv file instead."
            ) from error

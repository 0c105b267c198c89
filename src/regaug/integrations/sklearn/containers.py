"""Lists, sparse matrices, tables of polars and Arrow: opened as NumPy's or pandas', and back.

The rows that came stay as they are. Those that were made are put into their form, and below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

Data: TypeAlias = Any  # whatever holds rows


@dataclass(frozen=True)
class Container:
    """Rows in a form of somebody else's.

    Attributes:
        own: The rows as they came.
        rows: The same as an array, a series or a frame of pandas.
    """

    own: Data
    rows: Data
    _join: Callable[[Any, Any], Any] | None = None

    def below(self, more: Data) -> Data:
        """Return the rows as they came with those of ``more`` below that were made."""
        if self._join is None:
            return more
        count = len(self.rows)
        return self._join(self.own, more.iloc[count:] if hasattr(more, "iloc") else more[count:])


def open_rows(data: Data) -> Container:
    """Open a container; what is none of those that are known is used as it is.

    Example:
        >>> opened = open_rows([1.0, 2.0])
        >>> opened.below(np.array([1.0, 2.0, 3.0]))
        [1.0, 2.0, 3.0]
    """
    if isinstance(data, list):
        return Container(data, np.array(data), lambda own, new: own + new.tolist())
    if sparse.issparse(data):
        return Container(data, data.toarray(), _join_sparse)
    home = type(data).__module__.partition(".")[0]
    if home == "polars" and hasattr(data, "to_pandas"):
        return Container(data, data.to_pandas(), _join_polars)
    if home == "pyarrow" and hasattr(data, "to_pandas"):
        # Dates and numbers as pandas has them: others are taken for text.
        known = _without_decimals(data)
        return Container(data, known.to_pandas(date_as_object=False), _join_arrow)
    return Container(data, data)


def _join_sparse(own: Data, new: Data) -> Data:
    # Both the older matrices and the newer arrays come back as what they were.
    return type(own)(sparse.vstack([own, type(own)(new)], format=own.format))


def _join_polars(own: Data, new: Data) -> Data:
    import polars

    made: Any = polars.from_pandas(new.reset_index(drop=True))
    if isinstance(own, polars.Series):
        return own.clone().append(made.cast(own.dtype).alias(own.name))
    return polars.concat([own, made.cast(own.schema)])


def _join_arrow(own: Data, new: Data) -> Data:
    import pyarrow

    if isinstance(own, pyarrow.RecordBatch):
        table = _join_arrow(pyarrow.Table.from_batches([own]), new)
        return table.combine_chunks().to_batches()[0]
    if isinstance(own, pyarrow.Table):
        schema = _without_decimals(own).schema
        made = pyarrow.Table.from_pandas(new, schema=schema, preserve_index=False)
        return pyarrow.concat_tables([own, made.cast(own.schema, safe=False)])
    made = pyarrow.array(np.asarray(new), type=_without_decimals(own).type)
    made = made.cast(own.type, safe=False)
    if isinstance(own, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([*own.chunks, made])
    return pyarrow.concat_arrays([own, made])


def _without_decimals(data: Data) -> Data:
    """Return the same with floats for decimals."""
    import pyarrow

    def known(kind: Data) -> Data:
        return pyarrow.float64() if pyarrow.types.is_decimal(kind) else kind

    if not hasattr(data, "schema"):
        return data.cast(known(data.type))
    return data.cast(pyarrow.schema([own.with_type(known(own.type)) for own in data.schema]))

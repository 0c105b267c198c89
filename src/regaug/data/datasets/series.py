"""Series by name, as windows and the row that follows: exchange-rate, electricity, etth1."""

import gzip
import warnings
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regaug._checks import check_choice, check_integer
from regaug.data.base import Data, Info, Part, Rules
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import locate
from regaug.data.lazy import Index
from regaug.data.scaling import Scaler, StandardizedSplit
from regaug.exceptions import ArgumentError, DataError, DataNotFoundError, NonFiniteError

WINDOW = 168
_ELECTRICITY = "electricity/electricity.txt.gz"
_TWO_CLIENTS = "electricity/electricity_26304rows_2of321.csv"


class Windows:
    """Windows of a series, ``(n, window, columns)``, cut out when they are asked for.

    All windows together would be ``window`` times as large as the series, whose memory they share.
    What an index returns is a copy and may be changed. The first of ``n`` windows begins at row
    ``first`` of the series ``(time, columns)``, each a row after the one before.
    """

    def __init__(self, series: Tensor, window: int, *, first: int, n: int) -> None:
        columns = series.shape[1]
        if first < 0 or n < 0 or first + n + window - 1 > len(series):
            raise ArgumentError(
                f"`first` and `n` must give windows of {window} rows inside the {len(series)} of "
                f"the series, got {first} and {n}."
            )
        self.shape = (n, window, columns)
        # A window is one run of memory, and runs are copied faster than rows of rows.
        self._runs = series.contiguous()[first:].as_strided((n, window * columns), (columns, 1))
        self._places = torch.arange(n)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> Tensor:
        """Return one window for an int, a stack for a slice, a list, an array or a tensor."""
        # Whatever is an index of a tensor is one here, and what is an error there is one here.
        places = self._places[index]
        runs = self._runs.index_select(0, places.reshape(-1))
        return runs.reshape(*places.shape, *self.shape[1:])


class SeriesData(Data):
    r"""A series as samples: ``window`` rows, and the row ``horizon`` after the last of them.

    The sample whose target is row :math:`i` has the rows :math:`i - h - w + 1, \dots, i - h` as
    inputs. Sample 0 has the first possible target, row :math:`w + h - 1`. Parts are chronological
    by the row of the target: up to ``int(0.6 T)``, up to ``int(0.8 T)``, the rest. Windows of a
    later part reach back into the rows of an earlier one, which are known by then; targets do not.

    Every column is divided by its largest absolute value: over the training rows (those before
    ``int(0.6 T)``) in the protocol ``"tuned"``, over the whole series in ``"paper"``. The splits
    know the divisor (``split.y_scaler.std``) and the way back (``split.restore``).

    Args:
        series: ``(time, columns)``, finite.
        info: The facts about the data.
        window: Rows of an input.
        horizon: Rows from the end of the input to the target, at least 1.

    Example:
        >>> info = Info(name="ramp", task="series", metric="rmse", split="By time.")
        >>> data = SeriesData(np.arange(1.0, 21.0)[:, None], info=info, window=4, horizon=2)
        >>> split = data.split()
        >>> len(data), len(split.train), split.train.x.shape
        (15, 7, (7, 4, 1))
        >>> split.restore(split.train.y[:2]).squeeze(1)
        tensor([6., 7.])
    """

    def __init__(
        self, series: ArrayLike, *, info: Info, window: int = WINDOW, horizon: int
    ) -> None:
        self.series: NDArray[np.float32] = np.ascontiguousarray(series, dtype=np.float32)
        self.info = info
        self.window = check_integer("window", window, 1)
        self.horizon = check_integer("horizon", horizon, 1)
        self._check()

    def __len__(self) -> int:
        return len(self.series) - self._first_target

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> StandardizedSplit:
        """Split by time; the seed has no effect. See :meth:`Data.split`."""
        check_choice("protocol", protocol, ("tuned", "paper"))
        rows = len(self.series)
        borders = (self._first_target, int(0.6 * rows), int(0.8 * rows), rows)
        known = self.series if protocol == "paper" else self.series[: borders[1]]
        # The larger of two ends instead of the maximum of |series|, which would be a copy.
        divisor = np.maximum(known.max(axis=0), -known.min(axis=0))
        divisor[divisor == 0] = 1.0
        scaled = torch.from_numpy(self.series / divisor)
        train, validation, test = (self._part(scaled, low, high) for low, high in pairwise(borders))
        scaler = Scaler(mean=np.zeros(len(divisor)), std=divisor.astype(np.float64))
        return StandardizedSplit(train, validation, test, x_scaler=scaler, y_scaler=scaler)

    @property
    def _first_target(self) -> int:
        return self.window + self.horizon - 1

    def _part(self, scaled: Tensor, low: int, high: int) -> Part:
        """Return the samples whose targets are the rows from ``low`` to ``high`` - 1."""
        first = low - self._first_target
        return Part(
            x=Windows(scaled, self.window, first=first, n=high - low),
            y=scaled[low:high],
            rows=np.arange(first, first + high - low),
        )

    def _check(self) -> None:
        if self.series.ndim != 2 or self.series.size == 0:
            raise ArgumentError(
                f"`series` must be (time, columns) and not empty, got shape {self.series.shape}."
            )
        if not np.isfinite(self.series).all():
            row, column = np.argwhere(~np.isfinite(self.series))[0].tolist()
            raise NonFiniteError(
                f"`series` must be finite, got {self.series[row, column]} in row {row}, column "
                f"{column}. Fill gaps first."
            )
        rows = len(self.series)
        if int(0.6 * rows) <= self._first_target or int(0.8 * rows) <= int(0.6 * rows):
            raise ArgumentError(
                f"`series` must leave a sample for each part, got {rows} rows, of which the first "
                f"target needs {self._first_target} before it and 60 % are for training. Take a "
                "shorter `window` or `horizon`."
            )


def load_exchange_rate() -> SeriesData:
    """Return Exchange-Rate: 7588 days of 8 currencies; 168 days in, the 12th after them out."""
    series = _read(locate("exchange_rate/exchange_rate.txt.gz"), rows=7588, columns=8)
    return SeriesData(series, info=DATASETS["exchange-rate"].info, horizon=12)


def load_electricity(path: str | Path | None = None) -> SeriesData:
    """Return Electricity: 26304 hours of 321 clients; 168 hours in, the 24th after them out.

    ``path`` is a file in the layout of LSTNet (numbers alone) or of Autoformer (a header and a
    ``date`` column, which is dropped), with any number of rows and columns. None takes the whole
    data, or with a warning the 2 clients that the data folder has, if it has those only.
    """
    info = DATASETS["electricity"].info
    origin = info.origin
    if path is not None:
        series = _read(Path(path))
        origin = f"{origin}; {Path(path).name}, {series.shape[0]} x {series.shape[1]}"
    else:
        try:
            series = _read(locate(_ELECTRICITY), rows=26304, columns=321)
        except DataNotFoundError as error:
            try:
                excerpt = locate(_TWO_CLIENTS, fetch=False)
            except DataNotFoundError:
                raise error from None  # what is missing is the whole data
            series = _read(excerpt, rows=26304, columns=2)
            origin = f"{origin}; excerpt: 2 of 321 clients"
            warnings.warn(
                f"{_ELECTRICITY} is not here: taking the excerpt {_TWO_CLIENTS} with 2 of the 321 "
                "clients. Errors on it do not compare with published ones.",
                stacklevel=2,
            )
    return SeriesData(series, info=replace(info, origin=origin), horizon=24)


def load_etth1() -> SeriesData:
    """Return ETTh1: 17420 hours of 6 loads and the oil temperature of a power transformer."""
    series = _read(locate("etth1/ETTh1.csv"), rows=17420, columns=7)
    return SeriesData(series, info=DATASETS["etth1"].info, horizon=24)


def _read(path: Path, *, rows: int = 0, columns: int = 0) -> NDArray[np.float32]:
    """Read a comma-separated series; a header and a first column called ``date`` are dropped."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            names, numbers = (file.readline().strip().split(",") for _ in range(2))
        if not _is_number(numbers[-1]):
            raise ValueError(f"its second line ends in {numbers[-1]!r}")
        has_date = names[0] == "date"
        series = np.loadtxt(
            path,
            dtype=np.float32,
            delimiter=",",
            comments=None,
            # Clients are named by numbers, so a line of numbers may still be a header.
            skiprows=int(has_date or not _is_number(names[-1])),
            # Read and dropped, because leaving a column out would let lines of any length pass.
            converters={0: lambda date: 0.0} if has_date else None,
            ndmin=2,
        )[:, int(has_date) :]
    except FileNotFoundError:
        raise DataNotFoundError(f"{path} is not here.") from None
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} must be a comma-separated table of numbers: {error}") from error
    expected = (rows or series.shape[0], columns or series.shape[1])
    if series.shape != expected:
        raise DataError(
            f"{path} must have {expected[0]} rows of {expected[1]} columns, got {series.shape[0]} "
            f"rows of {series.shape[1]}. Fetch it anew."
        )
    return series


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Tables by name: diabetes, airfoil, no2, crimes, skillcraft."""

import csv
import gzip
import math
import zlib
from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regaug.data.arrays import ArrayData
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import locate
from regaug.data.scaling import Values
from regaug.data.splits import ThreeParts, ordered_group_split, random_split
from regaug.exceptions import DataError

_NO2_HEADER = (
    "cars_per_hour\ttemperature_at_2m\twind_speed\ttemperature_diff_2m_25m\twind_direction\t"
    "hour_of_day\tday\ttarget"
)
_SKILLCRAFT_HEADER = (
    "GameID,LeagueIndex,Age,HoursPerWeek,TotalHours,APM,SelectByHotkeys,AssignToHotkeys,"
    "UniqueHotkeys,MinimapAttacks,MinimapRightClicks,NumberOfPACs,GapBetweenPACs,ActionLatency,"
    "ActionsInPAC,TotalMapExplored,WorkersMade,UniqueUnitsMade,ComplexUnitsMade,"
    "ComplexAbilitiesUsed"
)


def load_diabetes() -> ArrayData:
    """Return scikit-learn's diabetes table: 442 patients, 10 inputs in their own units."""
    from sklearn.datasets import load_diabetes as load

    # Not scikit-learn's scaled columns: their scale comes from all rows.
    x, y = load(return_X_y=True, scaled=False)
    return ArrayData(x, y, info=DATASETS["diabetes"].info)


def load_airfoil() -> ArrayData:
    """Return Airfoil Self-Noise: 1503 rows, 5 inputs, the sound pressure level in dB."""
    cells = _read(locate("airfoil/airfoil_self_noise.dat"), rows=1503, columns=6, delimiter="\t")
    rule = partial(_deal, sizes=(1003, 300, 200))
    return ArrayData(cells[:, :5], cells[:, 5], info=DATASETS["airfoil"].info, rule=rule)


def load_no2() -> ArrayData:
    """Return NO2: 500 hours beside a road in Oslo, 7 inputs, the log of the concentration."""
    path = locate("no2/547_no2.tsv.gz")
    cells = _read(path, rows=500, columns=8, delimiter="\t", header=_NO2_HEADER)
    rule = partial(_deal, sizes=(200, 200, 100))
    return ArrayData(cells[:, :7], cells[:, 7], info=DATASETS["no2"].info, rule=rule)


def load_crimes() -> ArrayData:
    """Return Communities and Crime: 1994 rows, 122 inputs (22 mostly missing), groups = states."""
    path = locate("crimes/communities.data")
    # Columns 1 to 3 say which place it is (county, community, name) and are not used.
    cells = _read(path, rows=1994, columns=128, text=(1, 2, 3), missing=range(5, 127))
    return _in_order("crimes", cells[:, 5:127], cells[:, 127], cells[:, 0])


def load_skillcraft() -> ArrayData:
    """Return SkillCraft1: 3395 players, 17 inputs, the latency of actions, groups = leagues."""
    path = locate("skillcraft/SkillCraft1_Dataset.csv")
    cells = _read(path, rows=3395, columns=20, header=_SKILLCRAFT_HEADER, missing=(2, 3, 4))
    target = _SKILLCRAFT_HEADER.split(",").index("ActionLatency")
    x = np.delete(cells, [0, 1, target], axis=1)
    return _in_order("skillcraft", x, cells[:, target], cells[:, 1])


def _in_order(name: str, x: Values, y: Values, groups: Values) -> ArrayData:
    numbers = groups.astype(np.int64)
    rule = partial(_deal, groups=numbers)
    return ArrayData(x, y, info=DATASETS[name].info, rule=rule, groups=numbers)


def _deal(
    seed: int, *, sizes: Sequence[int] = (), groups: NDArray[np.int64] | None = None
) -> ThreeParts:
    if groups is not None:
        return ordered_group_split(groups)  # the rule leaves nothing to the seed
    return random_split(sum(sizes), sizes=sizes, seed=seed)


def _read(
    path: Path,
    *,
    rows: int,
    columns: int,
    delimiter: str = ",",
    header: str = "",
    missing: Container[int] = (),
    text: Container[int] = (),
) -> Values:
    """Read a table of numbers whose size, and first line if that is a header, are known.

    In the columns of ``missing`` a "?" may stand for a missing value, which becomes NaN, as does
    everything in those of ``text``.
    """
    lines = _lines(path, delimiter)
    names = header.split(delimiter)
    if header and lines[:1] != [names]:
        raise DataError(f"{path} must begin with the names {', '.join(names)}.")
    lines = lines[1:] if header else lines
    widths = {len(line) for line in lines}
    if len(lines) != rows or widths != {columns}:
        found = " or ".join(str(width) for width in sorted(widths)) or "no"
        raise DataError(
            f"{path} must have {rows} rows of {columns} columns, got {len(lines)} rows of {found} "
            "columns. Fetch it anew, or see the data page for the right file."
        )
    cells = np.empty((rows, columns))
    for i, line in enumerate(lines):
        for j, cell in enumerate(line):
            if j in text or (cell == "?" and j in missing):
                cells[i, j] = np.nan
            else:
                cells[i, j] = _number(cell, path, i, j)
    return cells


def _lines(path: Path, delimiter: str) -> list[list[str]]:
    """Return the cells of every line that is not empty."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            return [line for line in csv.reader(file, delimiter=delimiter) if line]
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} must be a text table, got a damaged file: {error}.") from error


def _number(cell: str, path: Path, row: int, column: int) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(
            f"{path} must hold a number in row {row}, column {column} (from 0), got {cell!r}."
        )
    return number

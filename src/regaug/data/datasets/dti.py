"""Drugs and proteins of patents, year by year: the domain generalization benchmark of TDC."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regaug._random import Stream, numpy_generator
from regaug.data.base import Rows, Rules, Split, check_split
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import find
from regaug.data.datasets.pairs import (
    DRUG_LENGTH,
    DRUG_SYMBOLS,
    PROTEIN_LENGTH,
    PROTEIN_SYMBOLS,
    Pairs,
    encode,
    expect,
)
from regaug.exceptions import DataError


def load_dti(*, path: str | Path | None = None) -> "YearPairs":
    """Load BindingDB patents by year, TDC's ``DTI_DG_Group`` (the paper's DTI).

    Args:
        path: The folder ``dti_dg_group/bindingdb_patent`` with ``train_val.csv`` and ``test.csv``;
            found as every data file if None.

    Returns:
        The data; a sample is the drug and the protein in one-hot code, 32,300 values.
    """
    return YearPairs(find(path, "dti_dg_group/bindingdb_patent"))


class YearPairs(Pairs):
    """Patented pairs; the group of a pair is the year of its patent.

    A row is a line of ``train_val.csv``, followed by those of ``test.csv``. Targets are as TDC
    ships them.

    Args:
        folder: Has ``train_val.csv`` and ``test.csv``.
    """

    info = DATASETS["dti"].info

    def __init__(self, folder: Path) -> None:
        earlier = _read_patents(folder / "train_val.csv", range(2013, 2019))
        later = _read_patents(folder / "test.csv", range(2019, 2022))
        drugs, drug = _number(earlier[0] + later[0])
        proteins, protein = _number(earlier[1] + later[1])
        super().__init__(
            encode(drugs, DRUG_SYMBOLS, DRUG_LENGTH),
            encode(proteins, PROTEIN_SYMBOLS, PROTEIN_LENGTH),
            np.column_stack([drug, protein]),
            np.concatenate([earlier[2], later[2]]),
            np.concatenate([earlier[3], later[3]]),
        )

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Train and validate on 2013 to 2018, test on 2019 and 2020; 2021 is too small to use.

        All rows of these years are used, in both protocols. The paper's scripts take a random
        share of each part once, the same number of rows from every year (100 batches of 64, fewer
        if the smallest year has fewer), and then mix the years in every batch.

        Args:
            seed: Seed of the 80 / 20 parts inside every year.
            protocol: ``"tuned"`` or ``"paper"``.
        """
        seed = check_split(seed, protocol)
        train, validation = [], []
        for year in range(2013, 2019):
            rows = np.flatnonzero(self._groups == year)
            rows = numpy_generator(Stream.YEARS, seed, year).permutation(rows)
            cut = len(rows) * 4 // 5
            train.append(rows[:cut])
            validation.append(rows[cut:])
        return Split(
            train=self._part(np.concatenate(train)),
            validation=self._part(np.concatenate(validation)),
            test=self._part(np.flatnonzero(np.isin(self._groups, (2019, 2020)))),
        )


def _read_patents(
    path: Path, years: range
) -> tuple[list[str], list[str], NDArray[np.float64], NDArray[np.int64]]:
    """Return drugs, proteins, targets and years of a file of TDC."""
    import pandas as pd

    table = pd.read_csv(expect(path))
    wanted = ["Drug", "Target", "Y", "Year"]
    if not set(wanted) <= set(table.columns):
        raise DataError(
            f"{path} must have the columns {', '.join(wanted)}, "
            f"got {', '.join(map(str, table.columns))}."
        )
    table = table[wanted].assign(Y=pd.to_numeric(table["Y"], errors="coerce"))
    absent = table.isna().sum()
    if absent.any():
        counts = ", ".join(f"{n} in {name}" for name, n in absent.items() if n)
        raise DataError(
            f"{path} must have a text in Drug and Target and a number in Y and Year in every row, "
            f"got none: {counts}."
        )
    if not table["Year"].isin(years).all():
        other = table["Year"][~table["Year"].isin(years)].iloc[0]
        raise DataError(f"`Year` in {path} must be from {years[0]} to {years[-1]}, got {other}.")
    drugs, proteins = table["Drug"].astype(str), table["Target"].astype(str).str.upper()
    targets = table["Y"].to_numpy(dtype=np.float64)
    return drugs.tolist(), proteins.tolist(), targets, table["Year"].to_numpy(dtype=np.int64)


def _number(strings: list[str]) -> tuple[list[str], Rows]:
    """Return the different strings, and for each string its place among them."""
    places: dict[str, int] = {}
    numbers = [places.setdefault(text, len(places)) for text in strings]
    return list(places), np.array(numbers, dtype=np.int64)

"""Drugs and proteins, and how strongly they bind: Davis, KIBA and the patents of TDC.

A sample is the drug and the protein in one-hot code, 32,300 values.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._files import read_json
from regaug._random import Stream, numpy_generator
from regaug.data.base import Data, Part, Rows, Rules, Split, check_split
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import expect, find, read_columns
from regaug.data.lazy import Lazy
from regaug.exceptions import DataError, FileError

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

# The symbols of TDC and DeepPurpose in the order of their codes, which is that of their one-hot
# encoder (sorted). "?" pads, and stands for every other symbol ("/", "\" and "@" among them).
DRUG_SYMBOLS = "#%()+-.0123456789=?ABCDEFGHIKLMNOPRSTUVWYZ[]_abcdefghilmnorstuy"
PROTEIN_SYMBOLS = "?ABCDEFGHIKLMNOPQRSTUVWXYZ"
DRUG_LENGTH, PROTEIN_LENGTH = 100, 1000
N_DRUG = len(DRUG_SYMBOLS) * DRUG_LENGTH
N_FEATURES = N_DRUG + len(PROTEIN_SYMBOLS) * PROTEIN_LENGTH

Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]


def load_davis(*, path: str | Path | None = None) -> "FoldedPairs":
    """Load the Davis kinase affinities: 68 drugs x 442 proteins, pKd = 9 - log10(Kd / nM)."""
    folder = find(path, "dti_davis")
    file = folder / "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt"
    kd = _read_matrix(file)
    if not (kd > 0).all():
        raise DataError(f"{file} must hold positive numbers and no missing ones, got {kd.min()}.")
    return FoldedPairs("davis", folder, 9 - np.log10(kd))


def load_kiba(*, path: str | Path | None = None) -> "FoldedPairs":
    """Load the KIBA scores: 118,254 pairs of 2,111 drugs and 229 proteins."""
    folder = find(path, "dti_kiba")
    return FoldedPairs("kiba", folder, _read_matrix(folder / "kiba_binding_affinity_v2.txt"))


def load_dti(*, path: str | Path | None = None) -> "YearPairs":
    """Load BindingDB patents by year, TDC's ``DTI_DG_Group`` (the paper's DTI)."""
    return YearPairs(find(path, "dti_dg_group/bindingdb_patent"))


class Pairs(Data):
    """Pairs of a drug and a protein, each a number and a string; a subclass says how to split."""

    groups: Rows

    def __init__(
        self, drugs: Iterable[str], proteins: Iterable[str], pairs: Rows, y: Floats, groups: Rows
    ) -> None:
        self._drugs = encode(drugs, DRUG_SYMBOLS, DRUG_LENGTH)
        self._proteins = encode(proteins, PROTEIN_SYMBOLS, PROTEIN_LENGTH)
        self._pairs, self.y, self.groups = pairs, y[:, None], groups

    def _part(self, rows: Rows) -> Part:
        return self._samples(OneHotPairs(self._drugs, self._proteins, self._pairs[rows]), rows)


class FoldedPairs(Pairs):
    """A matrix of drugs and proteins with DeepDTA's folds.

    A row is a place in the present entries of the matrix, taken row by row; the group of a pair
    is the number of its protein. ``affinity`` is drugs x proteins in the order of the JSON files,
    NaN where a pair is missing.
    """

    def __init__(self, name: str, folder: Path, affinity: Floats) -> None:
        self.info = DATASETS[name].info
        drugs, proteins = (
            _read_json(folder / f"{name}.txt", dict) for name in ("ligands_can", "proteins")
        )
        if affinity.shape != (len(drugs), len(proteins)):
            raise DataError(
                f"The affinities in {folder} must be drugs x proteins, {len(drugs)} x "
                f"{len(proteins)} by its JSON files, got {affinity.shape}."
            )
        pairs = np.argwhere(~np.isnan(affinity))
        y = affinity[pairs[:, 0], pairs[:, 1]]
        super().__init__(drugs.values(), proteins.values(), pairs, y, pairs[:, 1])
        test = _read_json(folder / "folds/test_fold_setting1.txt", list)
        train = _read_json(folder / "folds/train_fold_setting1.txt", list)
        self._test, *self._folds = (np.array(fold, dtype=np.int64) for fold in (test, *train))
        places = np.sort(np.concatenate([self._test, *self._folds]))
        if len(self._folds) < 2 or not np.array_equal(places, np.arange(len(pairs))):
            raise DataError(
                f"The folds in {folder / 'folds'} must hold each of the {len(pairs)} present pairs "
                f"once, in a test fold and at least two training folds, got {len(places)} places "
                f"in {1 + len(self._folds)} folds."
            )

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Test on the test fold, validate on training fold ``seed % 5``, train on the others.

        The two protocols are the same.
        """
        chosen = check_split(seed, protocol) % len(self._folds)
        rest = [fold for number, fold in enumerate(self._folds) if number != chosen]
        return Split(
            train=self._part(np.concatenate(rest)),
            validation=self._part(self._folds[chosen]),
            test=self._part(self._test),
        )


class YearPairs(Pairs):
    """Patented pairs; the group of a pair is the year of its patent.

    A row is a line of ``train_val.csv``, followed by those of ``test.csv``. Targets are as TDC
    ships them.
    """

    info = DATASETS["dti"].info

    def __init__(self, folder: Path) -> None:
        import pandas as pd

        earlier = _read_patents(folder / "train_val.csv", range(2013, 2019))
        table = pd.concat([earlier, _read_patents(folder / "test.csv", range(2019, 2022))])
        drug, drugs = pd.factorize(table["Drug"])
        protein, proteins = pd.factorize(table["Target"])
        y, years = table["Y"].to_numpy(np.float64), table["Year"].to_numpy(np.int64)
        super().__init__(drugs, proteins, np.column_stack([drug, protein]), y, years)

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Train and validate on 2013 to 2018, test on 2019 and 2020; 2021 is too small to use.

        The seed deals the rows of every year 80 / 20. All rows of these years are used, in both
        protocols. The paper's scripts take a random share of each part once, the same number of
        rows from every year (100 batches of 64, fewer if the smallest year has fewer), and then
        mix the years in every batch.
        """
        seed = check_split(seed, protocol)
        dealt = []
        for year in range(2013, 2019):
            rows = np.flatnonzero(self.groups == year)
            rows = numpy_generator(Stream.YEARS, seed, year).permutation(rows)
            dealt.append(np.split(rows, [len(rows) * 4 // 5]))
        train, validation = map(np.concatenate, zip(*dealt, strict=True))
        return Split(
            train=self._part(train),
            validation=self._part(validation),
            test=self._part(np.flatnonzero(np.isin(self.groups, (2019, 2020)))),
        )


class OneHotPairs(Lazy):
    """Pairs in one-hot code, written out when they are asked for.

    A sample is flat: drug symbols x 100 positions, then protein symbols x 1000 positions; so
    ``sample[:6300].view(63, 100)`` is the drug and ``sample[6300:].view(26, 1000)`` the protein.
    ``drugs`` and ``proteins`` are the codes of the different ones, ``pairs`` the numbers of both
    ``(n, 2)``.
    """

    def __init__(self, drugs: Codes, proteins: Codes, pairs: Rows) -> None:
        super().__init__(len(pairs), (N_FEATURES,))
        self.drugs, self.proteins, self.pairs = drugs, proteins, pairs

    def _read(self, place: int) -> Tensor:
        return self._stack(np.array([place]))[0]

    def _stack(self, places: Rows) -> Tensor:
        drug, protein = self.pairs[places].T
        of_drug = _flat(self.drugs[drug], DRUG_LENGTH)
        of_protein = N_DRUG + _flat(self.proteins[protein], PROTEIN_LENGTH)
        ones = np.hstack([of_drug, of_protein])
        return torch.zeros(len(places), N_FEATURES).scatter_(1, torch.from_numpy(ones), 1.0)


def encode(strings: Iterable[str], symbols: str, length: int) -> Codes:
    """Return the places of the symbols of each string, ``(n, length)``.

    Strings are cut to ``length`` or padded with ``?``, for which every unknown symbol counts too.
    """
    table = np.full(256, symbols.index("?"), dtype=np.uint8)
    for code, symbol in enumerate(symbols):
        table[ord(symbol)] = code
    cut = (text[:length].ljust(length, "?").encode("ascii", "replace") for text in strings)
    return table[np.frombuffer(b"".join(cut), dtype=np.uint8)].reshape(-1, length)


def _flat(codes: Codes, length: int) -> Rows:
    return codes.astype(np.int64) * length + np.arange(length)


def _read_patents(path: Path, years: range) -> "pd.DataFrame":
    """Return drugs, proteins, targets and years of a file of TDC."""
    import pandas as pd

    wanted = ["Drug", "Target", "Y", "Year"]
    table = read_columns(path, wanted)[wanted]
    table = table.assign(Y=pd.to_numeric(table["Y"], errors="coerce"))
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
    proteins = table["Target"].astype(str).str.upper()
    return table.assign(Drug=table["Drug"].astype(str), Target=proteins)


def _read_json(path: Path, kind: type[T]) -> T:
    try:
        return read_json(expect(path), kind)
    except FileError as error:
        raise DataError(str(error)) from error


def _read_matrix(path: Path) -> Floats:
    try:
        return np.loadtxt(expect(path), ndmin=2)
    except ValueError as error:
        raise DataError(f"{path} must be a matrix of numbers: {error}.") from None

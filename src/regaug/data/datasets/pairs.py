"""Drugs and proteins, and how strongly they bind: Davis and KIBA."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._files import read_json
from regaug.data.base import Data, Info, Part, Rows, Rules, Split, as_float, check_split
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import find
from regaug.data.lazy import Lazy
from regaug.exceptions import DataError, DataNotFoundError, FileError

T = TypeVar("T")

# The symbols of TDC and DeepPurpose in the order of their codes, which is that of their one-hot
# encoder (sorted). "?" pads, and stands for every other symbol ("/", "\" and "@" among them).
DRUG_SYMBOLS = "#%()+-.0123456789=?ABCDEFGHIKLMNOPRSTUVWYZ[]_abcdefghilmnorstuy"
PROTEIN_SYMBOLS = "?ABCDEFGHIKLMNOPQRSTUVWXYZ"
DRUG_LENGTH, PROTEIN_LENGTH = 100, 1000
N_DRUG = len(DRUG_SYMBOLS) * DRUG_LENGTH
N_FEATURES = N_DRUG + len(PROTEIN_SYMBOLS) * PROTEIN_LENGTH

Codes = NDArray[np.uint8]


def load_davis(*, path: str | Path | None = None) -> "FoldedPairs":
    """Load the Davis kinase affinities: 68 drugs x 442 proteins, target pKd = 9 - log10(Kd / nM).

    Args:
        path: The folder ``dti_davis``; found as every data file if None.

    Returns:
        The data; a sample is the drug and the protein in one-hot code, 32,300 values.
    """
    folder = find(path, "dti_davis")
    name = "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt"
    kd = _read_matrix(folder / name)
    if not (kd > 0).all():
        raise DataError(
            f"{folder / name} must hold positive numbers and no missing ones, got {np.min(kd)}."
        )
    info = DATASETS["davis"].info
    return FoldedPairs(info, folder, 9 - np.log10(kd))


def load_kiba(*, path: str | Path | None = None) -> "FoldedPairs":
    """Load the KIBA scores: 118,254 pairs of 2,111 drugs and 229 proteins.

    Args:
        path: The folder ``dti_kiba``; found as every data file if None.

    Returns:
        The data; a sample is the drug and the protein in one-hot code, 32,300 values.
    """
    folder = find(path, "dti_kiba")
    info = DATASETS["kiba"].info
    return FoldedPairs(info, folder, _read_matrix(folder / "kiba_binding_affinity_v2.txt"))


class Pairs(Data):
    """Pairs of a drug and a protein; a subclass says how they are split."""

    def __init__(
        self, drugs: Codes, proteins: Codes, pairs: Rows, y: NDArray[np.float64], groups: Rows
    ) -> None:
        self._drugs, self._proteins, self._pairs, self._groups = drugs, proteins, pairs, groups
        self._y = as_float(y[:, None])

    def __len__(self) -> int:
        return len(self._y)

    def _part(self, rows: Rows) -> Part:
        x = OneHotPairs(self._drugs, self._proteins, self._pairs[rows])
        return Part(x, self._y[torch.from_numpy(rows)], rows, self._groups[rows])


class FoldedPairs(Pairs):
    """A matrix of drugs and proteins with DeepDTA's folds.

    A row is a place in the present entries of the matrix, taken row by row; the group of a pair
    is the number of its protein.

    Args:
        info: The facts.
        folder: Has ``ligands_can.txt``, ``proteins.txt`` and ``folds/``.
        affinity: Drugs x proteins in the order of the JSON files; NaN where a pair is missing.
    """

    def __init__(self, info: Info, folder: Path, affinity: NDArray[np.float64]) -> None:
        self.info = info
        drugs, proteins = (
            _read_json(folder / f"{name}.txt", dict) for name in ("ligands_can", "proteins")
        )
        if affinity.shape != (len(drugs), len(proteins)):
            raise DataError(
                f"The affinities in {folder} must be drugs x proteins, {len(drugs)} x "
                f"{len(proteins)} by its JSON files, got {affinity.shape}."
            )
        pairs = np.argwhere(~np.isnan(affinity))
        super().__init__(
            encode(list(drugs.values()), DRUG_SYMBOLS, DRUG_LENGTH),
            encode(list(proteins.values()), PROTEIN_SYMBOLS, PROTEIN_LENGTH),
            pairs,
            affinity[pairs[:, 0], pairs[:, 1]],
            pairs[:, 1],
        )
        test = _read_json(folder / "folds/test_fold_setting1.txt", list)
        train = _read_json(folder / "folds/train_fold_setting1.txt", list)
        self._test = np.array(test, dtype=np.int64)
        self._folds = [np.array(fold, dtype=np.int64) for fold in train]
        places = np.sort(np.concatenate([self._test, *self._folds]))
        if len(self._folds) < 2 or not np.array_equal(places, np.arange(len(pairs))):
            raise DataError(
                f"The folds in {folder / 'folds'} must hold each of the {len(pairs)} present pairs "
                f"once, in a test fold and at least two training folds, got {len(places)} places "
                f"in {1 + len(self._folds)} folds."
            )

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Test on the test fold, validate on a training fold, train on the others.

        The two protocols are the same.

        Args:
            seed: Training fold number ``seed % 5`` is the validation part.
            protocol: ``"tuned"`` or ``"paper"``.
        """
        chosen = check_split(seed, protocol) % len(self._folds)
        rest = [fold for number, fold in enumerate(self._folds) if number != chosen]
        return Split(
            train=self._part(np.concatenate(rest)),
            validation=self._part(self._folds[chosen]),
            test=self._part(self._test),
        )


class OneHotPairs(Lazy):
    """Pairs in one-hot code, written out when they are asked for.

    A sample is flat: drug symbols x 100 positions, then protein symbols x 1000 positions; so
    ``sample[:6300].view(63, 100)`` is the drug and ``sample[6300:].view(26, 1000)`` the protein.

    Args:
        drugs: Codes of the different drugs ``(n_drugs, 100)``.
        proteins: Codes of the different proteins ``(n_proteins, 1000)``.
        pairs: Numbers of drug and protein ``(n, 2)``.
    """

    def __init__(self, drugs: Codes, proteins: Codes, pairs: Rows) -> None:
        super().__init__(len(pairs), (N_FEATURES,))
        self.drugs, self.proteins, self.pairs = drugs, proteins, pairs

    def _read(self, place: int) -> Tensor:
        return self._stack(np.array([place]))[0]

    def _stack(self, places: Rows) -> Tensor:
        drug, protein = self.pairs[places].T
        ones = np.concatenate(
            [
                _flat(self.drugs[drug], DRUG_LENGTH),
                N_DRUG + _flat(self.proteins[protein], PROTEIN_LENGTH),
            ],
            axis=1,
        )
        return torch.zeros(len(places), N_FEATURES).scatter_(1, torch.from_numpy(ones), 1.0)


def encode(strings: Sequence[str], symbols: str, length: int) -> Codes:
    """Return the places of the symbols of each string.

    Args:
        strings: The strings; cut to ``length``, or padded with ``?``.
        symbols: The symbols in the order of their codes; any other counts as ``?``.
        length: Number of positions.

    Returns:
        Codes ``(n, length)``.

    Example:
        >>> encode(["ABBA", "A*"], "?AB", 3).tolist()
        [[1, 2, 2], [1, 0, 0]]
    """
    table = np.full(256, symbols.index("?"), dtype=np.uint8)
    for code, symbol in enumerate(symbols):
        table[ord(symbol)] = code
    cut = (text[:length].ljust(length, "?").encode("ascii", "replace") for text in strings)
    return table[np.frombuffer(b"".join(cut), dtype=np.uint8)].reshape(-1, length)


def _flat(codes: Codes, length: int) -> Rows:
    return codes.astype(np.int64) * length + np.arange(length)


def expect(path: Path) -> Path:
    """Return the path of a file that must be there."""
    if not path.is_file():
        raise DataNotFoundError(f"{path} is not here, and this data set needs it.")
    return path


def _read_json(path: Path, kind: type[T]) -> T:
    try:
        return read_json(expect(path), kind)
    except FileError as error:
        raise DataError(str(error)) from error


def _read_matrix(path: Path) -> NDArray[np.float64]:
    try:
        return np.loadtxt(expect(path), ndmin=2)
    except ValueError as error:
        raise DataError(f"{path} must be a matrix of numbers: {error}.") from None

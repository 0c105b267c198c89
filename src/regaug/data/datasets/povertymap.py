"""PovertyMap of WILDS: satellite images of African villages, and how wealthy they are."""

import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from torch import Tensor

from regaug._checks import check_choice
from regaug.data.base import Data, Part, Rows, Rules, Split, as_float, check_split
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import expect, find, read_columns
from regaug.data.lazy import Lazy
from regaug.exceptions import DataError, DataNotFoundError

if TYPE_CHECKING:
    import pandas as pd

Fold = Literal["A", "B", "C", "D", "E"]

# The countries of every fold's validation part; its test part is that of the fold before it.
HELD_OUT: dict[str, frozenset[str]] = {
    "A": frozenset({"benin", "burkina_faso", "guinea", "sierra_leone", "tanzania"}),
    "B": frozenset({"cameroon", "ghana", "malawi", "zimbabwe"}),
    "C": frozenset({"democratic_republic_of_congo", "mozambique", "nigeria", "togo", "uganda"}),
    "D": frozenset({"kenya", "lesotho", "senegal", "zambia"}),
    "E": frozenset({"angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda"}),
}
COUNTRIES = frozenset().union(*HELD_OUT.values())
_SHAPE = (8, 224, 224)
_SEED = 541433
_KEPT = 1000  # in-domain images in each of the two in-domain parts
_COLUMNS = ("wealthpooled", "country", "urban")
_URBAN = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def load_povertymap(fold: Fold = "A", *, path: str | Path | None = None) -> "PovertyMap":
    """Load PovertyMap (WILDS, version 1.1) from its folder ``poverty_v1.1``.

    ``fold`` says which countries are held out; the paper averages over all five. A sample is an
    image ``(8, 224, 224)`` with bands BLUE, GREEN, RED, SWIR1, SWIR2, TEMP1, NIR, NIGHTLIGHTS, the
    target an index of wealth.
    """
    check_choice("fold", fold, tuple(HELD_OUT))
    return PovertyMap(find(path, "poverty_v1.1"), fold=fold)


class PovertyMap(Data):
    """PovertyMap; ``load_povertymap`` returns one."""

    info = DATASETS["povertymap"].info

    def __init__(self, folder: Path, *, fold: Fold = "A") -> None:
        table = _read_metadata(folder)
        _check_images(folder / "images", len(table))
        self.fold = fold
        self._images = str(folder / "images")
        self.y = table["wealthpooled"].to_numpy(np.float64)[:, None]
        self._country = table["country"].to_numpy().astype(str)
        self.groups = np.where(table["urban"].to_numpy().astype(bool), "urban", "rural")

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split by the rule of WILDS: train in some countries, validate and test in others.

        ``more`` has ``"id-validation"`` and ``"id-test"``: 1,000 images each from the countries of
        the training part. The fold decides; the seed has no effect, nor has the protocol.
        """
        check_split(seed, protocol)
        before = "EABCD"["ABCDE".index(self.fold)]
        validation = np.isin(self._country, sorted(HELD_OUT[self.fold]))
        test = np.isin(self._country, sorted(HELD_OUT[before]))
        inside = np.flatnonzero(~validation & ~test)
        if len(inside) <= 2 * _KEPT:
            raise DataError(
                f"dhs_metadata.csv must have more than {2 * _KEPT} rows outside the held-out "
                f"countries of fold {self.fold}, got {len(inside)}: nothing is left to train on."
            )
        np.random.default_rng(ord(self.fold) + _SEED).shuffle(inside)
        dealt = np.split(inside, [_KEPT, 2 * _KEPT])
        id_validation, id_test, train = (self._part(np.sort(rows)) for rows in dealt)
        return Split(
            train,
            validation=self._part(np.flatnonzero(validation)),
            test=self._part(np.flatnonzero(test)),
            more={"id-validation": id_validation, "id-test": id_test},
        )

    def _part(self, rows: Rows) -> Part:
        return self._samples(SatelliteImages(self._images, rows), rows)


class SatelliteImages(Lazy):
    """Satellite images, ``.npz`` files of a folder, that are read when they are asked for."""

    def __init__(self, folder: str, rows: Rows) -> None:
        super().__init__(len(rows), _SHAPE)
        self.folder, self.rows = folder, rows

    def _read(self, place: int) -> Tensor:
        path = Path(self.folder, _image(self.rows[place]))
        try:
            with np.load(path, allow_pickle=False) as arrays:
                image = arrays["x"]
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(f"{path} must be an .npz file with an array 'x': {error}.") from None
        if image.shape != _SHAPE:
            raise DataError(f"'x' in {path} must have shape {_SHAPE}, got {image.shape}.")
        return as_float(image)


def _image(row: int) -> str:
    return f"landsat_poverty_img_{row}.npz"


def _read_metadata(folder: Path) -> "pd.DataFrame":
    """Return the three columns that are used, checked."""
    import pandas as pd

    needed = "RELEASE_v1.1.txt, dhs_metadata.csv and images/landsat_poverty_img_<i>.npz"
    for name in ("RELEASE_v1.1.txt", "dhs_metadata.csv", "images"):
        expect(folder / name, f". PovertyMap needs {needed} in its folder.")
    table = read_columns(folder / "dhs_metadata.csv", _COLUMNS)
    unknown = sorted(set(table["country"].astype(str)) - COUNTRIES)
    if unknown:
        raise DataError(
            f"`country` in dhs_metadata.csv must be one of {', '.join(sorted(COUNTRIES))}, "
            f"got {unknown[0]!r}."
        )
    wealth = pd.to_numeric(table["wealthpooled"], errors="coerce")
    urban = table["urban"].astype(str).str.lower().map(_URBAN)
    for name, column in (("wealthpooled", wealth), ("urban", urban)):
        if column.isna().any():
            line = int(column.isna().to_numpy().argmax())
            raise DataError(
                f"`{name}` in dhs_metadata.csv must be a {'number' if column is wealth else 'flag'}"
                f" in every row, got {table[name].iloc[line]!r} in row {line}."
            )
    return table.assign(wealthpooled=wealth, urban=urban)[list(_COLUMNS)]


def _check_images(folder: Path, n: int) -> None:
    # One listing of the folder; asking for each of 19,669 files would be slow on a network disk.
    present = {name for name in os.listdir(folder) if name.endswith(".npz")}
    missing = [row for row in range(n) if _image(row) not in present]
    if missing:
        raise DataNotFoundError(
            f"{folder / _image(missing[0])} is not here: dhs_metadata.csv has {n} rows, and "
            f"{len(missing)} of their images are missing."
        )
    if len(present) > n:
        raise DataError(
            f"dhs_metadata.csv must have a row per image, got {n} rows and {len(present)} images."
        )

"""Where data files are found, and where they come from."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regaug.data.datasets.download import LIMIT, download
from regaug.exceptions import DataError, DataNotFoundError

_GITHUB = "https://raw.githubusercontent.com"
_SERIES = f"{_GITHUB}/laiguokun/multivariate-time-series-data"
_SERIES += "/7f402f185cc2435b5e66aed13a3b560ed142e023"
_CRIMES = f"{_GITHUB}/HanaSturlan/Communities-and-Crime-Data-Set"
_CRIMES += "/109972458a21f35e4973bd559cde88ca750a8d85"
_ETT = f"{_GITHUB}/zhouhaoyi/ETDataset/1d16c8f4f943005d613b5bc962e9eeb06058cf07/ETT-small"
_DEEPDTA = f"{_GITHUB}/hkmztrk/DeepDTA/a546a8433a6822e958f36171c4356ad6f414d623/data"
_FASHION = f"{_GITHUB}/zalandoresearch/fashion-mnist"
_FASHION += "/b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion"
_DEBIAN = "/usr/share/datasets/fashion-mnist"


@dataclass(frozen=True)
class File:
    """A known file.

    Attributes:
        checks: Kind of checksum to digest, as :func:`~regaug.data.datasets.download.download` takes
            them.
        address: Where it is fetched from; None if it cannot be.
        size: Its bytes, where they are known.
        by_hand: How to get it without this library, in a sentence.
        elsewhere: A path that a package of the system gives it.
    """

    checks: Mapping[str, str]
    address: str | None = None
    size: int | None = None
    by_hand: str = ""
    elsewhere: str | None = None


def _known(sha256: str, size: int, address: str | None = None, *, by_hand: str = "") -> File:
    return File({"sha256": sha256}, address, size, by_hand)


def _fashion(name: str, md5: str) -> File:
    by_hand = "On Debian: apt-get install dataset-fashion-mnist."
    return File({"md5": md5}, f"{_FASHION}/{name}", None, by_hand, f"{_DEBIAN}/{name}")


_EXCERPT = "It is an excerpt of electricity/electricity.txt.gz, which can be fetched whole."

FILES: Mapping[str, File] = {
    "airfoil/airfoil_self_noise.dat": File(
        {
            "sha256": "74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3",
            "sha1": "76e5be1548fd8222e5074cf0faae75edff8cf93f",
        },
        "https://d2l-data.s3-accelerate.amazonaws.com/airfoil_self_noise.dat",
        59_984,
    ),
    "crimes/communities.data": _known(
        "09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",
        1_102_815,
        f"{_CRIMES}/communities.data",
    ),
    "crimes/communities.names": _known(
        "d4c5560c798d2c723d4455cdea7c87be59a10327dee20ef175a17eaea1445827",
        27_173,
        by_hand="Take it from UCI dataset 183, Communities and Crime.",
    ),
    "dti_davis/drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt": _known(
        "e2c3d003d49aff61f70be24feafd8d084b0df9404d919338088855828e252d88",
        164_306,
        f"{_DEEPDTA}/davis/drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt",
    ),
    "dti_davis/folds/test_fold_setting1.txt": _known(
        "c97589fa2fae318b01870854af0ab6fdd155dd38524cc6ac1d0319418ac6d568",
        33_252,
        f"{_DEEPDTA}/davis/folds/test_fold_setting1.txt",
    ),
    "dti_davis/folds/train_fold_setting1.txt": _known(
        "bb7a63b2178c40a4e2417bc701b95511407787fa5eabb6a43a695fe6bd722f56",
        166_040,
        f"{_DEEPDTA}/davis/folds/train_fold_setting1.txt",
    ),
    "dti_davis/ligands_can.txt": _known(
        "141094d99510a52091d2ea1b05be7c1f66b2c5fcaeeeb261eaf4cbf2128bde6d",
        5_306,
        f"{_DEEPDTA}/davis/ligands_can.txt",
    ),
    "dti_davis/ligands_iso.txt": _known(
        "58b3cd168ed12962eb856e4e4e5dab1abbd42d6c0912eed2b9987bf578c7fafd",
        5_452,
        f"{_DEEPDTA}/davis/ligands_iso.txt",
    ),
    "dti_davis/proteins.txt": _known(
        "187cedeee10cd3b58af915a2861a5ed0c4ff42a2d728f4dea5e0b47e3d75b291",
        355_211,
        f"{_DEEPDTA}/davis/proteins.txt",
    ),
    "dti_kiba/folds/test_fold_setting1.txt": _known(
        "92801eec2caddf950235c6c6a46d999d2eeeaa6d35cbeffd68c72a5cf54b208d",
        139_047,
        f"{_DEEPDTA}/kiba/folds/test_fold_setting1.txt",
    ),
    "dti_kiba/folds/train_fold_setting1.txt": _known(
        "da74eeeb2c3e7d52a2fd6daac0dc105bba097c222337230eec69d9fd7e1c301e",
        695_885,
        f"{_DEEPDTA}/kiba/folds/train_fold_setting1.txt",
    ),
    "dti_kiba/kiba_binding_affinity_v2.txt": _known(
        "0b062d3f51e80b63acda95bcc6364cacafa744d1dcd2d97293ccc878540b5732",
        2_864_308,
        f"{_DEEPDTA}/kiba/kiba_binding_affinity_v2.txt",
    ),
    "dti_kiba/ligands_can.txt": _known(
        "a95797abaf31b17bd2471dbf3e3476f588d5a79797903cc156528f66e55c963b",
        165_908,
        f"{_DEEPDTA}/kiba/ligands_can.txt",
    ),
    "dti_kiba/proteins.txt": _known(
        "2ba9dbc2959d88b0740aaf28828c4c611c2dbd1c2019547eb2ec1c3daa192604",
        170_137,
        f"{_DEEPDTA}/kiba/proteins.txt",
    ),
    "electricity/electricity.txt.gz": File(
        {"gitblob": "df158a9fff65428ece107200432a72c992d5e4e9"},
        f"{_SERIES}/electricity/electricity.txt.gz",
    ),
    "electricity/electricity_26304rows_2of321.csv": _known(
        "20a7ef13dda01992b2db40760338f0be0eb5039e2a4c33f56953d4196a21392d",
        611_381,
        by_hand=_EXCERPT,
    ),
    "electricity/electricity_first1000rows_203of321.csv": _known(
        "aaefecee23313ce369d53b8f6bac69dcc688e7f86e93c44c3411e1ecf526987d",
        871_259,
        by_hand=_EXCERPT,
    ),
    "etth1/ETTh1.csv": _known(
        "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
        2_589_657,
        f"{_ETT}/ETTh1.csv",
    ),
    "exchange_rate/exchange_rate.txt.gz": _known(
        "6a4fbb561dcdee43f071a83badbeec9223a335552278348656738b556f1c2e9d",
        177_142,
        f"{_SERIES}/exchange_rate/exchange_rate.txt.gz",
    ),
    "fashion_mnist/train-images-idx3-ubyte.gz": _fashion(
        "train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"
    ),
    "fashion_mnist/train-labels-idx1-ubyte.gz": _fashion(
        "train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"
    ),
    "fashion_mnist/t10k-images-idx3-ubyte.gz": _fashion(
        "t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"
    ),
    "fashion_mnist/t10k-labels-idx1-ubyte.gz": _fashion(
        "t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"
    ),
    "no2/547_no2.tsv.gz": _known(
        "e116f24d2cabc7388a0714f1d0bf3a85f7613e3fc2b88642c47154fece000c73",
        15_471,
        "https://github.com/EpistasisLab/pmlb/raw/master/datasets/547_no2/547_no2.tsv.gz",
    ),
    "skillcraft/SkillCraft1_Dataset.csv": _known(
        "84f913e1af3ddd4dd29d82c33d54c0579ca4a0a71cd5ff865372d26b2533112e",
        500_257,
        by_hand="Take it from the zip of UCI dataset 272, SkillCraft1 Master Table.",
    ),
}

# Folders that nobody but the user can get: path to how.
FOLDERS: Mapping[str, str] = {
    "dti_dg_group/bindingdb_patent": (
        "Get BindingDB_Patent of the DTI_DG_Group from Therapeutics Data Commons (on Harvard "
        "Dataverse): train_val.csv and test.csv."
    ),
    "echonet": (
        "Sign Stanford AIMI's research use agreement for EchoNet-Dynamic and download it: "
        "FileList.csv, VolumeTracings.csv and the folder Videos."
    ),
    "poverty_v1.1": (
        "Download PovertyMap 1.1 of WILDS (13 GB, from CodaLab): dhs_metadata.csv and the folder "
        "images."
    ),
}


def locate(relative: str, *, fetch: bool = True) -> Path:
    """Find a data file or folder, or fetch it.

    Looks in the folder that ``REGAUG_DATA`` names, in the cache (``REGAUG_CACHE``, or the folder
    the system has for caches), where a package of the system puts it, and then at its address. What
    is fetched is verified; what is found is the user's own and taken as it is.

    Args:
        relative: Its path, such as ``"airfoil/airfoil_self_noise.dat"`` or ``"dti_davis"``; the
            known ones are in ``FILES`` and ``FOLDERS``, others are looked for too.
        fetch: Whether it may be downloaded.
    """
    own = data_folder()
    if own and (own / relative).exists():
        return own / relative
    cache, file = cache_folder(), FILES.get(relative)
    wanted = [name for name, known in FILES.items() if known.address and _is_in(name, relative)]
    missing = [name for name in wanted if not (cache / name).is_file()]
    if not missing and (cache / relative).exists():
        return cache / relative
    if file and file.elsewhere and Path(file.elsewhere).is_file():
        return Path(file.elsewhere)
    if not fetch or not missing:
        raise DataNotFoundError(f"{relative} is not on this machine. {by_hand(relative)}")
    for name in missing:
        _fetch(name, cache / name)
    return cache / relative


def data_folder() -> Path | None:
    """Return the folder that ``REGAUG_DATA`` names, if it does."""
    folder = os.environ.get("REGAUG_DATA")
    return Path(folder).expanduser() if folder else None


def cache_folder() -> Path:
    """Return the folder that fetched files are kept in."""
    folder = os.environ.get("REGAUG_CACHE")
    if folder:
        return Path(folder).expanduser()
    import pooch

    return Path(pooch.os_cache("regaug")).expanduser()


def by_hand(relative: str) -> str:
    """Say how to get a file or folder without this library, and where to put it."""
    own, ways = data_folder(), [way for known, way in FOLDERS.items() if _is_in(relative, known)]
    for name, file in FILES.items():
        if _is_in(name, relative):
            inner = name.removeprefix(relative)  # empty for a file
            if file.address:
                ways.append(f"Download {file.address.removesuffix(inner)} by hand.")
            if file.by_hand:
                ways.append(file.by_hand)
    where = f"Put it at {relative} in a folder of your choice and set REGAUG_DATA to that folder"
    now = f" (now {own}{'' if own.is_dir() else ', which is no folder'})" if own else ""
    return f"{' '.join(dict.fromkeys([*ways, where]))}{now}."


def _is_in(relative: str, folder: str) -> bool:
    return relative == folder or relative.startswith(folder.rstrip("/") + "/")


def _fetch(relative: str, target: Path) -> None:
    file = FILES[relative]
    try:
        download(str(file.address), target, checks=file.checks, limit=file.size or LIMIT)
    except (DataNotFoundError, DataError) as error:
        raise type(error)(f"{error} {by_hand(relative)}") from error


def find(path: str | Path | None, relative: str) -> Path:
    """Return ``path`` if it is given and exists, and where ``relative`` is found otherwise."""
    if path is None:
        return locate(relative)
    if not Path(path).exists():
        raise DataNotFoundError(f"`path` must be an existing file or folder, got {str(path)!r}.")
    return Path(path)

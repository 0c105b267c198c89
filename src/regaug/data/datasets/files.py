"""Where data files are found, and where they come from."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regaug.data.datasets.download import LIMIT, download
from regaug.data.datasets.facts import FILES, FOLDERS
from regaug.exceptions import DataError, DataNotFoundError

if TYPE_CHECKING:
    import pandas as pd


def locate(relative: str, *, fetch: bool = True) -> Path:
    """Find a data file or folder, or fetch it.

    Looks in the folder that ``REGAUG_DATA`` names, in the cache (``REGAUG_CACHE``, or the folder
    the system has for caches), where a package of the system puts it, and then at its address. What
    is fetched is verified; what is found is the user's own and taken as it is. ``relative`` is its
    path, such as ``"airfoil/airfoil_self_noise.dat"`` or ``"dti_davis"``; those that are not in
    ``FILES`` and ``FOLDERS`` are looked for too.
    """
    own = data_folder()
    if own and (own / relative).exists():
        return own / relative
    cache, file = cache_folder(), FILES.get(relative)
    missing = [name for name in fetchable(relative) if not (cache / name).is_file()]
    if not missing and (cache / relative).exists():
        return cache / relative
    if file and file.elsewhere and Path(file.elsewhere).is_file():
        return Path(file.elsewhere)
    if not fetch or not missing:
        raise DataNotFoundError(f"{relative} is not on this machine. {by_hand(relative)}")
    for name in missing:
        known = FILES[name]
        try:
            limit = known.size or LIMIT
            download(str(known.address), cache / name, checks=known.checks, limit=limit)
        except (DataNotFoundError, DataError) as error:
            raise type(error)(f"{error} {by_hand(name)}") from error
    return cache / relative


def fetchable(relative: str) -> list[str]:
    """Return the files that can be fetched among a file, or those of a folder."""
    return [name for name, known in FILES.items() if known.address and _is_in(name, relative)]


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


def find(path: str | Path | None, relative: str) -> Path:
    """Return ``path`` if it is given and exists, and where ``relative`` is found otherwise."""
    if path is None:
        return locate(relative)
    if not Path(path).exists():
        raise DataNotFoundError(f"`path` must be an existing file or folder, got {str(path)!r}.")
    return Path(path)


def expect(path: Path, hint: str = ", and this data set needs it.") -> Path:
    """Return the path of what must be there."""
    if not path.exists():
        raise DataNotFoundError(f"{path} is not here{hint}")
    return path


def read_columns(path: Path, columns: Sequence[str], **types: type) -> "pd.DataFrame":
    """Read a CSV file that must have these columns, some of them of a given type."""
    import pandas as pd

    table = pd.read_csv(expect(path), dtype=types)
    if not set(columns) <= set(table.columns):
        found = ", ".join(map(str, table.columns))
        raise DataError(f"{path} must have the columns {', '.join(columns)}, got {found}.")
    return table

"""A model as a folder: written at once, and read as data that nobody vouches for."""

import os
from collections.abc import Mapping
from pathlib import Path

from regaug import _files
from regaug._files import entry
from regaug._version import __version__
from regaug.ensemble.contents import Contents
from regaug.exceptions import CheckpointError, DataError, FileError, RegaugError
from regaug.training.state import pack, unpack

FORMAT, VERSION = "regaug-ensemble", 3
JSON, TENSORS = "model.json", "model.safetensors"


def write_model(model: Contents, folder: Path) -> None:
    """Write a model so that ``folder`` holds all of it or is as before."""
    write_state(folder, model.to_state())


def read_model(folder: Path) -> Contents:
    """Read a model, or say in a ``CheckpointError`` why it cannot be used."""
    state = read_state(folder)
    try:
        return Contents.from_state(state)
    except RegaugError as error:
        raise _unusable(folder, str(error)) from error


def write_state(folder: Path, state: Mapping[str, object]) -> None:
    """Write what a model consists of as the two files of a folder."""
    if folder.is_dir() and (others := sorted(set(os.listdir(folder)) - {JSON, TENSORS})):
        raise CheckpointError(  # it would be lost
            f"Could not write the model {folder}: the folder holds something else ({others[0]}). "
            "Choose a folder of its own."
        )
    tree, tensors = pack("state", state)
    content, checksum = _files.dump_tensors(tensors, {})
    head = {"format": FORMAT, "version": VERSION, "regaug": __version__, "tensors": checksum}
    try:
        _files.write_folder(folder, {TENSORS: content, JSON: _files.seal({**head, "state": tree})})
    except FileError as error:
        raise CheckpointError(str(error)) from error


def read_state(folder: Path) -> dict[str, object]:
    """Return what :func:`write_state` wrote, after checking that it is undamaged."""
    folder = _files.find_folder(folder)
    for name in (JSON, TENSORS):
        if not (folder / name).is_file():
            raise CheckpointError(f"There is no model in {folder}: the file {name} is missing.")
    try:
        document = _files.read_json(folder / JSON, dict)
        if document.get("format") != FORMAT:
            raise DataError(f"`{JSON}` must have the format {FORMAT!r}.")
        version = entry(document, "version", int)
        if version < VERSION:  # which lacks what this one says of the rows put aside
            raise _unusable(folder, f"it has format {version}, and this one reads {VERSION}.")
        _files.check_format(folder / JSON, version, VERSION, document.get("regaug"))
        tensors, about = _files.read_tensors(folder / TENSORS)
        is_intact = _files.is_sealed((folder / JSON).read_bytes())
        if not is_intact or document.get("tensors") != about["tensors"]:
            raise DataError(f"`{JSON}` must fit {TENSORS}.")
        return unpack(document.get("state"), tensors)
    except FileError as error:
        raise CheckpointError(f"{error} Fit the model again.") from error
    except DataError as error:
        raise _unusable(folder, str(error)) from error


def _unusable(folder: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"Cannot use the model {folder}: {reason} It was changed after it was written, or "
        "written by another version of regaug. Fit it again."
    )

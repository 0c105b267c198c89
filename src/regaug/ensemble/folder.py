"""A model as a folder: written at once, and read as data that nobody vouches for."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regaug import _files, _tensors
from regaug._files import entry
from regaug._outputs import Output
from regaug._regular import read_regular
from regaug._version import __version__
from regaug.ensemble.contents import Contents
from regaug.ensemble.probe import check_predictions
from regaug.exceptions import CheckpointError, DataError, FileError, RegaugError
from regaug.training.state import pack, unpack

FORMAT, VERSION = "regaug-ensemble", 3
JSON, TENSORS = "model.json", "model.safetensors"


def model_output(
    folder: str | Path,
    *,
    inputs: Sequence[str | Path] = (),
    force: bool = False,
    name: str = "folder",
) -> Output:
    """Say whether a model may be written to a folder: a new one, or one that holds a model."""
    rules = {"holds": (JSON, TENSORS), "is_own": is_model, "force": force, "name": name}
    return Output(Path(folder), inputs, **rules)  # type: ignore[arg-type]


def is_model(folder: Path) -> bool:
    """Tell whether regaug has written the model in a folder; it may be damaged."""
    try:
        return _files.read_json(folder / JSON, dict).get("format") == FORMAT
    except FileError:
        return False


def write_model(model: Contents, folder: Path, *, force: bool = False) -> None:
    """Write a model so that ``folder`` holds all of it or is as before."""
    write_state(model_output(folder, force=force).path, model.to_state())


def read_model(folder: Path) -> Contents:
    """Read a model, or say in a ``CheckpointError`` why it cannot be used."""
    state = read_state(folder)
    try:
        model = Contents.from_state(state)
        check_predictions(model)
        return model
    except RegaugError as error:
        raise _unusable(folder, str(error)) from error


def write_state(folder: Path, state: Mapping[str, object]) -> None:
    """Write what a model consists of as the two files of a folder."""
    tree, tensors = pack("state", state)
    content, checksum = _tensors.dump_tensors(tensors, {})
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
        tensors, about = _tensors.read_tensors(folder / TENSORS)
        is_intact = _files.is_sealed(read_regular(folder / JSON))
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

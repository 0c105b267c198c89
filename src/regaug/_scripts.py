"""Python files of the user's own: imported by path, here and in workers, and blamed by line."""

import linecache
import os
import socket
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getmodule
from multiprocessing import current_process
from pathlib import Path
from traceback import FrameSummary, extract_tb
from types import ModuleType

from regaug._registry import unknown
from regaug.exceptions import RegaugError, ScriptError, UnknownNameError

ENDING = ".py"
# Places in the user's files that an error lists; of more the last ones, where it happened.
_SHOWN = 4
_imported: dict[str, ModuleType] = {}  # by path
# Where what is installed lies: inside of a project's folder, perhaps.
_INSTALLED = ("site-packages", "dist-packages")


def is_script(source: str) -> bool:
    """Tell whether a user means a Python file, or something in it.

    Example:
        >>> is_script("studies/cnn.py:problem"), is_script("cnn.py"), is_script("houses.csv")
        (True, True, False)
    """
    return part_source(source)[0].endswith(ENDING)


def part_source(source: str) -> tuple[str, str]:
    """Return the file and the name in it, empty if none is given.

    Example:
        >>> part_source("cnn.py:problem"), part_source("cnn.py")
        (('cnn.py', 'problem'), ('cnn.py', ''))
    """
    path, colon, name = source.rpartition(":")
    return (path, name) if colon and path.endswith(ENDING) else (source, "")


def find_in_script(path: str | Path, name: str) -> object:
    """Return what a Python file calls so; the file is imported once.

    Raises:
        UnknownNameError: There is no such file, or nothing in it that is called so.
        ScriptError: The file itself fails; the error says in which line.
    """
    module = import_script(path)
    if hasattr(module, name):
        return getattr(module, name)
    own = [key for key, value in vars(module).items() if _is_own(module, key, value)]
    raise UnknownNameError(f"{_shown(path)}: {unknown('name', name, own)}")


def import_script(path: str | Path) -> ModuleType:
    """Import a Python file by its path, whatever it is called; what lies beside it can be imported.

    What it prints goes to the standard error: the standard output is for results.
    """
    file = Path(path).expanduser().resolve()
    if str(file) in _imported:
        return _imported[str(file)]
    if not file.is_file():
        raise UnknownNameError(f"There is no file {str(path)!r}.")
    # No name that a library may have too; the same one in every process.
    name = f"_regaug_{file.stem}_{zlib.crc32(str(file).encode()):08x}"
    spec = spec_from_file_location(name, file, loader=SourceFileLoader(name, str(file)))
    if spec is None or spec.loader is None:
        raise UnknownNameError(f"{str(path)!r} is no Python file.")
    module = module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    # Before it runs: it may look itself up, and its lines are to be blamed.
    sys.modules[name] = _imported[str(file)] = module
    try:
        with blaming(), redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name], _imported[str(file)]
        raise
    return module


class ImportedScripts:
    """The files that this process has imported; another process that is sent this imports them.

    It must be sent before what they define.
    """

    def __reduce__(self) -> tuple[Callable[..., object], tuple[list[str]]]:
        return _import_all, (list(_imported),)


def _import_all(paths: list[str]) -> ImportedScripts:
    for path in paths:
        if not os.path.isfile(path):
            raise ScriptError(
                f"There is no file {path} on {socket.gethostname()}, where a worker needs it. Put "
                "the file there, or into a folder that all machines have."
            )
        # In a worker that is just being made: what the user's code prints there is no result.
        if path not in _imported and getattr(current_process(), "_inheriting", False):
            sys.stdout = sys.stderr
        import_script(path)
    return ImportedScripts()


@contextmanager
def blaming() -> Iterator[None]:
    """Turn an error in a user's file into one that shows the file, the line and the code.

    An error that has passed no line of an imported file stays what it is.
    """
    try:
        yield
    except ScriptError:
        raise
    except (Exception, SystemExit) as error:
        if (words := _explain(error)) is None:
            raise
        raise ScriptError(words) from error


def is_blamed(error: BaseException) -> bool:
    """Tell whether an error has passed a line of a user's file."""
    return _explain(error) is not None


def _explain(error: BaseException) -> str | None:
    """Say what has failed, and where in the files of the user; None if nowhere there."""
    folders = [os.path.dirname(path) for path in _imported]
    frames = [own for own in extract_tb(error.__traceback__) if _is_users(own.filename, folders)]
    if isinstance(error, SyntaxError) and error.filename and _is_users(error.filename, folders):
        frames.append(FrameSummary(error.filename, error.lineno, "", line=(error.text or "")))
    if not frames:
        return None
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        what = f"{type(error).__name__}: {error.msg}"
    if isinstance(error, RegaugError):
        what = str(error)
    lines = [f"{_shown(frames[-1].filename)} failed: {what}"]
    for own in frames[-_SHOWN:]:
        inside = f", in {own.name}" if own.name not in ("", "<module>") else ""
        lines.append(f"  {_shown(own.filename)}, line {own.lineno}{inside}")
        code = own.line or linecache.getline(own.filename, own.lineno or 0)
        lines += [f"    {code.strip()}"] if code.strip() else []
    return "\n".join(lines)


def _is_users(filename: str, folders: list[str]) -> bool:
    """Tell whether a file is one that was imported, or lies beside or below one."""
    if filename.startswith("<"):  # no file, such as what Python itself imports with
        return False
    path = os.path.abspath(filename)
    if path in _imported:
        return True
    if path.startswith((os.path.dirname(__file__) + os.sep, sys.base_prefix + os.sep)):
        return False
    is_beside = any(path.startswith(os.path.join(folder, "")) for folder in folders)
    return is_beside and not any(name in Path(path).parts for name in _INSTALLED)


def _is_own(module: ModuleType, name: str, value: object) -> bool:
    """Tell whether a file defines something that a user may have meant, and has not imported it."""
    if name.startswith("_") or isinstance(value, ModuleType | type):
        return False
    return not callable(value) or getmodule(value) is module


def _shown(path: str | Path) -> str:
    """Return a path as short as it can be typed here."""
    path = str(path)
    here = os.path.join(os.getcwd(), "")
    return path.removeprefix(here)

"""The errors this library raises; each is also the built-in error a caller would expect."""


class RegaugError(Exception):
    """Base of every error raised on purpose by regaug."""


class ArgumentError(RegaugError, ValueError):
    """An argument has a value that cannot be used."""


class ArgumentTypeError(RegaugError, TypeError):
    """An argument has the wrong type or dtype."""


class NonFiniteError(ArgumentError):
    """A tensor holds NaN or infinity."""


class UnknownNameError(RegaugError, LookupError, ValueError):
    """A name is not among those that exist."""


class NotFittedError(RegaugError, RuntimeError):
    """Something must be fitted on the training rows first."""


class PlaceError(RegaugError, RuntimeError):
    """An augmentation cannot act at the layer it was asked to act at."""


class TooFewPointsError(ArgumentError):
    """There are too few different points for an estimate."""


class DataNotFoundError(RegaugError, FileNotFoundError):
    """A data file is not on this machine and cannot be fetched."""


class DataError(RegaugError, ValueError):
    """A data file or table is not what it should be."""


class MissingExtraError(RegaugError, ImportError):
    """A package is needed that is installed with an extra of this one."""


class FileError(RegaugError, OSError):
    """A file cannot be written or read, or does not hold what was written."""


class OverwriteError(FileError, FileExistsError):
    """Something of the user's would be written over."""


class CheckpointError(RegaugError, RuntimeError):
    """A saved state cannot be written, cannot be read, or belongs to something else."""


class StoreError(RegaugError, RuntimeError):
    """The store of a study cannot be written, cannot be read, or belongs to another study."""


class ScriptError(RegaugError, RuntimeError):
    """A Python file of the user's own has failed; the message shows the line."""


class ContractError(RegaugError, AssertionError):
    """An augmentation, a sampler or a method of one's own does not do all that it must."""


class DivergedError(RegaugError, ArithmeticError):
    """A training's loss became NaN or infinite."""

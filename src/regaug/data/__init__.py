"""Data: the user's own tables, and data sets by name."""

from regaug.data.base import Data, Info, Part, Split
from regaug.data.named import NAMES, fetch, info, load, where
from regaug.data.scaling import Scaler, standardise
from regaug.data.table import read_table

__all__ = [
    "NAMES",
    "Data",
    "Info",
    "Part",
    "Scaler",
    "Split",
    "fetch",
    "info",
    "load",
    "read_table",
    "standardise",
    "where",
]

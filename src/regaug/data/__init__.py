"""Data: the user's own tables, and data sets by name."""

from regaug.data.arrays import ArrayData
from regaug.data.base import Data, Info, Part, Split
from regaug.data.datasets.facts import Named
from regaug.data.datasets.named import NAMES, fetch, info, load, register, where
from regaug.data.partition import split_dataset
from regaug.data.scaling import Scaler, standardize
from regaug.data.tabular.table import read_table

__all__ = [
    "NAMES",
    "ArrayData",
    "Data",
    "Info",
    "Named",
    "Part",
    "Scaler",
    "Split",
    "fetch",
    "info",
    "load",
    "read_table",
    "register",
    "split_dataset",
    "standardize",
    "where",
]

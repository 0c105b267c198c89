"""What is to be learned and how it is judged: splits, a network and a metric."""

from regaug.problems.cost import Cost
from regaug.problems.networks import NETWORKS, MakeNet
from regaug.problems.problem import MOST_ROWS, Kind, Problem, make_lightning
from regaug.problems.sequences import LoadedSplits, RepeatedSplits

__all__ = [
    "MOST_ROWS",
    "NETWORKS",
    "Cost",
    "Kind",
    "LoadedSplits",
    "MakeNet",
    "Problem",
    "RepeatedSplits",
    "make_lightning",
]

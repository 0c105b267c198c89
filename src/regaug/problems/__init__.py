"""What is to be learned and how it is judged: splits, a network and a metric."""

from regaug.problems.cost import Cost
from regaug.problems.kinds import Kind
from regaug.problems.networks import NETWORKS, MakeNet
from regaug.problems.problem import Problem
from regaug.problems.sequences import LoadedSplits, RepeatedSplits
from regaug.problems.sources import FEWEST_ROWS, MOST_NUMBERS, MOST_ROWS, make_lightning

__all__ = [
    "FEWEST_ROWS",
    "MOST_NUMBERS",
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

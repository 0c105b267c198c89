"""The paper's data sets as problems: their splits, their networks, their metrics.

What is not on this disk has a stand-in where there is one, and says so wherever it is shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from regaug import _random
from regaug._registry import lookup
from regaug.data import load
from regaug.data.arrays import ArrayData
from regaug.data.base import Data, Part, Rules, Split
from regaug.data.datasets.files import data_folder, locate
from regaug.data.datasets.named import how, is_here
from regaug.data.datasets.pairs import Pairs
from regaug.data.datasets.series import load_electricity
from regaug.data.scaling import StandardizedSplit
from regaug.data.splits import ThreeParts, group_split, random_split
from regaug.exceptions import DataNotFoundError
from regaug.models import MLP
from regaug.problems import NETWORKS, Cost, LoadedSplits, MakeNet, Problem
from regaug.reproduction.recipes import metric_of

# "time" is "paper" with a few validation rows: what is timed is the training.
Protocol = Literal["paper", "tuned", "time"]
ELECTRICITY, DAVIS = "electricity-1000x203", "davis-by-protein"
_CLIENTS = "electricity/electricity_first1000rows_203of321.csv"
_DOMAINS = 8  # groups of proteins in davis, the last quarter of them for the test
_FEW = 32  # validation rows beside what is timed
# Of what is no table.
_COSTS = {
    "exchange-rate": Cost(1.2e-2, 8e-4),
    "electricity": Cost(1e-2, 4e-3),
    ELECTRICITY: Cost(1e-2, 5e-3),
    "rcf-mnist": Cost(3e-2, 7e-3),
    DAVIS: Cost(2e-2, 1e-2),
    "dti": Cost(2e-2, 1e-2),
    "povertymap": Cost(5e-2, 0.5),
    "echo": Cost(0.5, 5.0),
}


@dataclass(frozen=True)
class PaperData:
    """One of the paper's data sets by its name there: itself, or what stands in for it here."""

    name: str
    what: str
    note: str = ""  # what a reader of a table must know
    model: MakeNet | None = None  # None for tables, whose runs are stacked
    rows: int | None = None  # training samples at most, and half as many of each other part

    @property
    def is_table(self) -> bool:
        """Whether it has many splits, and nets that are small."""
        return self.model is None

    def problem_name(self, protocol: Protocol) -> str:
        """Return what its runs know the problem by."""
        return f"{self.what}/{protocol}"

    def problem(self, protocol: Protocol, splits: int = 1) -> Problem:
        """Return the problem; its targets are raw in the paper's protocol, else standardized."""
        return Problem(
            LoadedSplits(partial(_split, self.what, protocol, self.rows), splits),
            make_table_net if self.is_table and protocol == "time" else self.model,
            metric_of(self.name),
            name=self.problem_name(protocol),
            is_scaled=protocol != "tuned",
            # Of data with one split only the seeds differ, and share no training to be undone.
            independent=not self.is_table,
            hidden=(128, 128),
            notes=[self.note] if self.note else [],
            cost=_COSTS.get(self.what, Cost()),
        )


def find(name: str) -> PaperData:
    """Return what stands for a data set of the paper; an error says how to get it."""
    makers: dict[str, Callable[[], PaperData]] = {
        **{table: partial(_itself, table) for table in ("airfoil", "no2", "crimes")},
        "exchange-rate": partial(_itself, "exchange-rate", "series"),
        "electricity": _electricity,
        "echo": partial(_itself, "echo", "video"),
        "rcf-mnist": _rcf_mnist,
        "dti": _dti,
        "povertymap": partial(_itself, "povertymap", "image"),
    }
    return lookup("data set of the paper", name, makers)()


def find_all(names: Sequence[str]) -> tuple[list[PaperData], list[str]]:
    """Return what stands for some data sets, and for those that are not here how to get them."""
    found, missing = [], []
    for name in names:
        try:
            found.append(find(name))
        except DataNotFoundError as error:
            missing.append(str(error))
    if not found:
        raise DataNotFoundError(" ".join(missing))
    return found, missing


def make_table_net(split: Split, seed: int) -> nn.Module:
    """Make the net for tables, to be trained by itself."""
    return MLP(split.train.x.shape[1], split.train.y.shape[1], seed=seed)


def _itself(name: str, task: str = "table") -> PaperData:
    if not is_here(name):
        raise DataNotFoundError(f"{name} is not on this disk. To get it: {how(name).rstrip('.')}.")
    return PaperData(name, name, model=NETWORKS.get(task))


def _electricity() -> PaperData:
    try:
        return _itself("electricity", "series")
    except DataNotFoundError as missing:
        try:
            locate(_CLIENTS, fetch=False)
        except DataNotFoundError:
            raise missing from None
    note = "stands in: the first 1,000 hours of 203 of the 321 clients"
    return PaperData("electricity", ELECTRICITY, note, NETWORKS["series"])


def _rcf_mnist() -> PaperData:
    found = _itself("rcf-mnist", "image")
    return replace(found, rows=1000, note="1,000 of the 40,000 training images, 500 to test on")


def _dti() -> PaperData:
    try:
        return _itself("dti", "pair")
    except DataNotFoundError:
        davis = _itself("davis", "pair")
    note = (
        "stands in: 1,000 training pairs of davis, with proteins in the test that are not in the "
        "training, in place of later years"
    )
    return replace(davis, name="dti", what=DAVIS, note=note, rows=1000)


def _split(what: str, protocol: Protocol, rows: int | None, seed: int) -> Split:
    """Return the samples of a seed: the rule of the protocol, an excerpt if so many are wanted."""
    rules: Rules = "tuned" if protocol == "tuned" else "paper"
    data = _open(what, data_folder())
    if rules == "tuned" and isinstance(data, ArrayData) and data.groups is not None:
        # The rule of the scripts leaves one split only: deal the groups anew for every seed.
        deal = partial(_deal_groups, groups=data.groups)
        data = ArrayData(data.x, data.y, info=data.info, rule=deal, groups=data.groups)
    split = data.split(seed, protocol=rules)
    if isinstance(split, StandardizedSplit) and rules == "paper":
        # The paper's errors of a series are those of the scaled one.
        split = Split(split.train, split.validation, split.test, split.more)
    if rows is not None:
        split = _excerpt(split, rows, seed)
    split = replace(split, pooled=True)  # as the errors of the paper
    if protocol != "time":
        return split
    few = split.validation.take(slice(_FEW))
    return Split(split.train, few, few, pooled=True)


@lru_cache(maxsize=2)
def _open(what: str, folder: Path | None) -> Data:
    """Return what is read, from the files in a folder."""
    if what == ELECTRICITY:
        return load_electricity(locate(_CLIENTS, fetch=False))
    return _ByProtein(cast(Pairs, load("davis"))) if what == DAVIS else load(what)


class _ByProtein(Data):
    """Pairs whose proteins fall into domains by name; the last domains are for the test."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs, self.info = pairs, pairs.info
        parts = pairs.split(0).parts.values()
        rows = np.concatenate([part.rows for part in parts])
        groups = np.concatenate([part.groups for part in parts if part.groups is not None])
        proteins = groups[np.argsort(rows)].astype(np.int64)
        self._domains = proteins * _DOMAINS // (proteins.max() + 1)

    def __len__(self) -> int:
        return len(self._pairs)

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split the pairs; the two protocols are the same."""
        is_test = self._domains >= _DOMAINS * 3 // 4
        known = np.flatnonzero(~is_test)
        first, second, third = random_split(len(known), shares=(0.8, 0.1, 0.1), seed=seed)
        rows = known[first], known[np.concatenate([second, third])], np.flatnonzero(is_test)
        train, validation, test = (
            replace(self._pairs._part(own), groups=self._domains[own]) for own in rows
        )
        return Split(train, validation, test)


def _deal_groups(seed: int, *, groups: NDArray[np.generic]) -> ThreeParts:
    return group_split(groups, shares=(0.7, 0.1, 0.2), seed=seed)


def _excerpt(split: Split, rows: int, seed: int) -> Split:
    """Keep so many training samples at most, drawn at random, and half as many of other parts."""
    rng = _random.numpy_generator(_random.Stream.EXCERPT, seed)

    def some(part: Part, most: int) -> Part:
        return part.take(np.sort(rng.permutation(len(part))[:most]))

    return replace(
        split,
        train=some(split.train, rows),
        validation=some(split.validation, rows // 2),
        test=some(split.test, rows // 2),
        more={name: some(part, rows // 2) for name, part in split.more.items()},
    )

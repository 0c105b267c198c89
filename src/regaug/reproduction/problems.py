"""The paper's data sets as problems: their splits, their networks, their metrics.

What is not on this disk has a stand-in where there is one, and says so wherever it is shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, cast, get_args

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
from regaug.data.scaling import Scaler, StandardizedSplit
from regaug.data.splits import ThreeParts, group_split, random_split
from regaug.exceptions import DataNotFoundError
from regaug.models import MLP, R2Plus1D18
from regaug.problems import NETWORKS, Cost, LoadedSplits, MakeNet, Problem
from regaug.reproduction.recipes import metric_of

# How targets may be scaled, by the training rows, in what is the paper's protocol otherwise.
Scaling = Literal["min-max", "standardized"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)
# "time" is "paper" with a few validation rows: what is timed is the training.
Protocol = Literal["paper", "tuned", "time", "paper-min-max", "paper-standardized"]
ELECTRICITY, DAVIS = "electricity-1000x203", "davis-by-protein"
_CLIENTS = "electricity/electricity_first1000rows_203of321.csv"
_DOMAINS = 8  # groups of proteins in davis, the last quarter of them for the test
_FEW = 32  # validation rows beside what is timed
_SCALED: dict[Scaling, Protocol] = {
    "min-max": "paper-min-max",
    "standardized": "paper-standardized",
}
_BIAS = 55.6  # what the net for echo videos begins with, in all scripts
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
    rows: int | None = None  # training samples at most, and a quarter as many of other parts

    @property
    def is_table(self) -> bool:
        """Whether it has many splits, and nets that are small."""
        return self.model is None

    def problem_name(self, protocol: Protocol) -> str:
        """Return what its runs know the problem by."""
        size = "" if self.rows is None else f"-{self.rows}"
        return f"{self.what}{size}/{protocol}"

    def scaled_name(self, scaling: Scaling) -> str:
        """Return what runs with scaled targets know the problem by."""
        return self.problem_name(_SCALED[scaling])

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """What there is of it; targets are scaled for tables, as all others are near 1."""
        return ("paper", "tuned", *(_SCALED.values() if self.is_table else ()))

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

    def target_unit(self, scaling: Scaling, seed: int) -> float:
        """Return what the first target of a seed's split is divided by when it is scaled."""
        split = _split(self.what, _SCALED[scaling], self.rows, seed)
        return float(cast(StandardizedSplit, split).y_scaler.std[0])


def find(name: str) -> PaperData:
    """Return what stands for a data set of the paper; an error says how to get it."""
    makers: dict[str, Callable[[], PaperData]] = {
        **{table: partial(_itself, table) for table in ("airfoil", "no2", "crimes")},
        "exchange-rate": partial(_itself, "exchange-rate", "series"),
        "electricity": _electricity,
        "echo": _echo,
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
    note = "8,000 of the 40,000 training images, 2,000 to test on"
    return replace(found, rows=8000, note=note)


def _echo() -> PaperData:
    return replace(_itself("echo", "video"), model=_make_echo_net)


def _make_echo_net(split: Split, seed: int) -> nn.Module:
    return R2Plus1D18(split.train.y.shape[1], bias=_BIAS, seed=seed)


def _dti() -> PaperData:
    try:
        return _itself("dti", "pair")
    except DataNotFoundError:
        davis = _itself("davis", "pair")
    note = (
        "stands in: 5,000 training pairs of davis, with proteins in the test that are not in the "
        "training, in place of later years"
    )
    return replace(davis, name="dti", what=DAVIS, note=note, rows=5000)


def _split(what: str, protocol: Protocol, rows: int | None, seed: int) -> Split:
    """Return the samples of a seed: the rule of the protocol, an excerpt if so many are wanted."""
    rules: Rules = "tuned" if protocol == "tuned" else "paper"
    data = _open(what, data_folder())
    if rules == "tuned":
        data = deal_anew(data)
    split = data.split(seed, protocol=rules)
    if isinstance(split, StandardizedSplit) and rules == "paper":
        # The paper's errors of a series are those of the scaled one.
        split = Split(split.train, split.validation, split.test, split.more)
    if rows is not None:
        split = _excerpt(split, rows, seed)
    split = replace(split, pooled=True)  # as the errors of the paper
    for scaling, name in _SCALED.items():
        if name == protocol:
            return scale_targets(split, scaling)
    if protocol != "time":
        return split
    few = split.validation.take(slice(_FEW))
    return Split(split.train, few, few, pooled=True)


def scale_targets(split: Split, scaling: Scaling) -> StandardizedSplit:
    """Scale targets by the training rows, to [0, 1] or to mean 0 and deviation 1.

    Inputs stay as they are; errors are those of predictions that are taken back.
    """
    y = split.train.y.double().numpy()
    if scaling == "min-max":
        low, width = y.min(axis=0), np.ptp(y, axis=0)
        scaler = Scaler(low, np.where(width > 0, width, 1.0))
    else:
        scaler = Scaler.fit(split.train.y)
    new = {name: replace(part, y=scaler.transform(part.y)) for name, part in split.parts.items()}
    train, validation, test = (new.pop(name) for name in ("train", "validation", "test"))
    return StandardizedSplit(train, validation, test, new, y_scaler=scaler, pooled=split.pooled)


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


def deal_anew(data: Data) -> Data:
    """Return data whose groups are dealt anew for every seed: the scripts' rule has one split."""
    if not isinstance(data, ArrayData) or data.groups is None:
        return data
    deal = partial(_deal_groups, groups=data.groups)
    return ArrayData(data.x, data.y, info=data.info, rule=deal, groups=data.groups)


def _deal_groups(seed: int, *, groups: NDArray[np.generic]) -> ThreeParts:
    return group_split(groups, shares=(0.7, 0.1, 0.2), seed=seed)


def _excerpt(split: Split, rows: int, seed: int) -> Split:
    """Keep so many training samples at most, drawn at random, and a quarter of other parts."""
    rng = _random.numpy_generator(_random.Stream.EXCERPT, seed)

    def some(part: Part, most: int) -> Part:
        return part.take(np.sort(rng.permutation(len(part))[:most]))

    return replace(
        split,
        train=some(split.train, rows),
        validation=some(split.validation, rows // 4),
        test=some(split.test, rows // 4),
        more={name: some(part, rows // 4) for name, part in split.more.items()},
    )

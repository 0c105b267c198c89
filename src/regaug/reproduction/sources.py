"""Where the samples of the paper's data sets come from, and the net that learns them.

What is not on this disk has a stand-in where there is one, and says so wherever it is shown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from torch import nn

from regaug import _random, models
from regaug._registry import lookup
from regaug.data import load
from regaug.data.arrays import ArrayData
from regaug.data.base import Data, Part, Rules, Split
from regaug.data.datasets.files import locate
from regaug.data.datasets.named import how, is_here
from regaug.data.datasets.series import load_electricity
from regaug.data.scaling import StandardizedSplit, standardize
from regaug.data.splits import group_split, random_split
from regaug.exceptions import DataNotFoundError

_CLIENTS = "electricity/electricity_first1000rows_203of321.csv"
_DOMAINS = 8  # groups of proteins in davis, the last quarter of them for the test


@dataclass(frozen=True)
class Source:
    """What stands for one of the paper's data sets on this disk.

    Attributes:
        data: Name of the data set in the paper's tables.
        name: What is read: the same, or what stands in for it.
        note: What a reader of a table must know; empty if it is the paper's data, all of it.
        load: Loads it.
        net: Makes its network from a split and a seed; None for tables, whose runs are stacked.
        rows: Training samples that are used at most, and half as many of each other part.
    """

    data: str
    name: str
    note: str
    load: Callable[[], Data]
    net: Callable[[Split, int], nn.Module] | None = None
    rows: int | None = None

    def split(self, seed: int, protocol: Rules) -> Split:
        """Return the samples of a seed as the protocol wants them: raw, or standardized."""
        data = _open(self.name, self.load)
        if protocol == "tuned" and isinstance(data, ArrayData) and data.groups is not None:
            # The rule of the scripts leaves one split only: deal the groups anew for every seed.
            data = _with_rule(data, partial(_deal_groups, groups=data.groups))
        split = data.split(seed, protocol=protocol)
        if isinstance(split, StandardizedSplit) and protocol == "paper":
            # The paper's errors of a series are those of the scaled one.
            split = Split(split.train, split.validation, split.test, split.more)
        elif protocol == "tuned":
            split = standardize(split)
        return split if self.rows is None else _excerpt(split, self.rows, seed)


def find(data: str) -> Source:
    """Return what stands for a data set of the paper on this disk.

    Raises:
        DataNotFoundError: Neither it nor a stand-in is here; says how to get it.
    """
    makers: dict[str, Callable[[], Source]] = {
        "airfoil": partial(_itself, "airfoil"),
        "no2": partial(_itself, "no2"),
        "crimes": partial(_itself, "crimes"),
        "exchange-rate": partial(_itself, "exchange-rate", _lstnet),
        "electricity": _electricity,
        "echo": partial(_itself, "echo", _video_net),
        "rcf-mnist": _rcf_mnist,
        "dti": _dti,
        "povertymap": partial(_itself, "povertymap", _image_net),
    }
    return lookup("data set of the paper", data, makers)()


def _itself(data: str, net: Callable[[Split, int], nn.Module] | None = None) -> Source:
    if not is_here(data):
        raise DataNotFoundError(f"{data} is not on this disk. To get it: {how(data)}.")
    return Source(data, data, "", partial(load, data), net)


def _electricity() -> Source:
    try:
        return _itself("electricity", _lstnet)
    except DataNotFoundError:
        path = _locate(_CLIENTS, "electricity")
    note = "stands in: the first 1,000 hours of 203 of the 321 clients"
    return Source("electricity", "electricity-1000x203", note, partial(_read_hours, path), _lstnet)


def _rcf_mnist() -> Source:
    found = _itself("rcf-mnist", _image_net)
    return replace(found, rows=1000, note="1,000 of the 40,000 training images, 500 to test on")


def _dti() -> Source:
    try:
        return _itself("dti", _pair_net)
    except DataNotFoundError:
        davis = _itself("davis", _pair_net)
    note = (
        "stands in: 1,000 training pairs of davis, with proteins in the test that are not in the "
        "training, in place of later years"
    )
    return replace(davis, data="dti", name="davis-by-protein", note=note, load=_davis, rows=1000)


def _locate(path: str, data: str) -> str:
    try:
        return str(locate(path, fetch=False))
    except DataNotFoundError:
        message = f"{data} is not on this disk. To get it: {how(data)}."
        raise DataNotFoundError(message) from None


@lru_cache(maxsize=2)
def _open(name: str, loader: Callable[[], Data]) -> Data:
    return loader()


def _read_hours(path: str) -> Data:
    return load_electricity(path)


def _davis() -> Data:
    return _ByProtein(load("davis"))


class _ByProtein(Data):
    """Pairs whose proteins fall into domains by name; the last domains are for the test."""

    def __init__(self, pairs: Any) -> None:
        self._pairs, self.info = pairs, pairs.info
        whole = pairs.split(0)
        parts = (whole.train, whole.validation, whole.test)
        rows = np.concatenate([part.rows for part in parts])
        proteins = np.concatenate([part.groups for part in parts])[np.argsort(rows)]
        self._domains = proteins * _DOMAINS // (proteins.max() + 1)

    def __len__(self) -> int:
        return len(self._pairs)

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split the pairs; the two protocols are the same."""
        is_test = self._domains >= _DOMAINS * 3 // 4
        known = np.flatnonzero(~is_test)
        first, second, third = random_split(len(known), shares=(0.8, 0.1, 0.1), seed=seed)
        train, validation = known[first], known[np.concatenate([second, third])]
        test = np.flatnonzero(is_test)
        return Split(self._part(train), self._part(validation), self._part(test))

    def _part(self, rows: Any) -> Part:
        part: Part = self._pairs._part(rows)
        return replace(part, groups=self._domains[rows])


def _with_rule(data: ArrayData, rule: Any) -> ArrayData:
    return ArrayData(data.x, data.y, info=data.info, rule=rule, groups=data.groups)


def _deal_groups(seed: int, *, groups: Any) -> Any:
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


def _lstnet(split: Split, seed: int) -> nn.Module:
    columns = split.train.x.shape[2]
    hidden = 50 if columns < 100 else 100
    return models.LSTNet(columns, hidden_cnn=hidden, hidden_rnn=hidden, seed=seed)


def _image_net(split: Split, seed: int) -> nn.Module:
    return models.ResNet18(split.train.y.shape[1], channels=split.train.x.shape[1], seed=seed)


def _pair_net(split: Split, seed: int) -> nn.Module:
    return models.DeepDTA(activation=None, seed=seed)  # as in C-Mixup's scripts


def _video_net(split: Split, seed: int) -> nn.Module:
    return models.R2Plus1D18(split.train.y.shape[1], seed=seed)

"""New rows for a table, made by a method, in the table's own units and column names."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random, methods
from regaug._checks import check_integer
from regaug.augment import Identity
from regaug.augment.base import AnyAugmentation
from regaug.augment.rare_rows import COLUMN, RareRows
from regaug.data.arrays import ArrayData
from regaug.data.base import Data
from regaug.data.scaling import Scaler
from regaug.data.tabular.columns import Number
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.restoration import restore
from regaug.data.tabular.table import Table
from regaug.data.tabular.texts import Floats
from regaug.data.tabular.values import read_levels
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.metrics import FOCUSES
from regaug.samplers import BatchSampler

if TYPE_CHECKING:
    import pandas as pd

BATCH_SIZE = 32


@_random.plain_defaults()
def generate(
    data: Data,
    *,
    method: str,
    rows: int,
    seed: int = 0,
    method_settings: Mapping[str, object] | None = None,
    append: bool = False,
) -> "pd.DataFrame":
    """Make new rows of a table with a method, in the table's own units and column names.

    All rows are encoded and standardized, batches of them are drawn and augmented as in training,
    every batch at full strength, and what comes out is decoded: of a category the level that is
    nearest; whole numbers where the column has only such; dates in steps of whole days, hours,
    minutes or seconds, as in the table. For levels that are too rare to be told apart one of them
    is drawn. A value is missing where it mostly comes from rows in which it is missing. No number
    and no date leaves the range that it has in the table.

    The rows are for training only. They are made from the rows of the table, targets included: an
    error that is measured on them, or on rows that they were made from, says nothing about new
    data. Split first, and make new rows from the training part alone.

    Args:
        data: A table: ``regaug.data.read_table(...)``, or a named one, whose columns then are
            ``x1``, ``x2``, ... and ``target``.
        method: One of ``regaug.methods.names()`` that acts on inputs; or ``"smogn"``, which makes
            rows where targets are rare, by their box plot or by its setting ``focus``: ``"high"``,
            ``"low"`` or ``"both"``, or the column that the table was read with as its relevance.
        rows: How many, at least 1.
        seed: The same seed gives the same rows.
        method_settings: Settings of the method that differ from its defaults. Those that say when
            to act in training (``p``, ``anneal``, ``append``) have no effect.
        append: Return the table's own rows, those with a target, followed by the new ones.

    Returns:
        A pandas frame with the inputs and targets of the table, in its order and of its types. What
        is no input is left out: groups, times, dropped columns, and those that tell rows apart.
        Columns that are constant or empty stay so.

    Example:
        >>> import pandas as pd
        >>> from regaug.data import read_table
        >>> frame = pd.DataFrame({"size": range(50, 80), "city": ["Oslo", "Rome"] * 15})
        >>> frame["price"] = frame["size"] ** 2.0
        >>> table = read_table(frame.sample(frac=1.0, random_state=0), target="price")
        >>> new = generate(table, method="mixup", rows=100)
        >>> new.shape, sorted(new["city"].unique()), bool(new["size"].between(50, 79).all())
        ((100, 3), ['Oslo', 'Rome'], True)
    """
    import pandas as pd

    table, rows = as_table(data), check_integer("rows", rows, 1)
    frame, seed = table.frame, check_integer("seed", seed, 0)
    rng = _random.numpy_generator(_random.Stream.GENERATION, seed)
    encoder = Encoder.fit(frame[list(table.inputs)], readings=table.readings)
    x = torch.from_numpy(encoder.transform(frame)).double()
    y = torch.from_numpy(table.y)
    own = method_settings or {}
    own = _find_focus(table, own) if method == methods.SMOGN else own
    told: dict[str, Any] = {"blocks": encoder.blocks, "relevances": table.relevances}
    new_x, new_y, _ = augment_rows(x, y, method, own, rows, seed, **told)
    targets = Encoder(tuple(Number(name, 0.0, indicator=False) for name in table.targets))
    new = {
        column.name: restore(column, values[column.name], frame[column.name], rng)
        for known, values in ((encoder, encoder.decode(new_x)), (targets, targets.decode(new_y)))
        for column in known.columns
    }
    for name in set(table.inputs).difference(new):
        codes, texts = read_levels(frame[name])
        if len(texts) < 2:  # constant, or without any value
            new[name] = frame[name].take(np.repeat(codes.argmax(), rows))
    names = [name for name in frame.columns if name in new]
    made = pd.DataFrame({name: new[name].reset_index(drop=True) for name in names})
    return pd.concat([frame[names], made], ignore_index=True) if append else made


def _find_focus(table: Table, own: Mapping[str, object]) -> Mapping[str, object]:
    """Return settings in which the table's column of relevance is the focus, if it is named."""
    focus = own.get("focus")
    if focus is None or focus in FOCUSES:
        return own
    if focus != table.relevance:
        has = "has none" if table.relevance is None else f"has {table.relevance!r}"
        raise ArgumentError(
            f"`focus` must be one of {', '.join(map(repr, FOCUSES))}, or the table's column of "
            f"relevance, of which it {has}, got {focus!r}. Name the column: read_table(..., "
            "relevance=...)."
        )
    return {**own, "focus": COLUMN}


def as_table(data: Data) -> Table:
    """Return data as a table with names for its columns; an error if they are none."""
    import pandas as pd

    if isinstance(data, Table):
        return data
    if not isinstance(data, ArrayData) or data.x.ndim != 2:
        raise ArgumentTypeError(
            "`data` must be a table: regaug.data.read_table(...), or a named data set of that "
            f"kind, got {type(data).__name__}."
        )
    inputs, targets = array_names(data)
    frame = pd.DataFrame(np.hstack([data.x, data.y]), columns=[*inputs, *targets])
    return Table(frame, targets=targets, name=data.info.name)


def array_names(data: ArrayData) -> tuple[list[str], list[str]]:
    """Return what the inputs and the targets of a table are called whose columns have no names."""
    columns, targets = data.x.shape[1], data.y.shape[1]
    inputs = [f"x{place}" for place in range(1, columns + 1)]
    return inputs, [f"target_{i}" for i in range(1, targets + 1)] if targets > 1 else ["target"]


@_random.plain_defaults()
def augment_rows(
    x: Tensor,
    y: Tensor,
    method: str,
    changes: Mapping[str, object],
    rows: int,
    seed: int,
    *,
    blocks: Sequence[int] | None = None,
    relevances: Floats | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Standardize, draw and augment batches until there are enough rows, and scale them back.

    ``x`` and ``y`` are ``(n, d)`` and ``(n, m)``, float64 and finite. Returns new inputs and
    targets, and the place of the row that each of them started from. ``blocks`` has a number for
    every column of ``x``, equal ones for columns that belong together; ``relevances`` say how much
    the target of each row matters, for a method that goes by them.
    """
    if method == methods.SMOGN:
        return _rare_rows(x, y, changes, rows, seed, relevances)
    ready = prepare_maker(method, changes, seed=seed)
    augmentation = ready.augmentation
    x_scaler, y_scaler = Scaler.fit(x), Scaler.fit(y)
    x, y = x_scaler.transform(x), y_scaler.transform(y)
    ready.fit(x, y, blocks=blocks)
    # Whole batches only: a batch of a row or two has no neighborhood.
    size = min(BATCH_SIZE, len(x))
    sampler = ready.sampler(y, size, drop_last=True)
    batches = list(islice(_endless(sampler), -(-rows // size)))
    made = [augmentation(x[batch], y[batch]) for batch in batches]
    new_x, new_y = (torch.cat(parts)[:rows] for parts in zip(*made, strict=True))
    # Where a batch brings partners they come last, and no row starts from them.
    sources = np.concatenate([batch[:size] for batch in batches])[:rows]
    return x_scaler.inverse(new_x).numpy(), y_scaler.inverse(new_y).numpy(), sources


def _rare_rows(
    x: Tensor,
    y: Tensor,
    changes: Mapping[str, object],
    rows: int,
    seed: int,
    relevances: Floats | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Do the same for rows where targets are rare, from all rows at once."""
    own = methods.MAKERS[methods.SMOGN].settings(**changes)
    x_scaler, y_scaler = Scaler.fit(x), Scaler.fit(y)
    known = RareRows.of(
        x_scaler.transform(x),
        y_scaler.transform(y),
        neighbors=own["neighbors"],
        focus=own["focus"],
        relevances=relevances,
    )
    drawn = known.draw(rows, seed)
    new_x, new_y = known.make(drawn, sigma=own["sigma"])
    sources = known.rare[drawn.start].numpy()
    return x_scaler.inverse(new_x).numpy(), y_scaler.inverse(new_y).numpy(), sources


def prepare_maker(method: str, changes: Mapping[str, object], *, seed: int = 0) -> methods.Prepared:
    """Return a method that makes rows at full strength; refuse one that makes none."""
    always = {"p": 1.0, "anneal": None, "append": False}
    ready = methods.get(method).prepare({**changes, **always}, seed=seed)
    _check_usable(method, ready.augmentation, ready.settings["place"])
    return ready


def _check_usable(method: str, augmentation: AnyAugmentation, place: object) -> None:
    if isinstance(augmentation, Identity):
        raise ArgumentError(
            f"`method` must make new rows, got {method!r}, which makes none. Choose "
            "another, such as 'mixup' or 'cems'."
        )
    if place != methods.INPUT:
        raise ArgumentError(
            f"`method` must act on inputs, got {method!r} at {place!r}: what it makes there are no "
            "rows of a table. Choose another, such as 'mixup' or 'cems'."
        )


def _endless(sampler: BatchSampler) -> Iterator[list[int]]:
    for epoch in count():
        sampler.set_epoch(epoch)
        yield from sampler

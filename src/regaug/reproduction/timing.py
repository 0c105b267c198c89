"""What an epoch costs: plain training, and FOMA on inputs, at a layer, and at both."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from regaug.data.base import Split
from regaug.methods import BOTH, INPUT, LAYER
from regaug.models import MLP
from regaug.reproduction import published
from regaug.reproduction.recipes import paper_settings
from regaug.reproduction.sources import Source
from regaug.runs.store import Store, run_key
from regaug.training import Settings, fit

DATASETS = ("airfoil", "electricity", "dti")
# The paper does not say which batches it timed: those of its table 8.
BATCH = {"airfoil": 32, "electricity": 128, "dti": 64}
VARIANTS: tuple[tuple[str, str | None], ...] = (
    ("erm", None),
    ("foma", INPUT),
    ("foma", LAYER),
    ("foma", BOTH),
    ("foma-rho", INPUT),
    ("foma-rho", LAYER),
    ("foma-rho", BOTH),
)
ROUNDS = 5


def time_epochs(
    source: Source, store: Store, *, minutes: float | None, watch: Callable[[str], None]
) -> dict[str, Any]:
    """Time an epoch of every variant, in turns, and return the medians beside the paper's.

    Turns, because what else a machine does changes from minute to minute; so only the ratios are
    compared, within a round. One process, one thread.

    Args:
        source: A data set.
        store: Keeps every timing.
        minutes: Start no new round after so many.
        watch: Told how far it has come.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    split = _small_validation(source.split(0, "paper"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for number in range(ROUNDS):
            if number and end is not None and time.monotonic() > end:
                break
            watch(f"{source.data}: round {number + 1} of {ROUNDS}")
            _time_round(source, split, number, store)
    finally:
        torch.set_num_threads(threads)
    return _summary(source, store)


def _time_round(source: Source, split: Split, number: int, store: Store) -> None:
    done = store.done()
    epochs = 5 if source.net is None else 1
    for method, place in VARIANTS:
        settings = _settings(source.data, method, place, epochs)
        run = {
            "experiment": "time",
            "data": source.data,
            "source": source.name,
            "method": method,
            "place": place,
            "round": number,
            "settings": settings.to_dict(),
        }
        key = run_key(run)
        if key in done:
            continue
        if source.net is None:
            net: torch.nn.Module = MLP(split.train.x.shape[1], split.train.y.shape[1])
        else:
            net = source.net(split, 0)
        result = fit(net, split, method, settings, device="cpu", record=())
        store.add(key, run, {"seconds": result.seconds / epochs, "made_by": dict(result.made_by)})


def _settings(data: str, method: str, place: str | None, epochs: int) -> Settings:
    changes = {} if place is None else {"place": place}
    own = paper_settings(data, method, seed=0, **changes)
    return replace(own, epochs=epochs, batch_size=BATCH[data], learning_rate=1e-4)


def _small_validation(split: Split) -> Split:
    """Keep a few validation samples: what is timed is the training."""
    few = split.validation.take(slice(32))
    return Split(split.train, few, few)


def _summary(source: Source, store: Store) -> dict[str, Any]:
    seconds: dict[tuple[str, str | None], dict[int, float]] = {}
    for stored in store.results().values():
        run = stored.run
        if run.get("experiment") == "time" and run["source"] == source.name:
            own = seconds.setdefault((run["method"], run["place"]), {})
            own[run["round"]] = float(stored.result["seconds"])
    plain = seconds["erm", None]
    plain_cell = published.cell(source.data, "erm", "seconds")
    return {
        "experiment": "time",
        "data": source.data,
        "note": source.note,
        "command": f"regaug reproduce time --datasets {source.data}",
        "rounds": len(plain),
        "rows": [
            _row(source.data, variant, own, plain, plain_cell) for variant, own in seconds.items()
        ],
    }


def _row(
    data: str,
    variant: tuple[str, str | None],
    own: Mapping[int, float],
    plain: Mapping[int, float],
    plain_cell: published.Cell | None,
) -> dict[str, Any]:
    method, place = variant
    options = {} if place is None else {"place": place}
    cell = published.cell(data, method, "seconds", **options)  # type: ignore[arg-type]
    ratio = None if cell is None or plain_cell is None else cell.mean / plain_cell.mean
    return {
        "method": method,
        "place": place,
        "seconds": median(own.values()),
        "ratio": median(own[number] / plain[number] for number in own if number in plain),
        "published_seconds": None if cell is None else cell.mean,
        "published_ratio": ratio,
    }

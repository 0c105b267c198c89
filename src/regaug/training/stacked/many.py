"""The call that trains many runs: which of them share a stack."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from regaug import _random, formatting
from regaug._checks import check_choice, check_integer
from regaug.data.base import Split
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.training.bar import Bar
from regaug.training.deadline import Until
from regaug.training.results import RunResult
from regaug.training.settings import Recorded, Settings
from regaug.training.stacked.stack import Stack
from regaug.training.stacked.training import Training

# More runs in a stack gain little, and with more rows of all of them in a step each run takes
# longer: what they work on leaves the processor's cache. Fewer than the last share too little.
_MOST_RUNS, _MOST_ROWS, _FEW_RUNS = 32, 1024, 4


def most_runs(batch_size: int) -> int:
    """Return how many runs with batches of that size a stack has at most.

    Example:
        >>> [most_runs(size) for size in (16, 64, 128, 1024)]
        [32, 16, 8, 4]
    """
    return max(_FEW_RUNS, min(_MOST_RUNS, _MOST_ROWS // batch_size))


@_random.plain_defaults()
def fit_many(
    data: Split | Sequence[Split],
    method: str,
    settings: Sequence[Settings],
    *,
    hidden: Sequence[int] = (128, 128),
    initial: Sequence[Mapping[str, Tensor]] | None = None,
    dtype: torch.dtype = torch.float32,
    record: Sequence[Recorded] | Mapping[Recorded, int] = ("train", "validation", "test"),
    until: Until | None = None,
    tell: Callable[[], None] | None = None,
    progress: bool = False,
) -> list[RunResult]:
    """Train the net for tables many times with one method, as stacks of runs.

    Args:
        data: The split of every run, or one for all of them: tables, standardized. Where there are
            no validation rows a run takes all its epochs and keeps the last.
        method: One of ``regaug.methods.names()``.
        settings: The settings of every run. Runs are put into stacks that fit; what a stack
            contains depends on the arguments alone.
        hidden: Widths of the hidden layers of :class:`regaug.models.MLP`.
        initial: Initial weights of every run; those of ``MLP(..., seed=settings.seed)`` if None.
        dtype: What is computed in: float32 or float64.
        record: Parts whose error is in the history; ``"validation"`` always is. ``{"test": 10}``
            looks at it after every ten epochs: on a small table it is a third of the time.
        until: A time, in seconds since 1970, at which runs end with the epoch that is under way and
            keep the best they had; None waits for all of them. Every run has an epoch at least.
        tell: Called after every epoch of a stack.
        progress: Show a progress bar.

    Returns:
        A result for every run, in the order of ``settings``. A run whose loss becomes NaN or
        infinite ends as ``"diverged"``, with the best epoch it had before.

    Example:
        >>> from regaug.data import standardize
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> splits = [standardize(make_manifold("sine", n=200).split(seed)) for seed in range(3)]
        >>> settings = [Settings(epochs=5, seed=seed) for seed in range(3)]
        >>> results = fit_many(splits, "foma-rho", settings)
        >>> [result.settings.seed for result in results]
        [0, 1, 2]
    """
    splits = list(data) if isinstance(data, Sequence) else [data] * len(settings)
    for name, given in (("data", splits), ("initial", initial)):
        if given is not None and len(given) != len(settings):
            wanted = f"an entry for each of the {len(settings)} runs"
            raise ArgumentError(f"`{name}` must have {wanted}, got {len(given)}.")
    for split in splits:
        if not isinstance(split, Split):
            raise ArgumentTypeError(
                f"`data` must be a split or a list of splits, got {type(split).__name__}. Split it "
                "first: regaug.data.standardize(data.split(seed=0))."
            )
    if any(own.stop_after is not None for own in settings):
        raise ArgumentError(
            "`stop_after` must be None for runs of a stack, which leave no checkpoint to go on "
            "from. Train each by itself with regaug.training.fit."
        )
    check_choice("dtype", dtype, (torch.float32, torch.float64))
    recorded = dict(record) if isinstance(record, Mapping) else dict.fromkeys(record, 1)
    for part, every in recorded.items():
        check_choice("record", part, ("train", "validation", "test"))
        check_integer("record", every, 1)
    recorded["validation"] = 1

    runs = [
        Training.make(
            number,
            split,
            method,
            own,
            hidden,
            initial[number] if initial else None,
        )
        for number, (split, own) in enumerate(zip(splits, settings, strict=True))
    ]
    results: dict[int, RunResult] = {}
    with Bar("run", len(runs), show=progress) as bar:
        for stack in make_stacks(runs):
            for run, result in Stack(stack, dtype, recorded).train(until=until, tell=tell):
                results[run.number] = result
                last, metric = result.history[-1], result.settings.metric
                words = (
                    f"{metric} {formatting.number(last.validation)}",
                    f"loss {formatting.number(last.loss)}",
                )
                bar.advance(words[0] if run.has_validation else words[1])
    return [results[number] for number in range(len(runs))]


def make_stacks(runs: Sequence[Training]) -> Iterator[list[Training]]:
    """Put runs of the same form together, in the order they came, not too many."""
    alike: dict[tuple[object, ...], list[Training]] = {}
    for run in runs:
        alike.setdefault(run.form, []).append(run)
    for members in alike.values():
        most = most_runs(members[0].settings.batch_size)
        for start in range(0, len(members), most):
            yield members[start : start + most]

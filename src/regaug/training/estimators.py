"""A regressor on a split, fitted on the training rows and on new ones that a method makes."""

import time
import traceback
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from inspect import Parameter, signature
from re import sub
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regaug import _random
from regaug._registry import lookup
from regaug.data.base import Part, Split
from regaug.data.tabular.domain import Domain
from regaug.data.tabular.generation import augment_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError, RegaugError
from regaug.methods import NO_ROWS, REPEATS, ROWS
from regaug.training.baselines import fit_baseline
from regaug.training.baselines.base import Array, small_seed
from regaug.training.baselines.baseline import LARGEST, MOST_ROWS, find_obstacle
from regaug.training.results import RunResult, versions
from regaug.training.scores import score_parts
from regaug.training.settings import Settings

# Baselines that a study can add rows to, by name; what they are is said in `fit_baseline`.
REGRESSORS = ("ridge", "boosting", "trees", "gp")
# A regressor that is checked is fitted to so many rows.
_CHECKED_ROWS = 500
# How many threads a regressor uses: as any worker, one.
_THREADS = ("n_jobs", "thread_count")


@dataclass(frozen=True)
class NewRows:
    """Where new rows come from, beside the training rows and the settings.

    Attributes:
        method: A method that makes rows; or ``"no-rows"``, ``"rows"`` for those from elsewhere,
            ``"repeats"`` for training rows once more.
        foreign: The rows from elsewhere, for this split; None if there are none.
        keep_integers: Whether columns of whole numbers stay such.
    """

    method: str = NO_ROWS
    foreign: Part | None = None
    keep_integers: bool = False


def fit_estimator(
    model: Any, split: Split, settings: Settings | None = None, new: NewRows | None = None
) -> RunResult:
    """Fit a regressor on the training rows of a split and on new rows, and score it.

    New rows are made from the training rows alone. Validation and test rows are as they were. The
    regressor sees the rows in the units of the split, inputs flat; what it is given is a copy with
    the seed of the settings as its ``random_state``, in one thread.

    Args:
        model: Any regressor with ``fit`` and ``predict`` as in scikit-learn; or one of
            ``REGRESSORS``, whose settings the validation rows choose.
        split: A split without missing values.
        settings: ``method_settings`` has the ``share`` of new rows for every training row and the
            method's own settings; ``seed`` decides what is drawn; ``metric`` is what a named
            regressor chooses by.
        new: Where the new rows come from; none by default.

    Example:
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> split = make_manifold("sine", n=100).split()
        >>> mixed = NewRows("mixup")
        >>> settings = Settings(method_settings={"share": 0.5, "alpha": 1.0})
        >>> result = fit_estimator(DecisionTreeRegressor(), split, settings, mixed)
        >>> result.method, len(result.predictions["test"])
        ('mixup', 20)
    """
    start = time.perf_counter()
    settings, new = settings or Settings(), new or NewRows()
    most = MOST_ROWS.get(model) if isinstance(model, str) else None
    more = replace(split, train=add_rows(split, settings, new, most=most))
    if isinstance(model, str):
        lookup("regressor", model, dict.fromkeys(REGRESSORS))
        result = fit_baseline(model, more, seed=settings.seed, metric=settings.metric)
        return replace(result, method=new.method, settings=settings)
    fitted = _fit(model, more.train, settings.seed)
    targets = split.train.y.shape[1]
    scored = score_parts(split, lambda part: _predict(fitted, part, targets))
    return RunResult(
        method=new.method,
        settings=settings,
        scores=scored.scores,
        predictions=scored.predictions,
        seconds=time.perf_counter() - start,
        predict_seconds=scored.seconds,
        made_by=versions() | {"scikit-learn": version("scikit-learn")},
    )


def add_rows(split: Split, settings: Settings, new: NewRows, *, most: int | None = None) -> Part:
    """Return the training rows of a split with new rows below them, at most so many in all.

    A new row is one that the table could have: no number leaves its range, categories stay
    categories, flags flags, and whole numbers such if that is asked for.
    """
    train = split.train
    own = dict(settings.method_settings)
    rows = round(float(own.pop("share", 0.0)) * len(train))
    rows = rows if most is None else max(0, min(rows, most - len(train)))
    if new.method == ROWS and new.foreign is not None:
        rows = min(rows, len(new.foreign))  # each of them once
    if new.method == NO_ROWS or rows == 0:
        return train
    x, y = _inputs(train), train.y.double()
    if new.method in (ROWS, REPEATS):
        made = _draw(new.foreign if new.method == ROWS else train, rows, settings)
    else:
        known, encoder = x.numpy(), getattr(split, "encoder", None)
        told: dict[str, Any] = {"blocks": split.blocks, "relevances": train.relevances}
        seed = settings.seed
        new_x, new_y, _ = augment_rows(x, y, new.method, own, rows, seed, **told)
        domain = Domain.of(known, encoder, keep_integers=new.keep_integers)
        targets = y.numpy()
        new_y = np.clip(new_y, targets.min(axis=0), targets.max(axis=0))
        made = torch.from_numpy(domain.settle(new_x)), torch.from_numpy(new_y)
    return Part(
        torch.cat([x, made[0]]).to(train.y.dtype),
        torch.cat([y, made[1]]).to(train.y.dtype),
        np.concatenate([train.rows, np.full(len(made[0]), -1)]),
    )


def is_regressor(model: object) -> bool:
    """Whether something is an estimator, fitted or not, and no network and no class."""
    if isinstance(model, type | nn.Module):
        return False
    return all(callable(getattr(model, name, None)) for name in ("fit", "predict"))


def call_factory(make: Any, split: Split, seed: int) -> Any:
    """Make a model: ``make(split)``, or ``make()`` if it takes none; ``seed`` if it knows such.

    A class is told nothing but what it must be told.
    """
    known = signature(make).parameters
    options = {"seed": seed} if "seed" in known else {}
    by_place = (
        Parameter.POSITIONAL_ONLY,
        Parameter.POSITIONAL_OR_KEYWORD,
        Parameter.VAR_POSITIONAL,
    )
    takes_split = any(
        own.kind in by_place
        and name != "seed"
        and (not isinstance(make, type) or own.default is Parameter.empty)
        for name, own in known.items()
    )
    with _random.seeded(seed):
        return make(split, **options) if takes_split else make(**options)


def name_model(model: object) -> str:
    """Return what a regressor is called, with what differs for other parameters."""
    if isinstance(model, str):
        return model
    parameters = getattr(model, "get_params", lambda: vars(model))()
    # Where in the memory something stands says nothing about it.
    text = sub(r" at 0x[0-9a-f]+", "", repr(sorted(parameters.items())))
    return f"{type(model).__name__}-{zlib.crc32(text.encode()):08x}"


def check_estimator(model: Any, split: Split) -> float:
    """Refuse what cannot be fitted or does not predict; return the seconds that a row takes."""
    train, few = split.train, min(len(split.train), _CHECKED_ROWS)
    largest = max(part.x[0].numel() * len(part) for part in split.parts.values())
    if largest > LARGEST:
        raise ArgumentError(
            f"`splits` must have at most {LARGEST:,} numbers in a part for a regressor, got "
            f"{largest:,}. Take fewer rows: split.subsample(n)."
        )
    if isinstance(model, str):
        obstacle = find_obstacle(model, split)
        most = MOST_ROWS.get(model, 2 * len(train)) // 2  # with as many new ones
        if obstacle is None and len(train) > most:
            obstacle = f"it must have at most {most:,} training rows, got {len(train):,}."
        if obstacle is not None:
            raise ArgumentError(
                f"`model` must suit the rows, got {model!r}: {obstacle} Choose 'boosting', or take "
                "fewer rows."
            )
    else:
        from sklearn.base import is_classifier

        if is_classifier(model):
            raise ArgumentTypeError(
                f"`model` must be a regressor, got the classifier {type(model).__name__}."
            )
    start = time.perf_counter()
    try:
        fit_estimator(model, replace(split, train=train.take(slice(few))))
    except RegaugError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"`model` must be a regressor that can be fitted to {few:,} rows of this data, got "
            f"{type(model).__name__}, which fails: {_where(error)}{type(error).__name__}: {error}"
        ) from error
    return (time.perf_counter() - start) / few


def _where(error: Exception) -> str:
    """Say where an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""


def _fit(model: Any, train: Part, seed: int) -> Any:
    from sklearn.base import clone
    from sklearn.multioutput import MultiOutputRegressor

    own = clone(model, safe=False)
    if hasattr(own, "set_params"):
        own.set_params(**_parameters(own, small_seed(seed)))
    x, y = _inputs(train).numpy(), train.y.double().numpy()
    if y.shape[1] == 1:
        y = y[:, 0]
    elif not _takes_several(own):
        own = MultiOutputRegressor(own, n_jobs=1)
    own.fit(x, y)
    return own


def _parameters(model: Any, seed: int) -> Mapping[str, int]:
    """Return the parameters of an estimator, and of those inside, that a study decides."""
    # CatBoost tells only those that differ from its defaults.
    known = {*model.get_params(), *signature(type(model)).parameters}
    last = {name: name.rpartition("__")[2] for name in known}
    seeds = {name: seed for name in known if last[name] == "random_state"}
    return {**seeds, **{name: 1 for name in known if last[name] in _THREADS}}


def _takes_several(model: Any) -> bool:
    """Whether a regressor says that it can predict several targets."""
    from sklearn.utils import get_tags

    try:
        return bool(get_tags(model).target_tags.multi_output)
    except (AttributeError, TypeError):
        return False


def _predict(fitted: Any, part: Part, targets: int) -> Tensor:
    predicted: Array = np.asarray(fitted.predict(_inputs(part).numpy()), dtype=np.float64)
    if predicted.shape not in {(len(part), targets), *([(len(part),)] if targets == 1 else [])}:
        raise ArgumentError(
            f"`model` must predict ({len(part)}, {targets}) for {len(part)} rows, got "
            f"{predicted.shape} from {type(fitted).__name__}."
        )
    return torch.from_numpy(predicted.reshape(len(part), targets))


def _draw(source: Part | None, rows: int, settings: Settings) -> tuple[Tensor, Tensor]:
    """Draw rows, each as often as any other, give or take one."""
    if source is None:
        raise ArgumentError("`new` must have the rows from elsewhere, got None.")
    rng = _random.numpy_generator(_random.Stream.GENERATION, settings.seed)
    times = -(-rows // len(source))
    few = source.take(np.concatenate([rng.permutation(len(source)) for _ in range(times)])[:rows])
    return _inputs(few), few.y.double()


def _inputs(part: Part) -> Tensor:
    return part.x[:].flatten(1).double()

"""What a study of a network leaves: facts of the inputs and of a layer, and weights."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regaug.augment.outputs import find_item
from regaug.data.base import Part, Split
from regaug.data.scaling import StandardizedSplit
from regaug.exceptions import RegaugError
from regaug.formatting import count
from regaug.methods import INPUT
from regaug.problems import Problem
from regaug.runs.nets import keep_nets, net_file, read_net
from regaug.runs.record import RunRecord
from regaug.studies.facts import Facts, Latent, count_rows, count_shared, some_rows
from regaug.studies.geometry import Geometry
from regaug.studies.study import Study
from regaug.training.checkpoint import load_weights
from regaug.training.scores import predict
from regaug.training.settings import Machine

# Rows that are looked at, and numbers of all of them together; more change no picture.
MOST_ROWS, FEWEST_ROWS, MOST_NUMBERS = 1_000, 100, 8_000_000
# Longer rows are not looked at: a video has millions of numbers.
LONGEST = MOST_NUMBERS // FEWEST_ROWS
# Seconds that putting rows through a net may take.
_SECONDS = 20.0


def describe_network(
    problem: Problem, notes: Sequence[str], *, given: Mapping[str, Any] | None = None
) -> Facts:
    """Find out what a report says of a problem with a network of its own.

    Some training rows of the first split are looked at. Whole numbers, such as token ids, have no
    singular values.
    """
    split = problem.split(0)
    net = problem.make_net(split, 0)
    train, weights = split.train, sum(own.numel() for own in net.parameters())
    shown = f"The network is a {type(net).__name__} with {count(weights, 'weight')}."
    lines = [*notes, shown, _say_scale(split, problem.is_scaled)]
    numbers = _numbers_of(train)
    found = _look(train, MOST_ROWS) or Geometry(columns=numbers, targets=train.y.shape[1])
    return Facts(
        **vars(found),
        summary="\n".join(lines),
        rows=count_rows(split),
        shared_rows=_count_shared(problem.splits[0]),
        given=dict(given or {}),
        kind="network",
        places=tuple(map(str, getattr(net, "places", ()))),
    )


def describe_latent(problem: Problem, record: RunRecord, file: Path) -> Latent | None:
    """Look at what a trained net puts out at its first place, for training rows of its split.

    None if it has no such place, or what is there is no matrix with a row for every sample.
    """
    run = record.run
    split = problem.split(run.split, log=run.log)
    net = problem.make_net(split, run.seed)
    place = next((own for own in getattr(net, "places", ()) if own != INPUT), None)
    if place is None:
        return None
    load_weights(net, read_net(file), source=str(file))
    most = MOST_ROWS
    if record.predict_seconds:
        most = min(most, max(FEWEST_ROWS, int(_SECONDS / record.predict_seconds)))
    part = split.train.take(some_rows(len(split.train), most).numpy())
    x = _put_out(net.eval(), place, part)
    if x is None or x.shape[1] > LONGEST:
        return None
    rows = some_rows(len(x), _most_rows(x.shape[1], most))
    return Latent(**vars(Geometry.of(x[rows], part.y[rows])), place=place, run=run.key)


def finish_network(study: Study, problem: Problem, folder: Path) -> Study:
    """Add what is known of a layer of the chosen plain net; keep the weights of chosen nets.

    All other weights go when the study is complete, as until then others may be chosen.
    """
    record = study.chosen[study.config.reference][0]
    file = net_file(folder, record.run)
    if study.facts is not None and file.exists():
        try:
            latent = describe_latent(problem, record, file)
            study = replace(study, facts=replace(study.facts, latent=latent))
        except RegaugError as error:  # the study is worth telling all the same
            left = f"What a layer puts out is left out of the report: {error}"
            study = replace(study, notes=[*study.notes, left])
    if study.is_complete:
        keep_nets(folder, [own.run for name in study.looked_at for own in study.chosen[name]])
    return study


def _say_scale(split: Split, is_scaled: bool) -> str:
    if is_scaled or not isinstance(split, StandardizedSplit):
        return "Inputs and targets were trained on as they are."
    own = "Inputs are as the data set gives them; targets"
    what = own if split.x_scaler is None else "Inputs and targets"
    return (
        f"{what} were given mean 0 and standard deviation 1 over the training rows of each split."
    )


def _look(part: Part, most: int) -> Geometry | None:
    """Look at some rows; None if they are too long, or not made of floating-point numbers."""
    numbers = _numbers_of(part)
    if not 0 < numbers <= LONGEST:
        return None
    rows = some_rows(len(part), _most_rows(numbers, most))
    flat = _flat(part.x[rows])
    return None if flat is None else Geometry.of(flat, part.y[rows].flatten(1))


def _most_rows(numbers: int, most: int) -> int:
    return max(min(most, MOST_NUMBERS // numbers), FEWEST_ROWS)


def _numbers_of(part: Part) -> int:
    """Return how many numbers the inputs of one sample have."""
    return sum(math.prod(own.shape[1:]) for own in _tensors(part.x[:1]))


def _flat(x: object) -> Tensor | None:
    """Return the floating-point numbers of a batch, ``(n, d)``; None if there are none."""
    floating = [own.flatten(1) for own in _tensors(x) if own.is_floating_point()]
    return torch.cat(floating, dim=1) if floating else None


def _tensors(x: object) -> list[Tensor]:
    """Return the tensors of a batch: one, or those of a tuple, a list or a dict."""
    if isinstance(x, Tensor):
        return [x]
    if isinstance(x, Mapping):
        return [own for value in x.values() for own in _tensors(value)]
    if isinstance(x, list | tuple):
        return [own for value in x for own in _tensors(value)]
    return []


def _put_out(net: nn.Module, place: str, part: Part) -> Tensor | None:
    """Return what a layer puts out for a part, ``(n, d)``; None if not a row for each sample."""
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: object, output: Any) -> None:
        key = find_item(place, output, None)
        own = output if key is None else output[key]
        if isinstance(own, Tensor):
            seen.append(own.detach().cpu().float())

    handle = net.get_submodule(place).register_forward_hook(keep)
    try:
        predict(net, part, Machine("cpu").make_fabric())
    finally:
        handle.remove()
    if not seen or sum(map(len, seen)) != len(part):
        return None
    return torch.cat([own.flatten(1) if own.ndim > 1 else own[:, None] for own in seen])


def _count_shared(split: Split) -> int:
    is_there = all(isinstance(own.x, Tensor) for own in split.parts.values())
    return count_shared(split) if is_there and split.train.x[:1].is_floating_point() else 0

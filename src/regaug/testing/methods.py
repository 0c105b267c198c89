"""What every method keeps to."""

import pickle
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from regaug import _random, methods
from regaug._files import canonical
from regaug.augment import Identity
from regaug.augment.layer import INPUT
from regaug.exceptions import ArgumentTypeError, ContractError, UnknownNameError
from regaug.methods import Between, Method, OneOf, Options
from regaug.testing.augmentations import check_augmentation
from regaug.testing.batches import are_finite
from regaug.testing.contract import Check, go_through

Sentences = Iterator[str]
_LAYER = "0"  # of the net that is trained


def check_method(method: Method | str) -> None:
    """Check that a method of your own does what all of them do; its augmentation is checked too.

    Args:
        method: The method, or the name that it is registered by.

    Raises:
        ContractError: Something is missing; the message says all of it, and what to do.

    Example:
        >>> check_method("mixup")
    """
    name = method if isinstance(method, str) else "The method"
    method = methods.get(method) if isinstance(method, str) else method
    if not isinstance(method, Method):
        raise ArgumentTypeError(
            "`method` must be a regaug.methods.Method, or the name of one, got "
            f"{type(method).__name__}."
        )
    go_through(METHOD_CHECKS, method, name=name, word="method")


def has_sensible_defaults(method: Method) -> Sentences:
    """Its defaults are settings that it knows, a sampler and a place among them."""
    for name in {"sampler", "place"} - method.defaults.keys():
        yield f"`defaults` must have a {name!r}."
        return
    known = method.options | {"sampler", "place", *method.sampler_options}
    for name in method.defaults.keys() - known:
        yield f"`defaults` has {name!r}, which is no option of its augmentation or sampler."
    if not method.summary.strip():
        yield "`summary` must say in one line what it does."


def has_an_augmentation(method: Method) -> Sentences:
    """Its augmentation, made with its defaults, keeps to its own contract."""
    try:
        check_augmentation(method.prepare().augmentation)
    except ContractError as error:
        _, *sentences = str(error).splitlines()
        yield from (f"Its augmentation: {sentence.removeprefix('- ')}" for sentence in sentences)


def has_plain_settings(method: Method) -> Sentences:
    """Its settings are numbers, texts, None and lists of them, as files hold them."""
    try:
        canonical("defaults", dict(method.defaults))
        for number in range(6):
            canonical("space", method.draw_settings(np.random.default_rng(number)))
    except (TypeError, ValueError) as error:
        yield f"Settings must be numbers, texts, None and lists of them: {error}"


def trains(method: Method) -> Sentences:
    """A net trains with its defaults, and its loss stays finite."""
    first, *_, last = train(method, method.settings())
    if not are_finite(first, last):
        yield "With its defaults the loss of a small net must stay finite, and does not."
    if torch.equal(first, last):
        yield "With its defaults a net must learn something, and its weights stay as they are."


def repeats_itself(method: Method) -> Sentences:
    """The same seed gives the same weights."""
    one, two = (train(method, method.settings())[-1] for _ in range(2))
    if not torch.equal(one, two):
        yield "The same seed must give the same weights: draw from `generator` alone."


def trains_anywhere_in_its_space(method: Method) -> Sentences:
    """A net trains with any settings of its search space."""
    rng = np.random.default_rng(0)
    for _ in range(6 if method.space else 0):
        settings = method.draw_settings(rng)
        if not are_finite(*train(method, settings, epochs=1)):
            yield f"The loss of a small net must stay finite with {settings}, and does not."


def trains_within_groups(method: Method) -> Sentences:
    """A net trains with groups whose rows must not be mixed."""
    groups = torch.arange(120) // 11
    if not are_finite(*train(method, method.settings(), epochs=1, groups=groups)):
        yield "The loss of a small net must stay finite within groups, and does not."


def searches_around_its_defaults(method: Method) -> Sentences:
    """Its search space holds its defaults, and reaches down to almost off."""
    for name, choice in method.space.items():
        if name not in method.defaults:
            yield f"`space` has {name!r}, which must be among the `defaults` too."
        elif not isinstance(choice, Between | OneOf):
            came = type(choice).__name__
            yield f"`space[{name!r}]` must be a Between or a OneOf, got a {came}."
        elif not _holds(choice, method.defaults[name]):
            yield f"`space[{name!r}]` must hold the default {method.defaults[name]!r}."
    for start in method.starts:
        for name in start.keys() - method.defaults.keys():
            yield f"`starts` has {name!r}, which must be among the `defaults` too."
    strength = method.space.get("p")
    # One that only draws other batches has no share of them in which it acts.
    if (
        method.space
        and method.augmentation is not Identity
        and not (isinstance(strength, Between) and strength.low <= 0.05)
    ):
        yield "`space` must reach down to almost off: give it p=Between(0.05, 1.0)."


def names_its_settings(method: Method) -> Sentences:
    """An unknown setting is an error."""
    try:
        method.settings(no_such_setting=1)
    except UnknownNameError:
        return
    yield "An unknown setting must be an error: the augmentation must not take **options."


def goes_to_other_processes(method: Method) -> Sentences:
    """It can be sent to a worker process."""
    try:
        pickle.dumps(method)
    except Exception as error:
        yield (
            f"Worker processes must get a copy of it, and pickle says: {error}. Define the "
            "augmentation in a module, not in a function and not by lambda."
        )


METHOD_CHECKS: tuple[Check[Method], ...] = (
    has_sensible_defaults,
    has_an_augmentation,
    has_plain_settings,
    trains,
    repeats_itself,
    trains_anywhere_in_its_space,
    trains_within_groups,
    searches_around_its_defaults,
    names_its_settings,
    goes_to_other_processes,
)


def make_table() -> tuple[Tensor, Tensor]:
    """Return a small table whose targets are a curved function of four inputs, with noise."""
    generator = _random.make_generator()
    x = torch.randn(120, 4, generator=generator)
    noise = torch.randn(120, 1, generator=generator)
    return x, x.sin().sum(1, keepdim=True) + 0.1 * noise


def train(
    method: Method,
    settings: Options,
    *,
    epochs: int = 3,
    seed: int = 0,
    groups: Tensor | None = None,
) -> list[Tensor]:
    """Train a small net as the settings say; return the weights after every epoch."""
    x, y = make_table()
    with _random.seeded(seed):
        net = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.1), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    ready = method.prepare(settings, seed=seed).fit(x, y, groups=groups)
    augmentation, sampler = ready.augmentation, ready.sampler(y, 16, groups=groups)
    at = augmentation.at(net, INPUT if settings["place"] == INPUT else _LAYER)
    history = []
    for epoch in range(epochs):
        augmentation.progress = epoch / epochs
        for batch in sampler:
            own = at if groups is None else at.within(groups=groups[batch])
            loss = F.mse_loss(*own(x[batch], y[batch]))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        history.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    return history


def _holds(choice: Between | OneOf, value: object) -> bool:
    if isinstance(choice, OneOf):
        return value in choice.values
    return isinstance(value, int | float) and choice.low <= value <= choice.high

"""What every augmentation keeps to."""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from regaug import _random
from regaug.augment.base import AnyAugmentation, Augmentation
from regaug.exceptions import ArgumentError, ArgumentTypeError, PlaceError, RegaugError
from regaug.testing.batches import all_equal, are_finite, make_batch, make_ugly
from regaug.testing.contract import Check, go_through

Sentences = Iterator[str]

ROWS = 100  # training rows that an augmentation may learn from, beside those of a batch
SHAPES = [((12, 3), (12,)), ((12, 3), (12, 1)), ((12, 2, 5), (12, 3)), ((12, 1), (12, 2, 2))]
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_augmentation(augmentation: AnyAugmentation) -> None:
    """Check that an augmentation of your own does what all of them do.

    Args:
        augmentation: One with the settings that are to be tried; it is copied, not changed. What it
            learns in ``fit`` it learns from rows that are made up.

    Raises:
        ContractError: Something is missing; the message says all of it, and what to do.

    Example:
        >>> from regaug import Mixup
        >>> check_augmentation(Mixup(alpha=0.5))
    """
    if not isinstance(augmentation, Augmentation):
        came = augmentation.__name__ if isinstance(augmentation, type) else repr(augmentation)
        raise ArgumentTypeError(
            "`augmentation` must be an object whose class derives from "
            f"regaug.augment.Augmentation, got {came}."
        )
    name = type(augmentation).__name__
    go_through(AUGMENTATION_CHECKS, augmentation, name=name, word="augmentation")


def is_written(own: AnyAugmentation) -> Sentences:
    """Its class says how to draw and how to transform."""
    for method in ("draw", "transform"):
        if getattr(type(own), method) is getattr(Augmentation, method):
            yield f"Its class has no `{method}`: write one, see regaug.augment.Augmentation."
    if type(own).forward is not Augmentation.forward:
        yield "Its class has a `forward` of its own: write `draw` and `transform` instead."


def is_off_outside_training(own: AnyAugmentation) -> Sentences:
    """In eval mode a call returns the batch that it is given."""
    x, y = make_batch()
    new_x, new_y = make_ready(own, x, y).eval()(x, y)
    if new_x is not x or new_y is not y:
        yield "In eval mode it must return x and y themselves, got others."


def has_neutral_parameters(own: AnyAugmentation) -> Sentences:
    """The neutral parameters leave a batch as it is."""
    x, y = make_batch()
    ready = make_ready(own, x, y)
    if not all_equal(ready.transform(x, y, ready.neutral), ready.originals(x, y)):
        yield "`transform(x, y, neutral)` must leave the batch as it is, and changes it."


def keeps_shapes_and_dtypes(own: AnyAugmentation) -> Sentences:
    """Any shapes and any floating-point dtype are kept."""
    for (x_shape, y_shape), dtype in ((s, d) for s in SHAPES for d in DTYPES):
        x, y = make_batch(x_shape, y_shape, dtype=dtype)
        ready = make_ready(own, x.float(), y.float())
        new = ready(x, y)
        for letter, before, after in zip("xy", ready.originals(x, y), new, strict=True):
            if (before.shape, before.dtype) != (after.shape, after.dtype):
                yield (
                    f"`{letter}` must keep its shape and dtype, {tuple(before.shape)} of {dtype}, "
                    f"got {tuple(after.shape)} of {after.dtype}. Work on rows, "
                    "`x.reshape(len(x), -1)`, in float32, and go back at the end."
                )
        if not are_finite(*new):
            yield f"A harmless batch of {dtype} must stay finite, got NaN or infinity."


def leaves_the_batch_alone(own: AnyAugmentation) -> Sentences:
    """The caller's tensors are not changed."""
    x, y = make_batch()
    before, ready = (x.clone(), y.clone()), make_ready(own, x, y)
    for _ in range(5):
        ready(x, y)
    if not all_equal((x, y), before):
        yield "It must not change the tensors it is given: leave out operations in place."


def draws_from_its_generator_alone(own: AnyAugmentation) -> Sentences:
    """Equal generators give equal results, whatever the global generator does."""
    x, y = make_batch()
    found = []
    for seed in (1, 2):
        with _random.seeded(seed):
            before = torch.random.get_rng_state()
            ready = make_ready(own, x, y, seed=3)
            found.append([tensor for _ in range(3) for tensor in ready(x, y)])
            if not torch.equal(before, torch.random.get_rng_state()):
                yield "It must draw from `self.generator`, and draws from torch's global one."
    if not all_equal(*found):
        yield "Equal generators must give equal results: draw from `self.generator` alone."


def survives_ugly_batches(own: AnyAugmentation) -> Sentences:
    """Batches without spread, of few rows or of extreme scale stay finite, with their gradients."""
    for kind, batch in make_ugly(even=own.paired).items():
        try:
            if (sentence := _survive(own, kind, *batch)) is not None:
                yield sentence
        except Exception as error:  # it is somebody else's code that is tried
            came = f"{type(error).__name__}: {error}"
            yield f"A batch of {kind} must go through, and ends with {came}"


def _survive(own: AnyAugmentation, kind: str, x: Tensor, y: Tensor) -> str | None:
    try:
        ready = make_ready(own, x, y, seed=1, again=True)
    except RegaugError:
        return None  # it may refuse, in words, to learn from such rows
    for _ in range(5):
        leaf = x.clone().requires_grad_()
        new_x, new_y = ready(leaf, y)
        if not are_finite(new_x, new_y):
            return f"A batch of {kind} must stay finite, got NaN or infinity."
        (new_x.mean() + new_y.mean()).backward()  # type: ignore[no-untyped-call]
        if not are_finite(leaf.grad):
            return f"The gradient through a batch of {kind} must be finite, and is not."
    return None


def takes_any_number_of_rows(own: AnyAugmentation) -> Sentences:
    """One row, and odd numbers of rows, are batches too."""
    for n in () if own.paired else (1, 3, 7):
        x, y = make_batch((n, 3), (n,))
        new_x, new_y = make_ready(own, x, y)(x, y)
        if (new_x.shape, new_y.shape) != (x.shape, y.shape):
            yield f"A batch of {n} rows must stay one, got {len(new_x)} and {len(new_y)} rows."


def acts_at_a_layer(own: AnyAugmentation) -> Sentences:
    """A net with it at a layer trains, with finite gradients."""
    x, y = make_batch((16, 3), (16, 1))
    with _random.seeded(0):
        net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    try:
        at = make_ready(own, x, y).at(net, "1")
    except PlaceError:
        return  # it may refuse, in words, to act there
    for _ in range(5):
        net.zero_grad()
        loss = F.mse_loss(*at(x, y))
        loss.backward()  # type: ignore[no-untyped-call]
        if not are_finite(loss, *(parameter.grad for parameter in net.parameters())):
            yield "Loss and gradients of a net with it at a layer must be finite, and are not."
            return


def can_be_copied(own: AnyAugmentation) -> Sentences:
    """A copy, and what comes out of pickle, goes on as the original does."""
    x, y = make_batch()
    ready = make_ready(own, x, y)
    ready(x, y)
    ways = {"copy.deepcopy": copy.deepcopy(ready), "pickle": pickle.loads(pickle.dumps(ready))}  # noqa: S301
    expected = ready(x, y)
    for way, other in ways.items():
        if not all_equal(other(x, y), expected):
            yield (
                f"What comes out of {way} must go on with the same draws, and does not: keep what "
                "it needs in attributes."
            )


def can_be_saved(own: AnyAugmentation) -> Sentences:
    """A saved state restores what it has learned and where its draws are."""
    x, y = make_batch()
    ready, other = make_ready(own, x, y), make_plain(own)
    ready(x, y)
    state = copy.deepcopy(ready.state_dict())
    expected = ready(x, y)
    other.load_state_dict(state)
    if not all_equal(other(x, y), expected):
        yield (
            "`load_state_dict(state_dict())` must restore all that it has learned, and does not: "
            "register tensors with `self.register_buffer(name, tensor)` in the constructor."
        )


def moves_with_a_model(own: AnyAugmentation) -> Sentences:
    """It moves to other devices and precisions, as a module does."""
    x, y = make_batch()
    ready = make_ready(own, x, y).to(torch.float64).to("cpu").half().float()
    if not are_finite(*ready(x, y)):
        yield "After `.half().float()` its results must be finite, and are not."


def can_be_weakened(own: AnyAugmentation) -> Sentences:
    """With p=0, and where anneal ends, a batch is left as it is."""
    x, y = make_batch()
    off, annealed = make_ready(own, x, y), make_ready(own, x, y)
    off.p, annealed.anneal = 0.0, 0.5
    annealed.progress = 0.5
    for option, ready in (("p=0.0", off), ("anneal=0.5 at half of training", annealed)):
        if not all_equal(ready(x, y), ready.originals(x, y)):
            yield f"With {option} a batch must be left as it is, and is not."


def can_append(own: AnyAugmentation) -> Sentences:
    """With append=True the originals come first, then the new samples."""
    x, y = make_batch()
    ready = make_ready(own, x, y)
    ready.append = True
    new, old = ready(x, y), ready.originals(x, y)
    n = len(old[0])
    if not all_equal([part[:n] for part in new], old):
        yield "With append=True the originals must come first, and do not."
    if len({len(part) for part in new}) > 1 or len(new[0]) not in (n, 2 * n):
        came = " and ".join(str(len(part)) for part in new)
        yield f"With append=True {n} rows must become {2 * n}, got {came}."


def takes_several_tensors(own: AnyAugmentation) -> Sentences:
    """Several inputs are augmented as one table of all their columns."""
    x, y = make_batch((12, 5))
    parts: dict[str, Any] = {"a": x[:, :2], "b": (x[:, 2:4], x[:, 4])}
    expected = make_ready(own, x, y)(x, y)
    new, new_y = make_ready(own, x, y)(parts, y)
    rows = torch.cat([new["a"], new["b"][0], new["b"][1][:, None]], dim=1)
    if not all_equal((rows, new_y), expected):
        yield "A dict of inputs must give what a table of all their columns gives, and does not."


def keeps_groups_apart(own: AnyAugmentation) -> Sentences:
    """With groups, no row depends on a row of another group, and one that is alone stays."""
    x, y = make_batch((14, 3), (14,), dtype=torch.float64)
    # Two groups and a row that is alone; with partners each pair is of one group.
    groups = torch.tensor([0, 0, 0, 1, 1, 1, 2] * 2 if own.paired else [0] * 7 + [1] * 6 + [2])
    others = groups == 1
    shift = others.double()
    found = [
        make_ready(own, x, y, groups=groups)(*batch, groups=groups)
        for batch in ((x, y), (x + 7.0 * shift[:, None], y - 3.0 * shift))
    ]
    kept = groups[: len(found[0][0])] == 0
    for letter, before, after in zip("xy", *found, strict=True):
        if not torch.equal(before[kept], after[kept]):
            yield (
                f"With groups, `{letter}` of a row must not depend on rows of other groups, and "
                "does: use nothing but the rows that `draw` and `transform` are given."
            )
    if (
        own.company in ("partner", "batch")
        and not own.paired
        and not all_equal((found[0][0][-1], found[0][1][-1]), (x[-1], y[-1]))
    ):
        yield "A row that is alone in its group must stay as it is, and does not."
    if len(found[0][0]) != len(kept):
        yield f"With groups {len(kept)} rows must come out, got {len(found[0][0])}."


def keeps_to_a_mask(own: AnyAugmentation) -> Sentences:
    """With a mask, what is not there stays and has no influence; or the mask is refused."""
    x, y = make_batch((12, 2, 5), (12, 2))
    mask = make_batch((12, 2, 5), (12,), seed=3)[0] > 0
    ready = make_ready(own, x, y)
    try:
        new_x, new_y = ready(x, y, mask=mask)
    except ArgumentError as error:
        if "`mask`" not in str(error) or own.takes_mask:
            yield f"A mask must be taken, or refused in an error about `mask`, got: {error}"
        return
    old_x, old_y = ready.originals(x, y)
    is_gone = ~mask[: len(old_x)]
    if (new_x.shape, new_y.shape) != (old_x.shape, old_y.shape):
        yield "With a mask, shapes must be kept, and are not."
        return
    if not torch.equal(new_x[is_gone], old_x[is_gone]):
        yield "With a mask, values that are not there must stay as they are, and do not."
    changed = torch.where(mask, x, x + 5.0)
    again_x, again_y = make_ready(own, x, y)(changed, y, mask=mask)
    if not all_equal((again_x[~is_gone], again_y), (new_x[~is_gone], new_y)):
        yield "With a mask, nothing may depend on values that are not there, and something does."


def acts_in_a_stack(own: AnyAugmentation) -> Sentences:
    """Several runs at once give what each of them gives alone."""
    x, y = make_batch((3, 12, 3), (3, 12, 1), dtype=torch.float64)

    def make_runs() -> list[AnyAugmentation]:
        return [make_ready(own, *rows, seed=run) for run, rows in enumerate(zip(x, y, strict=True))]

    stacked = type(own).across_runs(make_runs(), x, y)
    alone = [ready(*rows) for ready, rows in zip(make_runs(), zip(x, y, strict=True), strict=True)]
    for new, ones in zip(stacked, zip(*alone, strict=True), strict=True):
        if not torch.allclose(new, torch.stack(ones), rtol=0.0, atol=1e-9):
            yield (
                "`across_runs` must give what each run gives alone, and does not: leave out "
                "`across`, or draw in the same order."
            )
            return


AUGMENTATION_CHECKS: tuple[Check[AnyAugmentation], ...] = (
    is_written,
    is_off_outside_training,
    has_neutral_parameters,
    keeps_shapes_and_dtypes,
    leaves_the_batch_alone,
    draws_from_its_generator_alone,
    survives_ugly_batches,
    takes_any_number_of_rows,
    acts_at_a_layer,
    can_be_copied,
    can_be_saved,
    moves_with_a_model,
    can_be_weakened,
    can_append,
    takes_several_tensors,
    keeps_groups_apart,
    keeps_to_a_mask,
    acts_in_a_stack,
)


def make_plain(own: AnyAugmentation, *, seed: int = 0) -> AnyAugmentation:
    """Return a copy that always acts and returns the new samples alone."""
    new: Any = copy.deepcopy(own).train()
    new.p, new.append, new.anneal = 1.0, False, None
    new.generator.manual_seed(seed)
    return new  # type: ignore[no-any-return]


def make_ready(
    own: AnyAugmentation,
    x: Tensor,
    y: Tensor,
    *,
    seed: int = 0,
    again: bool = False,
    groups: Tensor | None = None,
) -> AnyAugmentation:
    """Return such a copy that has seen these rows, and enough others to learn from.

    With ``again`` the others are the same rows again. With ``groups`` of these rows the others are
    of the first three groups in turn.
    """
    others = make_batch((ROWS, *x.shape[1:]), (ROWS, *y.shape[1:]), seed=1, dtype=x.dtype)
    if again:
        times = -(-ROWS // len(x))
        others = torch.cat([x] * times), torch.cat([y] * times)
    rows = (torch.cat(pair) for pair in zip((x, y), others, strict=True))
    if groups is not None:
        groups = torch.cat([groups, torch.arange(len(others[0])) % 3])
    return make_plain(own, seed=seed).fit(*rows, groups=groups)

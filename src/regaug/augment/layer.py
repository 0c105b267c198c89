"""Act at a layer: augment what a module puts out, and hand back the targets that go with it."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy as duplicate
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar
from weakref import ref

import torch
from torch import Tensor, nn

from regaug import _random
from regaug._registry import unknown
from regaug.augment import recomputation
from regaug.augment.limits import Labels
from regaug.augment.outputs import check_rows, find_item
from regaug.augment.structures import Batch, Joined, replace_item
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    PlaceError,
    RegaugError,
    UnknownNameError,
)

INPUT = "input"
Output = TypeVar("Output")
Y = TypeVar("Y", bound=Batch)
Params = TypeVar("Params", covariant=True)
Augment = Callable[..., tuple[Any, Tensor]]


class _Acts(Protocol[Params]):
    """What acts at a layer: an augmentation."""

    training: bool
    generator: torch.Generator

    @property
    def params(self) -> Params: ...
    def __call__(
        self, x: Any, y: Tensor, /, *, mask: Batch | None = None, groups: Labels | None = None
    ) -> tuple[Any, Tensor]: ...
    def observing(self, x: object, y: Tensor) -> AbstractContextManager[None]: ...


def check_is_input(place: str | Sequence[str], why: str, way_out: str) -> None:
    """Refuse other places than the inputs; ``why`` is a sentence that ends with their names."""
    places = [place] if isinstance(place, str) else list(place)
    if places != [INPUT]:
        raise PlaceError(f"{why} {', '.join(map(repr, places))}. {way_out}")


class AtLayer(Generic[Params]):
    """An augmentation that acts at a layer of a model: ``prediction, new_y = at_layer(x, y)``.

    The model is called once, with ``x`` and whatever else is given. Outside training (either
    ``model.eval()`` or the augmentation's) nothing is augmented. In training a model made by
    ``torch.compile`` runs uncompiled. ``place`` is where it acted last.
    """

    def __init__(
        self,
        augmentation: _Acts[Params],
        model: nn.Module,
        place: str | Sequence[str],
        *,
        output: int | str | None = None,
    ) -> None:
        names = (place,) if isinstance(place, str) else tuple(place)
        if not names:
            raise ArgumentError("`place` must name at least one layer, got an empty list.")
        self.place: str = names[0]
        self.augmentation = augmentation
        self._modules = {name: _find(model, name) for name in names}
        self._model = model
        self._output = output
        self._has_compiled = any(_is_compiled(module) for module in model.modules())
        self._limits: dict[str, Any] = {}

    @property
    def params(self) -> Params:
        """What the augmentation drew for the last batch."""
        return self.augmentation.params

    def within(self, *, groups: Labels | None = None, mask: Batch | None = None) -> Self:
        """Return one that keeps to the groups of a batch's rows, or to a mask.

        ``prediction, new_y = augment.at(net, "rnn").within(groups=labels)(x, y)``: the arguments of
        the call itself are the model's. They are as in a call of the augmentation; the mask says
        which values are there of what the layer puts out.
        """
        given = {"groups": groups, "mask": mask}
        own = duplicate(self)
        own._limits = {name: value for name, value in given.items() if value is not None}
        return own

    # What a model returns is its own affair.
    def __call__(self, x: Any, y: Y, *args: Any, **kwargs: Any) -> tuple[Any, Y]:
        """Return the model's prediction and the targets that belong to it.

        ``x``, ``args`` and ``kwargs`` are the model's arguments; ``y`` has a row for each of ``x``,
        and comes back in its form if it is several tensors.
        """
        return self.call(lambda x: self._model(x, *args, **kwargs), x, y)

    def call(self, forward: Callable[[Any], Output], x: Any, y: Y) -> tuple[Output, Y]:
        """Like a call, for a model that is run by ``forward(x)``, once."""
        if not self._is_active():
            return forward(x), y
        if isinstance(y, Tensor):
            return self._call(forward, x, y)  # type: ignore[return-value]  # in its own form
        targets = Joined("y", y)
        prediction, rows = self._call(forward, x, targets.rows)
        return prediction, targets.back(rows)

    def _call(self, forward: Callable[[Any], Output], x: Any, y: Tensor) -> tuple[Output, Tensor]:
        is_compiled = self._has_compiled or _is_compiled(self._model)
        with _uncompiled() if is_compiled else nullcontext():
            return self._run(forward, x, y)

    def act_in(self, step: Callable[[Any, Tensor], Output], x: Any, y: Tensor) -> Output:
        """Run ``step(x, y)``, anything that runs the layer once, and return what it returns.

        For a training step that is not ours to write. The ``y`` it is given is a copy that gets
        the new targets when the layer runs. What is compiled runs uncompiled.
        """
        if not self._is_active():
            return step(x, y)
        if not isinstance(y, Tensor):
            raise ArgumentTypeError(
                "`y` must be one tensor for `act_in`, which fills in the targets when the layer "
                f"runs, got {type(y).__name__}. Put them side by side, or call at(model, place)."
            )
        copy = y.clone()
        with _uncompiled():
            output, _ = self._run(lambda x: step(x, copy), x, y, copy)
        return output

    def _is_active(self) -> bool:
        return self.augmentation.training and self._model.training

    def _run(
        self, forward: Callable[[Any], Output], x: Any, y: Tensor, copy: Tensor | None = None
    ) -> tuple[Output, Tensor]:
        """Run the model and augment at one of the places; fill ``copy`` with the new targets."""
        if len(names := list(self._modules)) > 1:
            draw = partial(_random.integer, len(names), self.augmentation.generator)
            self.place = names[recomputation.same_again(self, draw)]
        module = self._modules[self.place]
        if module is None:
            x, y = self._augment(self.place, x, y)
            y = _fill(copy, y, self.place)
            return forward(x), y
        call = _Call(self, x, y, copy)
        remove = module.register_forward_hook(call).remove
        try:
            with self.augmentation.observing(x, y):
                output = forward(x)
        except BaseException as error:
            remove()
            call.explain(error)
            raise
        if (found := call.end(remove)) is None:
            raise PlaceError(
                f"The module {self.place!r} did not run in the model's forward pass. Name one that "
                "does; a module inside a compiled function cannot be reached."
            )
        return output, found

    def _augment(
        self, place: str, output: Any, y: Tensor, augment: Augment | None = None
    ) -> tuple[Any, Tensor]:
        """Augment what a module put out: a tensor, or one item of several."""
        augment = augment or self.augmentation
        if place == INPUT:
            return augment(output, y, **self._limits)
        key = find_item(place, output, self._output)
        chosen = output if key is None else output[key]
        check_rows(place, chosen, len(y), self._modules[place])
        new, new_y = augment(chosen, y, **self._limits)
        return new if key is None else replace_item(output, key, new), new_y


class _Call:
    """One forward pass: a hook that augments what a module puts out.

    If the module is in a checkpointed part of the model, it stays until the graph is gone, and does
    the same when that part is recomputed.
    """

    new_y: Tensor | None = None
    _late: "_Late | None" = None
    _remove: Callable[[], None] | None = None

    def __init__(self, at: AtLayer[Any], x: object, y: Tensor, copy: Tensor | None) -> None:
        self.at, self.place = at, at.place
        self.x, self.y, self.copy = x, y, copy
        self.around = recomputation.running()
        self._parts: dict[int, ref[object]] = {}  # those in which the module ran

    def __reduce__(self) -> tuple[object, ...]:
        return partial, (_do_nothing,)  # in a copy of the model

    def __call__(self, module: nn.Module, inputs: object, output: Any) -> Any:
        if self._remove is not None:
            return self._act_again(output)
        if self.new_y is not None:
            raise PlaceError(
                f"The module {self.place!r} runs more than once in a forward pass, so it is not "
                "clear which output is meant. Name a module that runs once."
            )
        new, new_y = self.at._augment(self.place, output, self.y)
        if recomputation.may_be_needed():
            new_y = self._note_parts(new_y)
        # Now, not when the model is done: another augmentation at a later layer may read it.
        self.new_y = _fill(self.copy, new_y, self.place)
        return new

    def explain(self, error: BaseException) -> None:
        """Say what may have led to the error of a model: another number of rows than it expects."""
        if self.new_y is not None and len(self.new_y) != len(self.y):
            error.add_note(
                f"The augmentation at {self.place!r} had made {len(self.new_y)} rows of "
                f"{len(self.y)}. If the model has several branches, the others still have "
                f"{len(self.y)}: act at a layer behind the place where they meet."
            )

    def end(self, remove: Callable[[], None]) -> Tensor | None:
        """Take the hook out, now or when nothing can be recomputed any more; return the targets."""
        # They must not be kept here: they keep the graph, and its end is what the hook waits for.
        new_y, self.new_y, self.copy = self.new_y, None, None
        if self._parts:
            self._remove = remove
        else:
            remove()
        return new_y

    def _note_parts(self, new_y: Tensor) -> Tensor:
        parts = [part for part in recomputation.running().first if part not in self.around.first]
        self._keep(parts)
        if not parts or torch.is_grad_enabled():
            return new_y
        # The part runs without gradients, but its targets leave it by a way of their own.
        self._late = _Late()
        with torch.enable_grad():
            caught: Tensor = _Catch.apply(new_y.detach().requires_grad_(), self._late)  # type: ignore[no-untyped-call]
            return caught

    def _act_again(self, output: Any) -> Any:
        parts = recomputation.running()
        if not any(id(part) in self._parts for part in parts.again):
            return output
        self._keep(parts.first)
        with self.at.augmentation.observing(self.x, self.y):
            return self.at._augment(self.place, output, self.y, self._augment_again)[0]

    def _augment_again(self, output: Tensor, y: Tensor, **limits: Any) -> tuple[Tensor, Tensor]:
        new, new_y = self.at.augmentation(output, y, **limits)
        if self._late is not None and new_y.requires_grad:
            self._late.recomputed_in = torch._C._current_graph_task_id()
            new = _AddLate.apply(new, new_y, self._late)  # type: ignore[no-untyped-call]
        return new, new_y

    def _keep(self, parts: Sequence[object]) -> None:
        for part in parts:
            self._parts[id(part)] = ref(part, self._forget)

    def _forget(self, gone: ref[object]) -> None:
        self._parts = {key: part for key, part in self._parts.items() if part is not gone}
        if not self._parts and self._remove is not None:
            self._remove()


class _Late:
    """The gradient of targets that were made in a part which runs without gradients."""

    grad: Tensor | None = None
    recomputed_in = -1


class _Catch(torch.autograd.Function):
    """Keep the gradient of the targets for the recomputation of the part that made them."""

    @staticmethod
    def forward(ctx: Any, new_y: Tensor, late: _Late) -> Tensor:
        ctx.late = late
        return new_y.view_as(new_y)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None]:
        if ctx.late.recomputed_in == torch._C._current_graph_task_id():
            raise RegaugError(
                "The gradient of the new targets came after the layer that made them had been "
                "recomputed. Call checkpoint(..., use_reentrant=False)."
            )
        ctx.late.grad = grad
        return None, None


class _AddLate(torch.autograd.Function):
    """Return a tensor; its gradient brings that of the targets along."""

    @staticmethod
    def forward(ctx: Any, new: Tensor, new_y: Tensor, late: _Late) -> Tensor:
        ctx.late = late
        return new.view_as(new)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        late, ctx.late.grad = ctx.late.grad, None
        return grad, late, None


def _do_nothing(module: nn.Module, inputs: object, output: object) -> None: ...


def _fill(copy: Tensor | None, new_y: Tensor, place: str) -> Tensor:
    """Put the new targets into the copy that a training step was given, if there is one."""
    if copy is None:
        return new_y
    if new_y.shape != copy.shape:
        raise PlaceError(
            f"The augmentation at {place!r} made {len(new_y)} samples of {len(copy)}, but the "
            "training step has its targets already. Act on the inputs, or call "
            "`prediction, new_y = augment.at(model, place)(x, y)` in a step of your own."
        )
    with torch.enable_grad() if new_y.requires_grad else nullcontext():
        return copy.copy_(new_y)


def _is_compiled(module: nn.Module) -> bool:
    return "_orig_mod" in module._modules or module._compiled_call_impl is not None


def _uncompiled() -> AbstractContextManager[Any]:
    """Run everything as it is written: a compiled layer does not look for hooks."""
    # Nothing is compiled before this module is imported, which takes its time.
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


def _find(model: nn.Module, name: str) -> nn.Module | None:
    """Return the module called ``name``, None for the model's input."""
    try:
        if name:
            return model.get_submodule(name)
    except AttributeError:
        if name == INPUT:
            return None
    names = [known for known, _ in model.named_modules() if known]
    raise UnknownNameError(unknown("layer", name, [*names, INPUT]))

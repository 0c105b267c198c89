"""Act at a layer: augment what a module puts out, and hand back the targets that go with it."""

import operator
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from regaug import _random
from regaug._registry import unknown
from regaug.augment.base import Augmentation
from regaug.exceptions import ArgumentError, PlaceError, UnknownNameError

INPUT = "input"


class Tap:
    """An augmentation that acts at a layer while the ``with`` block lasts.

    FOMA needs the targets where it acts, but in ``loss(net(x), tap.targets(y))`` the model is
    called before they are known. So in training the call is put off: it returns a stand-in, and
    :meth:`targets` runs the model, once. The stand-in takes part in any torch function or method
    (``net(x).squeeze(1)``) and has values as soon as ``targets`` has been called. To get a plain
    tensor from the model, call :meth:`targets` first: the tensor it returns is filled in when the
    model runs.

    Two taps act in one step when the targets go through both, in the order of their layers:
    ``second.targets(first.targets(y))``.

    Outside training (either ``model.eval()`` or the augmentation's) nothing is changed. In training
    a model made by ``torch.compile`` runs uncompiled.

    Attributes:
        params: What the augmentation drew for the last batch.
        place: Where it acted.
    """

    def __init__(
        self, augmentation: Augmentation[Any], model: nn.Module, place: str | Sequence[str]
    ) -> None:
        names = (place,) if isinstance(place, str) else tuple(place)
        if not names:
            raise ArgumentError("`place` must name at least one layer, got an empty list.")
        self.place: str = names[0]
        self._modules = {name: _find(model, name) for name in names}
        self._augmentation = augmentation
        self._model = model
        self._forward = self._plain_forward = model.forward
        self._waiting: deque[_Later] = deque()  # forward passes that wait for their targets
        self._given: deque[tuple[Tensor, Tensor]] = deque()  # targets that wait for a forward pass

    def __enter__(self) -> Self:
        self._own_forward = self._model.__dict__.get("forward")
        self._plain_forward = self._model.forward
        # A compiled model does not look for hooks any more: run the one it was made from.
        self._forward = getattr(self._model, "_orig_mod", self._plain_forward)
        self._model.forward = self._call
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._own_forward is None:
            del self._model.__dict__["forward"]
        else:
            self._model.forward = self._own_forward
        incomplete = bool(self._waiting or self._given)
        self._waiting.clear()
        self._given.clear()
        if incomplete and error is None:
            raise PlaceError(
                f"Each forward pass at {self._names()} needs one call of `tap.targets(y)`, and the "
                "other way round; the block ended with one of them missing."
            )

    @property
    def params(self) -> Any:
        """What the augmentation drew for the last batch."""
        return self._augmentation.params

    def targets(self, y: Tensor) -> Tensor:
        """Return the targets that belong to the model's output for this batch."""
        if not self._is_active():
            return y
        if self._waiting:
            return self._waiting.popleft().run(y)
        # Not called yet: hand out a tensor that the forward pass will fill in.
        new_y = y.clone()
        self._given.append((y, new_y))
        return new_y

    def around(self, step: Callable[[Tensor, Tensor], Any], x: Tensor, y: Tensor) -> Any:
        """Run ``step(x, y)``, anything that runs the layer once, and return what it returns.

        For a training step that is not ours to write: no ``with`` block and no other call are
        needed. The ``y`` it is given is a copy that gets the new targets when the layer runs. What
        is compiled runs uncompiled.
        """
        if not self._is_active():
            return step(x, y)
        new_y = y.clone()
        with _uncompiled():
            output, _ = self._run(step, self._draw_place(), y, (x, new_y), {}, new_y)
        return output

    def run(self, forward: Callable[[], Any], y: Tensor) -> tuple[Any, Tensor]:
        """Call the model through ``forward``; return its output, no stand-in, and the targets."""
        output = forward()
        new_y = self.targets(y)
        return _values(output), new_y

    def _is_active(self) -> bool:
        return self._augmentation.training and self._model.training

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Stand in for ``model.forward``."""
        if not self._is_active():
            return self._plain_forward(*args, **kwargs)
        place, forward = self._draw_place(), self._forward
        if not self._given:
            later = _Later(lambda y: self._run(forward, place, y, args, kwargs))
            self._waiting.append(later)
            return later.output
        y, placeholder = self._given.popleft()
        output, _ = self._run(forward, place, y, args, kwargs, placeholder)
        return output

    def _draw_place(self) -> str:
        names = list(self._modules)
        if len(names) > 1:
            self.place = names[_random.integer(len(names), self._augmentation.generator)]
        return self.place

    def _run(
        self,
        forward: Callable[..., Any],
        place: str,
        y: Tensor,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        placeholder: Tensor | None = None,
    ) -> tuple[Any, Tensor]:
        """Run the model with the augmentation at ``place``; return its output and the targets."""
        module = self._modules[place]
        if module is None:
            x, y = self._augment(place, args[0] if args else None, y, placeholder)
            return forward(x, *args[1:], **kwargs), y

        new_targets: list[Tensor] = []

        def hook(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
            if new_targets:
                raise PlaceError(
                    f"The module {place!r} runs more than once in a forward pass, so it is not "
                    "clear which output is meant. Name a module that runs once."
                )
            new_output, new_y = self._augment(place, output, y, placeholder)
            new_targets.append(new_y)
            return new_output

        handle = module.register_forward_hook(hook)
        try:
            with self._augmentation.observing(args[0] if args else None, y):
                output = forward(*args, **kwargs)
        finally:
            handle.remove()
        if not new_targets:
            raise PlaceError(
                f"The module {place!r} did not run in the model's forward pass. Name one that "
                "does; a module inside a compiled part of a model cannot be reached."
            )
        return output, new_targets[0]

    def _augment(
        self, place: str, output: Any, y: Tensor, placeholder: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if not isinstance(output, Tensor):
            raise PlaceError(
                f"An augmentation acts on a tensor, but the module {place!r} puts out a "
                f"{type(output).__name__}. Name a module whose output is a tensor, for instance "
                "the one that takes this output."
            )
        if output.ndim < 2 or len(output) != len(y):
            raise PlaceError(
                f"The output of {place!r} must have a row for each of the {len(y)} targets, got "
                f"shape {tuple(output.shape)}. Name a module that puts the batch axis first."
            )
        new_output, new_y = self._augmentation(output, y)
        if placeholder is None:
            return new_output, new_y
        if new_y.shape != placeholder.shape:
            raise PlaceError(
                f"The augmentation at {place!r} made {len(new_y)} samples of {len(y)}, so "
                "`tap.targets(y)` must be called after the model, not before it."
            )
        # Now, not when the model is done: another tap at a later layer may read it before.
        return new_output, placeholder.copy_(new_y)

    def _names(self) -> str:
        return " or ".join(repr(name) for name in self._modules)


class _NotYetError(PlaceError):
    """A value was asked for before it could be computed."""


class _Later:
    """A forward pass that has been put off until its targets are known."""

    def __init__(self, forward: Callable[[Tensor], tuple[Any, Tensor]]) -> None:
        self._forward = forward
        self._outputs: list[Any] = []
        self.output = _Deferred(self._get)

    def run(self, y: Tensor) -> Tensor:
        output, new_y = self._forward(y)
        self._outputs.append(output)
        return new_y

    def _get(self) -> Any:
        if not self._outputs:
            raise _NotYetError(
                "The model's output has no values before its targets are known. Call "
                "`tap.targets(y)` before you use them, or before you call the model."
            )
        return self._outputs[0]


class _Deferred:
    """Stands in for a value that is computed later; what is done to it is done to the value."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    def _get(self) -> Any:
        if self._compute is not None:
            self._value = self._compute()
            self._compute = None
        return self._value

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _defer(function, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        return _defer(getattr, (self, name), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _defer(_call, (self, args, kwargs), {})

    def __iter__(self) -> Any:
        return iter(self._get())

    def __len__(self) -> int:
        return len(self._get())

    def __bool__(self) -> bool:
        return bool(self._get())

    def __float__(self) -> float:
        return float(self._get())

    def __repr__(self) -> str:
        try:
            return repr(self._get())
        except _NotYetError:
            return "<model output that waits for tap.targets(y)>"


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda *operands: _defer(function, operands, {})


def _reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda right, left: _defer(function, (left, right), {})


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(_Deferred, f"__{_name}__", _operator(_name))
    setattr(_Deferred, f"__r{_name}__", _reflected(_name))
for _name in ("neg", "abs", "getitem", "lt", "le", "gt", "ge"):
    setattr(_Deferred, f"__{_name}__", _operator(_name))


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


def _defer(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call ``function`` now if all its arguments have values, else stand in for its result."""

    def compute() -> Any:
        return function(*_values(args), **_values(kwargs))

    try:
        return compute()
    except _NotYetError:
        return _Deferred(compute)


def _values(item: Any) -> Any:
    """Replace every stand-in in nested lists, tuples and dicts by its value."""
    if isinstance(item, _Deferred):
        return item._get()
    if isinstance(item, dict):
        return {key: _values(value) for key, value in item.items()}
    if type(item) in (list, tuple):
        return type(item)(_values(value) for value in item)
    return item


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

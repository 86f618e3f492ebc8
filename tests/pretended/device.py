"""A pretended accelerator: the device "pretended", which computes on the CPU.

Boundary: a test double of torch's side only; knows nothing of the engine.  Importing it registers
the device for the rest of the process (PyTorch cannot undo that), so the tests that use it run in
a process of their own (tests/machine/test_pretended_accelerator.py).

It proves that code keeps its tensors on the device: as on CUDA, an operation on a tensor of the
device and one of the CPU is refused, unless the latter has no dimensions or is an index, and so
is numpy().  Its clock proves that code waits for the device before it reads the time: operations
are queued, 1 virtual millisecond each, and the host's time stands still until it waits.

It does not prove anything about speed, memory, rounding, CUDA's own kernels, graphs and streams,
lower-level libraries, or real asynchrony: values are computed at once, so code that reads them too
early still sees them.  Random numbers are the CPU's.  inference_mode() only turns gradients off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._contextlib import _DecoratorContextManager
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "pretended"
COPIES = {"aten::copy_", "aten::_to_copy"}  # these may have tensors on both sides
INDEXING = {"aten::index", "aten::index_put_", "aten::index_put"}  # CUDA copies CPU indices itself
# Their values or sizes are known to the host only when the device has computed them.
WAITING = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::masked_select"}
ON_HOST = {"aten::_local_scalar_dense", "aten::equal"}  # these give no tensor of the device


class Clock:
    """Virtual time in ms: what the host has lived through, and when the device's queue ends."""

    def __init__(self) -> None:
        self.host = self.queue_end = 0.0
        self.operations = 0

    def queue(self) -> None:
        """One operation: 1 ms on the device after what is queued, and no time on the host."""
        self.operations += 1
        self.queue_end = max(self.queue_end, self.host) + 1.0

    def wait(self, *_: object) -> None:
        """The host waits until the queue is empty."""
        self.host = max(self.host, self.queue_end)

    def perf_counter(self) -> float:
        """The host's time in seconds, in place of time.perf_counter."""
        return self.host / 1000


clock = Clock()


class Pretended(torch.Tensor):
    """A tensor on the device; `held` has its values, on the CPU."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Pretended:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})

    def __repr__(self, **_: object) -> str:
        return f"Pretended({self.held})"

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made: Any = self.detach().clone()
        if isinstance(self, torch.nn.Parameter):
            made = torch.nn.Parameter(made, self.requires_grad)
        return memo.setdefault(id(self), made)

    def tolist(self) -> Any:
        clock.wait()
        return self.held.tolist()

    def numpy(self, *_: object, **__: object) -> Any:
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy: copy it to the CPU.")

    __array__ = numpy


def computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operation's result; its tensors are on the device, except for copies to the CPU."""
    name = func._schema.name
    given = [*tensors_in(args), *tensors_in(kwargs.values())]
    refuse_mixed(func, given)
    clock.queue()
    target = kwargs.get("device")
    options = {key: held_of(value) for key, value in kwargs.items()}
    if target is not None:
        options["device"] = "cpu"
    out = func(*held_of(args), **options)
    to_host = target is not None and torch.device(target).type == "cpu"
    if to_host or name in WAITING or (name == "aten::copy_" and not is_there(args[0])):
        clock.wait()
    return out if to_host or name in ON_HOST else on_device(out, given)


def refuse_mixed(func: Any, given: list[torch.Tensor]) -> None:
    """RuntimeError, as on CUDA, if a tensor of the CPU is among the device's."""
    name = func._schema.name
    if name in COPIES:
        return
    for one in given[:1] if name in INDEXING else given:
        if one.dim() > 0 and not is_there(one):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:0 and {one.device}! ({func}, {tuple(one.shape)})"
            )


def is_there(one: object) -> bool:
    return isinstance(one, Pretended)


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, list | tuple):
            yield from tensors_in(one)


def held_of(one: Any) -> Any:
    """The values, on the CPU, of a tensor, or of all tensors in a list or tuple."""
    if isinstance(one, list | tuple):
        return type(one)(map(held_of, one))
    return one.held if isinstance(one, Pretended) else one


def on_device(out: Any, given: list[torch.Tensor]) -> Any:
    """A result as tensors of the device; the given tensor itself if it was changed in place."""
    if isinstance(out, list | tuple):
        return type(out)(on_device(one, given) for one in out)
    if not isinstance(out, torch.Tensor):
        return out
    for before in given:
        if held_of(before) is out:
            assert before.shape == out.shape, "the pretended device cannot resize in place"
            return before
    return Pretended(out)


class Module(_DummyBackendModule):
    """torch.pretended; its random numbers are the CPU's, which torch.manual_seed seeds too."""

    def get_rng_state(self, device: object = None) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: object = None) -> None:
        torch.set_rng_state(state)


class InferenceMode(_DecoratorContextManager):
    """torch.inference_mode without inference tensors, which a subclass like this cannot be."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(torch.is_grad_enabled())
        torch.set_grad_enabled(not self._mode)

    def __exit__(self, *_: object) -> None:
        torch.set_grad_enabled(self._before.pop())

    def clone(self) -> InferenceMode:
        return InferenceMode(self._mode)


class Generator(torch.Generator):
    """The CPU's generator for any device."""

    def __new__(cls, device: object = "cpu") -> Any:
        return super().__new__(cls)


def made_by(function: Callable[..., torch.Tensor]) -> Callable[..., Pretended]:
    """A function that makes tensors, for the device."""

    def make(*args: Any, **options: Any) -> Pretended:
        clock.queue()
        return Pretended(function(*args, **{**options, "device": "cpu", "pin_memory": False}))

    return make


def copied(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """The copy that torch makes by itself, as for torch.tensor([1], device=...)."""
    clock.queue()
    held_of(target).copy_(held_of(source))
    return target


def read(tensor: torch.Tensor) -> Any:
    """The number that torch reads by itself, as for an iteration over a tensor."""
    clock.wait()
    return held_of(tensor).item()


def _register() -> torch.library.Library:
    _setup_privateuseone_for_python_backend(NAME, backend_module=Module())
    library = torch.library.Library("aten", "IMPL")
    for overload in (
        torch.ops.aten.empty.memory_format,
        torch.ops.aten.empty_strided.default,
        torch.ops.aten.arange.default,
        torch.ops.aten.arange.start,
        torch.ops.aten.arange.start_step,
    ):
        library.impl(overload, made_by(overload), "PrivateUse1")
    library.impl("_copy_from", copied, "PrivateUse1")
    library.impl("_local_scalar_dense", read, "PrivateUse1")
    torch.accelerator.synchronize = clock.wait
    torch.accelerator.empty_cache = lambda: None
    torch.inference_mode, torch.Generator = InferenceMode, Generator
    return library


LIBRARY = _register()  # its kernels last as long as this object

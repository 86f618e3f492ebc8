"""Memory given back: after a model is unloaded, after a load that failed, after a run too large.

Boundary: knows devices and exceptions, no models.  An exception keeps every frame it passed
through, and with them the tensors of a run or half a model: `forget` takes them away.
"""

from __future__ import annotations

import gc
import sys
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from engine.errors import OutOfMemory
from engine.machine import device

if TYPE_CHECKING:
    import torch


class Reserve(Protocol):
    """Something in memory that may be dropped when a model needs the room."""

    @property
    def bytes(self) -> int: ...

    def clear(self) -> int:
        """Drops all of it; how many parts there were."""
        ...


_reserves: weakref.WeakSet[Reserve] = weakref.WeakSet()
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@contextmanager
def guard(name: str, on: torch.device) -> Iterator[None]:
    """OutOfMemory, with figures, for a run that its device had no memory for; all of it is freed.

    Clears only frames that have ended: what is guarded should be one call.
    """
    failure: BaseException
    try:
        yield
        return
    except (RuntimeError, MemoryError) as error:  # torch's own is a RuntimeError
        if not is_out_of_memory(error):
            raise
        failure = error
    message = _message(name, on)  # before anything is freed
    forget(failure)
    del failure
    release()
    raise OutOfMemory(message)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is an accelerator's or the CPU allocator's way to say so."""
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError):
        return True
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "not enough memory" in str(error)


def _message(name: str, on: torch.device) -> str:
    one = device.memory_of(on)
    return (
        f"{name} ran out of memory on {on} ({gib(one.free)} of {gib(one.total)} were free then); "
        "what this run held is free again: lower max_new_tokens, unload other models, or choose "
        "a smaller dtype or model."
    )


def gib(size: int) -> str:
    """Bytes in the unit that fits: "13.2 GiB", "41.0 MiB", "8.2 KiB", "12 bytes"."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def forget(error: BaseException) -> None:
    """Clears the local variables of all ended frames that the error and its causes passed."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        todo += [one.__cause__, one.__context__]


def add_reserve(reserve: Reserve) -> None:
    """From now on this is dropped when a model needs the room."""
    _reserves.add(reserve)


def reserved_bytes() -> int:
    """What all reserves hold."""
    return sum(one.bytes for one in list(_reserves))


def clear_reserves() -> bool:
    """Drops all reserves; whether there was anything."""
    return sum(one.clear() for one in list(_reserves)) > 0


def release() -> None:
    """Frees what nobody refers to any more, and hands an accelerator's unused memory back."""
    frozen = gc.get_freeze_count() > 0  # models loaded behind the page are kept out of collections
    if frozen:
        gc.unfreeze()
    gc.collect()
    if frozen:
        gc.freeze()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "accelerator") and torch.accelerator.is_available():
        torch.accelerator.empty_cache()

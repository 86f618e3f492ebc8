"""Frees memory: after a model is unloaded, a load failed, or a run was too large.  An exception
keeps every frame it passed through, with the tensors of a run or half a model in it; `forget`
clears these frames."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import OutOfMemory
from engine.machine import device
from engine.quoting import gib

if TYPE_CHECKING:
    import torch


# What a RuntimeError says where memory is full: the CPU's allocator, CUDA outside torch's allocator
# (a graph, a kernel), and libraries that allocate a workspace of their own.
_FULL = (
    "not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


@contextmanager
def guard(name: str, on: torch.device) -> Iterator[None]:
    """Turns a device's out-of-memory error into OutOfMemory with figures, and frees the memory.
    Only frames that have ended are cleared, so the guarded block should be one call."""
    failure: BaseException
    try:
        yield
        return
    except (RuntimeError, MemoryError) as error:  # torch's own is a RuntimeError
        if not is_out_of_memory(error):
            raise
        failure = error
    room = device.memory_of(on)  # before anything is freed
    forget(failure)
    del failure
    release()
    raise OutOfMemory(
        f"{name} ran out of memory on {on} ({gib(room.free)} of {gib(room.total)} were free then). "
        "The memory of this run is free again: lower max_new_tokens, unload other models, or "
        "choose a smaller dtype or model."
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an accelerator or the CPU allocator reports that memory is full."""
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError):
        return True
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _FULL)


def forget(error: BaseException) -> None:
    """Clears the local variables of all ended frames of the error and its causes, and drops their
    tracebacks: a cleared frame still holds its function, which may close over a model."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
        todo += [one.__cause__, one.__context__]


def release() -> None:
    """Collects garbage, and returns an accelerator's unused memory."""
    frozen = gc.get_freeze_count() > 0  # loaded models are excluded from collections
    if frozen:
        gc.unfreeze()
    gc.collect()
    if frozen:
        gc.freeze()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "accelerator") and torch.accelerator.is_available():
        torch.accelerator.empty_cache()

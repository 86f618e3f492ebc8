"""The device that models run on: which one, its name, and its memory, which is freed after a model
is unloaded, a load failed, or a run was too large.  An exception keeps every frame it passed
through, with the tensors of a run or half a model in it; `forget` clears these frames."""

from __future__ import annotations

import gc
import os
import platform
import shutil
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine import settings
from engine.errors import OutOfMemory, SettingsError
from engine.quoting import gib, quoted

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


def choose(name: str | None = None) -> torch.device:
    """The device in the settings; "auto" is torch's accelerator (CUDA, MPS ...), else the CPU."""
    import torch

    wanted = name or settings.load().device
    here = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if wanted == "auto":
        return here or torch.device("cpu")
    absent: Exception | None = None
    try:
        device = torch.device(wanted)
        torch.empty(1, device=device)
        if device.type in ("cpu", here.type if here else "cpu"):
            return device
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        absent = error
    raise SettingsError(
        f"STAGESCOPE_DEVICE is {quoted(wanted)}, which this machine does not have: use auto or cpu."
    ) from absent


def check() -> None:
    """SettingsError if the settings name a device that this machine does not have."""
    if settings.load().device not in ("auto", "cpu"):
        choose()


@dataclass(frozen=True)
class Memory:
    """A device's memory in bytes: total and free."""

    device: str
    label: str
    total: int
    free: int


def memories() -> tuple[Memory, ...]:
    """The system's memory, and that of every CUDA device torch already runs on.  Without psutil the
    system's is that of POSIX, which does not count caches."""
    try:
        import psutil

        system = psutil.virtual_memory()
        total, free = int(system.total), int(system.available)
    except ImportError:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    found = [Memory("cpu", "system memory", total, free)]
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available():
        found += [_cuda(index) for index in range(torch.cuda.device_count())]
    return tuple(found)


def _cuda(index: int) -> Memory:
    """What this process may use: all of the device, or the share that torch is limited to.  Memory
    that torch holds but no tensor uses counts as free, because torch gives it back."""
    from torch import cuda

    free, total = cuda.mem_get_info(index)
    used = cuda.memory_allocated(index)
    free += cuda.memory_reserved(index) - used
    limit = int(total * cuda.get_per_process_memory_fraction(index))
    name = cuda.get_device_name(index)
    return Memory(f"cuda:{index}", name, limit, max(0, min(free, limit - used)))


def memory_of(device: torch.device) -> Memory:
    """A device's memory; the system's for the CPU and for devices that share its memory (MPS)."""
    found = {one.device: one for one in memories()}
    return found.get(f"{device.type}:{device.index or 0}", found["cpu"])


def memory() -> Memory:
    """What holds weights: an accelerator's memory if torch already uses one, else the system's."""
    found = memories()
    if found[1:] and settings.load().device.partition(":")[0] in ("auto", "cuda"):
        return memory_of(choose())
    return found[0]


def free_bytes() -> int:
    return memory().free


def environment(device: torch.device) -> dict[str, str]:
    """What a measurement depends on besides the model: versions, device, threads."""
    import torch
    import transformers

    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": str(device),
        "hardware": hardware,
        "processor": processor(),
        "threads": str(torch.get_num_threads()),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "system": platform.system(),
    }


@lru_cache(maxsize=64)
def installed(package: str) -> str:
    """The version of a library, or "none": pictures need no av, which decodes videos."""
    from importlib.metadata import PackageNotFoundError, version  # listing samples needs neither

    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def free_disk_bytes(place: Path) -> int | None:
    """Free space of the disk that holds this folder, or will hold it; None if it is not known."""
    try:
        there = next(path for path in (place, *place.absolute().parents) if path.exists())
        return shutil.disk_usage(there).free
    except (OSError, StopIteration):
        return None


def kind(environment: Mapping[str, object]) -> str:
    """The type of device of an environment(): a GPU's name, or a processor with its threads; "" if
    unknown.  No mean contains results of different types."""
    if not environment:
        return ""
    if str(environment.get("device", "cpu")) != "cpu":
        return str(environment.get("hardware", ""))
    name = str(environment.get("processor") or environment.get("hardware", ""))
    threads = str(environment.get("threads", ""))
    return f"{name}, {threads} {'thread' if threads == '1' else 'threads'}" if threads else name


@lru_cache(maxsize=1)
def processor() -> str:
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(errors="replace").splitlines() if cpu.is_file() else []
    named = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    return named or platform.processor() or platform.machine()


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
    room = memory_of(on)  # before anything is freed
    forget(failure)
    del failure
    release()
    raise OutOfMemory(
        f"{name} ran out of memory on {on} ({gib(room.free)} of {gib(room.total)} were free then). "
        "The memory of this run is free again: lower max_new_tokens, unload other models, or "
        "choose a smaller dtype or model."
    )


def is_out_of_memory(error: BaseException) -> bool:
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.OutOfMemoryError)):
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
    frozen = gc.get_freeze_count() > 0  # loaded models are excluded from collections
    if frozen:
        gc.unfreeze()
    gc.collect()
    if frozen:
        gc.freeze()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "accelerator") and torch.accelerator.is_available():
        torch.accelerator.empty_cache()

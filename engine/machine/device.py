"""The device that models run on: which one, its name, and its memory."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine import settings
from engine.errors import SettingsError
from engine.quoting import quoted

if TYPE_CHECKING:
    import torch


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
    """The processor's name, or its architecture."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(errors="replace").splitlines() if cpu.is_file() else []
    named = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    return named or platform.processor() or platform.machine()

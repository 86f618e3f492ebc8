"""The device that models run on: which one, how much memory is free, what it is called.

Boundary: imports torch only when a device other than the CPU may be meant.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

import psutil

from engine import settings
from engine.errors import SettingsError

if TYPE_CHECKING:
    import torch


def choose(name: str | None = None) -> torch.device:
    """The device of the settings; "auto" is torch's accelerator (CUDA, MPS ...), else the CPU."""
    import torch

    wanted = name or settings.load().device
    here = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if wanted == "auto":
        return here or torch.device("cpu")
    try:
        device = torch.device(wanted)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise _absent(wanted) from error
    if device.type not in ("cpu", here.type if here else "cpu"):
        raise _absent(wanted)
    return device


def check() -> None:
    """SettingsError if the settings name a device that is not here; torch is imported only then."""
    if settings.load().device not in ("auto", "cpu"):
        choose()


def _absent(wanted: str) -> SettingsError:
    return SettingsError(
        f"STAGESCOPE_DEVICE is {wanted!r}, which this machine does not have: use auto or cpu."
    )


def free_bytes() -> int:
    """Memory for weights: the accelerator's if torch already runs on one, else the system's."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available():
        wanted = settings.load().device
        if wanted == "auto" or wanted.startswith("cuda"):
            return int(torch.cuda.mem_get_info(choose())[0])
    return int(psutil.virtual_memory().available)


def environment(device: torch.device) -> dict[str, str]:
    """What a figure depends on beside the model: versions, device, threads."""
    import torch
    import transformers

    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": str(device),
        "hardware": hardware,
        "threads": str(torch.get_num_threads()),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "system": platform.system(),
    }

"""The code that runs in an actor: one device, one model at a time, one task after another.

Plain JSON values go in and out, so that what is sent to a worker can never run code.  Expected
errors are returned as sentences; any other error ends the actor, and the driver continues without
it.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins

from engine.benchmark.task_executor import TaskExecutor
from engine.errors import StageScopeError
from engine.models import registry, variants
from engine.storage import provenance
from engine.storage.plan import Plan, Task
from engine.types import Sample

Answer = dict[str, Any]


class Worker:
    """`environment`: variables to set before anything is read or loaded."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        os.environ.update(environment)

    def here(self) -> Answer:
        """Reports that this process runs, and on which machine; returns quickly."""
        return {"machine": machine(), "host": platform.node()}

    def begin(self, run_data: Any, inspect: bool) -> Answer:
        """Accepts the run's plan and samples; reports this device and, for the first worker of a
        node, the node's code, checkpoints and samples."""
        self.plan, root, samples = unpack(run_data)
        self.samples = {sample.id: sample for sample in samples}
        about = {"device": device_here()}
        if inspect:
            about["holds"] = {
                "code": provenance.describe_code(),
                "versions": versions(),
                "root": root.is_dir(),
                "samples": provenance.describe_samples(root, samples),
                "models": {name: _model(name) for name in self.plan.models},
            }
        return about

    def load(self, model: str) -> Answer:
        """Loads this model in place of the last one; "error" is the reason if it fails, or None."""
        try:
            entry = registry.entry(model)
            for other in registry.resident():
                if other != variants.loaded(entry):
                    self.adapter = None
                    registry.unload(other)
            self.task_executor = TaskExecutor(
                self.plan, self.samples, {model: entry}, None, lambda *_: None
            )
            self.adapter = registry.load(entry, self.plan.decode.max_new_tokens)
        except StageScopeError as error:
            return {"error": str(error)}
        return {"error": None}

    def ask(self, model: str, sample: str, repeat: int, phase: str) -> Answer:
        """The "row" of a task, or "absent" with a sentence if the node lacks one of its files."""
        task = Task(model, sample, repeat, "warmup" if phase == "warmup" else "measured")
        chosen = self.samples[sample]
        assert self.adapter is not None
        start = time.monotonic()
        row = self.task_executor.alone(task, self.adapter)
        busy_s = time.monotonic() - start
        if row.error and not provenance.is_here(chosen):
            return {"absent": f"files of sample {sample} are not on this node"}
        return {"row": row.as_dict(), "busy_s": busy_s}


def pack(plan: Plan, root: Path, samples: Sequence[Sample]) -> Any:
    """What a worker needs of a run, as JSON values: paths are texts."""
    return to_builtins((plan, root, list(samples)), enc_hook=str)


def unpack(value: Any) -> tuple[Plan, Path, list[Sample]]:
    return convert(value, tuple[Plan, Path, list[Sample]], dec_hook=lambda of, text: of(text))


def device_here() -> dict[str, Any]:
    """The device of this process, and what it may share with others.

    `unit` identifies it on its machine: the id of a GPU, else the kind of device.
    """
    from engine.machine import device

    chosen = device.choose()
    environment = device.environment(chosen) | {"threads": os.environ["STAGESCOPE_THREADS"]}
    name = unit = environment["device"]
    if name.startswith("cuda"):  # its number differs between processes
        import torch

        unit = str(torch.cuda.get_device_properties(name).uuid)
    return {
        "name": name,
        "type": device.kind(environment),
        "unit": unit,
        "pid": os.getpid(),
        "threads": int(environment["threads"]),
        "cores": os.cpu_count() or 1,
    }


@lru_cache(maxsize=1)
def machine() -> str:
    """An id that is equal in all processes of a machine, also in containers."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text().strip() if boot.is_file() else platform.node()


def versions() -> dict[str, str]:
    """The versions of Python and of the libraries that tokens depend on."""
    libraries = {name: provenance.installed(name) for name in provenance.LIBRARIES}
    return {"python": platform.python_version(), **libraries}


def _model(name: str) -> dict[str, str]:
    """Digest and dtype of a checkpoint on this node, or the reason why it is missing."""
    try:
        (model,) = provenance.describe_models([registry.entry(name)])
    except StageScopeError as error:
        return {"error": str(error)}
    return {"digest": model.digest, "dtype": model.dtype}

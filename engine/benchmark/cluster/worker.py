"""The code that runs in an actor: one device, one model at a time, one task after another.  Plain
JSON values go in and out, so that what is sent to a worker can never run code.  Expected errors are
returned as sentences; any other error ends the actor, and the driver continues without it."""

import os
import platform
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins

from engine.benchmark.task_executor import TaskExecutor
from engine.errors import StageScopeError
from engine.machine import device
from engine.models import registry, variants
from engine.storage import provenance
from engine.storage.plan import Phase, Plan, Task
from engine.types import Sample

Answer = dict[str, Any]


class Worker:
    """`threads` is set before anything is loaded; `run_data` is a pack()."""

    def __init__(self, threads: int, run_data: Any) -> None:
        os.environ["STAGESCOPE_THREADS"] = str(threads)
        self.plan, self.root, samples = unpack(run_data)
        self.samples = {sample.id: sample for sample in samples}
        self.model = ""  # the loaded one
        self.unloadable: dict[str, str] = {}  # model -> reason

    def here(self) -> Answer:
        """Reports that this process runs, and on which machine; returns quickly."""
        return {"machine": machine(), "host": platform.node()}

    def begin(self, inspect: bool) -> Answer:
        """Reports this device and, to `inspect` a node, its code, checkpoints and samples."""
        about: Answer = {"device": device_here()}
        if inspect:
            about["holds"] = {
                "code": provenance.describe_code(),
                "versions": versions(),
                "samples": provenance.describe_samples(self.root, list(self.samples.values())),
                "models": {name: _model(name) for name in self.plan.models},
            }
        return about

    def ask(self, model: str, sample: str, repeat: int, phase: Phase) -> Answer:
        """The "row" of a task, or a sentence why there is none: the model is "unloadable", or a
        file of the sample is "absent" from the node."""
        absent = {"absent": f"files of sample {sample} are not on this node"}
        if model != self.model and model not in self.unloadable:
            if not provenance.is_here(self.samples[sample]):
                return absent
            try:
                self._load(model)
            except StageScopeError as error:
                self.unloadable[model] = str(error)
        if model in self.unloadable:
            return {"unloadable": self.unloadable[model]}
        start = time.monotonic()
        row = self.task_executor.alone(Task(model, sample, repeat, phase), self.adapter)
        busy_s = time.monotonic() - start
        if row.error and not provenance.is_here(self.samples[sample]):
            return absent
        return {"row": row.as_dict(), "busy_s": busy_s}

    def _load(self, model: str) -> None:
        self.model, self.adapter = "", None
        entry = registry.entry(model)
        for other in registry.resident():
            if other != variants.loaded(entry):
                registry.unload(other)
        self.adapter = registry.load(entry, self.plan.decode.max_new_tokens)
        self.task_executor = TaskExecutor(self.plan, self.samples, {model: entry})
        self.model = model


def pack(plan: Plan, root: Path, samples: Sequence[Sample]) -> Any:
    """What a worker needs of a run, as JSON values: paths are texts."""
    return to_builtins((plan, root, list(samples)), enc_hook=str)


def unpack(value: Any) -> tuple[Plan, Path, list[Sample]]:
    return convert(value, tuple[Plan, Path, list[Sample]], dec_hook=lambda of, text: of(text))


def device_here() -> dict[str, Any]:
    """`unit` identifies the device on its machine: the id of a GPU, else the kind of device."""
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
    libraries = {name: device.installed(name) for name in provenance.LIBRARIES}
    return {"python": platform.python_version(), **libraries}


def _model(name: str) -> dict[str, str] | None:
    """Digest and dtype of a checkpoint, None if it is not on this node."""
    try:
        (model,) = provenance.describe_models([registry.entry(name)])
    except StageScopeError:
        return None
    return {"digest": model.digest, "dtype": model.dtype}

"""The one clock: spans on a run's own time line, and the probe that times vision modules by hooks.

Boundary: knows devices and modules, not models or stages.  A span synchronises its device on both
sides, so that work still queued there is not charged to the next stage.  Milliseconds throughout.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from engine.types import Source, Span


def synchronizer(device: torch.device) -> Callable[[], None]:
    """What waits until the device has done all it was given; nothing to do on the CPU."""
    if device.type == "cpu":
        return lambda: None
    return lambda: torch.accelerator.synchronize(device)


def profiler_range(name: str, device: torch.device) -> AbstractContextManager[Any]:
    """An NVTX range on CUDA, so that the stages show by name in Nsight Systems."""
    if device.type != "cuda":
        return nullcontext()
    return torch.cuda.nvtx.range(name)


class Timeline:
    """Spans of one run; 0 is the moment this object was made."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.spans: list[Span] = []
        self._sync = synchronizer(device)
        self._sync()
        self._start = time.perf_counter()

    def now(self) -> float:
        """Milliseconds since the start."""
        return (time.perf_counter() - self._start) * 1000

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Times the block; nothing is recorded when it raises."""
        self._sync()
        start = self.now()
        with profiler_range(name, self.device):
            yield
            self._sync()
        self.add(name, start, self.now() - start)

    def add(
        self,
        name: str,
        start: float,
        ms: float,
        source: Source = "measured",
        original_ms: float | None = None,
    ) -> None:
        self.spans.append(Span(name, start, ms, source, original_ms))

    def recalled(self, name: str, original_ms: float | None) -> None:
        """Marks a recorded span as one that went on from what was kept; None: took nobody knows."""
        self.spans = [
            replace(span, source="cached", original_ms=original_ms) if span.name == name else span
            for span in self.spans
        ]


class VisionProbe:
    """Adds up the time spent inside given modules during a call of something larger.

    Modules must not contain each other.  Calls of other threads are not counted: a hook fires in
    whichever thread runs the module, and the probe belongs to the one that made it.
    """

    def __init__(self, modules: Sequence[torch.nn.Module], device: torch.device) -> None:
        self.ms = 0.0
        self.calls: list[int] = [0] * len(modules)
        self._modules = modules
        self._sync = synchronizer(device)
        self._thread = threading.get_ident()
        self._entered: dict[int, float] = {}
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> VisionProbe:
        for index, module in enumerate(self._modules):
            self._handles.append(module.register_forward_pre_hook(self._enter(index)))
            self._handles.append(module.register_forward_hook(self._leave(index)))
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _enter(self, index: int) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if threading.get_ident() == self._thread:
                self._sync()
                self._entered[index] = time.perf_counter()

        return hook

    def _leave(self, index: int) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if threading.get_ident() == self._thread:
                self._sync()
                self.ms += (time.perf_counter() - self._entered.pop(index)) * 1000
                self.calls[index] += 1

        return hook

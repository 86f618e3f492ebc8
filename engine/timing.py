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
from typing import Any, NamedTuple

import torch

from engine.machine import clocks
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


class Usage(NamedTuple):
    """What was used up to now, in ms: CPU time of the process, and this thread's wait for a core.

    The CPU time is None where another device computes: it is not the stage's cost there.
    """

    cpu_ms: float | None
    waited_ms: float | None

    def since(self, start: Usage) -> Usage:
        """What was used from `start` to this."""
        pairs = zip(start, self, strict=True)
        return Usage(*(clocks.since(before, now) for before, now in pairs))

    def after(self, more: Usage) -> Usage:
        """This, and what was used on top of it."""
        return total([self, more])


UNKNOWN = Usage(None, None)
MARKS = 10  # readings, of which the last one stands if all were interrupted


def usage(device: torch.device, wait: clocks.ThreadWait) -> Usage:
    """What has been used so far; only differences mean something."""
    return Usage(clocks.cpu_ms() if device.type == "cpu" else None, wait.ms())


def together(device: torch.device, wait: clocks.ThreadWait) -> tuple[float, Usage]:
    """(seconds of the clock, usage) of one moment.

    A thread often loses its core where it asks the system.  Then its wait would be in one of the
    two and not in the other: they are read once more.
    """
    for _ in range(MARKS):
        before = time.perf_counter()
        used = usage(device, wait)
        now = time.perf_counter()
        if now - before < clocks.TIGHT_S:
            break
    return now, used


class Timeline:
    """Spans of one run; 0 is the moment this object was made, which `began` has on two clocks.

    It belongs to the thread that made it.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.spans: list[Span] = []
        self._wait = clocks.ThreadWait()
        self._sync = synchronizer(device)
        self._sync()
        self.began = self.ended = clocks.moment(time.perf_counter)
        self._start = self.began.first_s

    def now(self) -> float:
        """Milliseconds since the start."""
        return (time.perf_counter() - self._start) * 1000

    def end(self) -> float:
        """Milliseconds since the start, at a moment that `ended` has on two clocks."""
        self.ended = clocks.moment(time.perf_counter)
        self._wait.close()
        return (self.ended.first_s - self._start) * 1000

    def usage(self) -> Usage:
        """What has been used so far by the process and by this thread."""
        return usage(self.device, self._wait)

    def mark(self) -> tuple[float, Usage]:
        """(milliseconds since the start, what has been used) of one moment."""
        seconds, used = together(self.device, self._wait)
        return (seconds - self._start) * 1000, used

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Times the block; nothing is recorded when it raises."""
        self._sync()
        start, before = self.mark()
        with profiler_range(name, self.device):
            yield
            self._sync()
        end, after = self.mark()
        self.add(name, start, end - start, used=after.since(before))

    def add(
        self,
        name: str,
        start: float,
        ms: float,
        source: Source = "measured",
        original_ms: float | None = None,
        used: Usage = UNKNOWN,
    ) -> None:
        self.spans.append(Span(name, start, ms, source, original_ms, *used))

    def recalled(self, name: str, original_ms: float | None) -> None:
        """Marks a recorded span as one that went on from what was kept; None: took nobody knows."""
        self.spans = [
            replace(span, source="cached", original_ms=original_ms) if span.name == name else span
            for span in self.spans
        ]


class VisionProbe:
    """Adds up the time spent inside given modules during a call of something larger.

    `used` adds up what was used meanwhile.  Modules must not contain each other.  Calls of other
    threads are not counted: a hook fires in whichever thread runs the module, and the probe
    belongs to the one that made it.
    """

    def __init__(self, modules: Sequence[torch.nn.Module], device: torch.device) -> None:
        self.ms = 0.0
        self.calls: list[int] = [0] * len(modules)
        self._used: list[Usage] = []
        self._modules, self._device = modules, device
        self._wait = clocks.ThreadWait()
        self._sync = synchronizer(device)
        self._thread = threading.get_ident()
        self._entered: dict[int, tuple[float, Usage]] = {}
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
        self._wait.close()

    @property
    def used(self) -> Usage:
        """Sums over all calls; unknown where one is."""
        return total(self._used)

    def _enter(self, index: int) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if threading.get_ident() == self._thread:
                self._sync()
                self._entered[index] = together(self._device, self._wait)

        return hook

    def _leave(self, index: int) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if threading.get_ident() == self._thread:
                self._sync()
                start, before = self._entered.pop(index)
                end, after = together(self._device, self._wait)
                self.ms += (end - start) * 1000
                self._used.append(after.since(before))
                self.calls[index] += 1

        return hook


def total(found: Sequence[Usage]) -> Usage:
    """Sums; None where a part is not known, and UNKNOWN of nothing."""
    columns = zip(*found, strict=True) if found else ()
    sums = [None if None in column else sum(filter(None, column)) for column in columns]
    return Usage(*sums) if sums else UNKNOWN

"""The run's clock: spans on a time line, and a probe that times vision modules by hooks.  A span
synchronises its device at both ends, so that queued work is not charged to the next stage.  All
times are milliseconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch

from engine.machine import load
from engine.types import Source, Span


def synchronizer(device: torch.device) -> Callable[[], None]:
    """A function that waits until the device has finished all queued work; a no-op on the CPU."""
    if device.type == "cpu":
        return lambda: None
    return lambda: torch.accelerator.synchronize(device)


def profiler_range(name: str, device: torch.device) -> AbstractContextManager[Any]:
    """An NVTX range on CUDA, so that Nsight Systems shows the stages by name."""
    if device.type != "cuda":
        return nullcontext()
    return torch.cuda.nvtx.range(name)


class Usage(NamedTuple):
    """CPU time of the process and this thread's wait for a core, in ms.  The CPU time is None if
    another device computes, as it is not the stage's cost then."""

    cpu_ms: float | None
    waited_ms: float | None

    def since(self, start: Usage) -> Usage:
        pairs = zip(start, self, strict=True)
        return Usage(*(load.since(before, now) for before, now in pairs))


UNKNOWN = Usage(None, None)
READINGS = 3  # the last one counts: on a slow processor each seems interrupted


def usage(device: torch.device, wait: load.ThreadWait) -> Usage:
    """The usage so far; only differences are meaningful."""
    return Usage(load.cpu_ms() if device.type == "cpu" else None, wait.ms())


def together(device: torch.device, wait: load.ThreadWait) -> tuple[float, Usage]:
    """(clock in seconds, usage), read at one moment: again if the thread lost its core in between,
    as its wait would then be in one of the two readings only."""
    for _ in range(READINGS):
        before = time.perf_counter()
        used = usage(device, wait)
        now = time.perf_counter()
        if now - before < load.TIGHT_S:
            break
    return now, used


class Timeline:
    """Spans of one run.  0 is the creation of this object, which `began` gives on two clocks.  Use
    it only in the thread that created it."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.spans: list[Span] = []
        self._wait = load.ThreadWait()
        self._sync = synchronizer(device)
        self._sync()
        self.began = self.ended = load.moment(time.perf_counter)
        self._start = self.began.first_s

    def now(self) -> float:
        return (time.perf_counter() - self._start) * 1000

    def end(self) -> float:
        """Milliseconds since the start, at a moment that `ended` gives on two clocks."""
        self.ended = load.moment(time.perf_counter)
        self._wait.close()
        return (self.ended.first_s - self._start) * 1000

    def usage(self) -> Usage:
        return usage(self.device, self._wait)

    def mark(self) -> tuple[float, Usage]:
        """(milliseconds since the start, usage so far), read at one moment."""
        seconds, used = together(self.device, self._wait)
        return (seconds - self._start) * 1000, used

    def settled(self) -> tuple[float, Usage]:
        """The same, once the device has finished what is queued."""
        self._sync()
        return self.mark()

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Times the block; nothing is recorded if it raises."""
        start, before = self.settled()
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


class VisionProbe:
    """Adds up the time spent inside given modules while an enclosing call runs.

    `used` is the usage from the first module's entry to the last module's exit, as reading it in
    each hook would cost more than the clock.  It is unknown if another module ends.  Modules must
    not contain each other.  Only calls in the thread that created the probe are counted.
    """

    def __init__(self, modules: Sequence[torch.nn.Module], device: torch.device) -> None:
        self.ms = 0.0
        self.calls: list[int] = [0] * len(modules)
        self._used: list[Usage] = []
        self._before: Usage | None = None  # when the first module began
        self._modules, self._device = modules, device
        self._wait = load.ThreadWait()
        self._sync = synchronizer(device)
        self._thread = threading.get_ident()
        self._entered: dict[int, float] = {}
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> VisionProbe:
        for index, module in enumerate(self._modules):
            self._handles.append(module.register_forward_pre_hook(partial(self._enter, index)))
            self._handles.append(module.register_forward_hook(partial(self._leave, index)))
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._wait.close()

    @property
    def used(self) -> Usage:
        return total(self._used) if self._before is None else UNKNOWN

    def _enter(self, index: int, *_: Any) -> None:
        if threading.get_ident() == self._thread:
            self._sync()
            if self._before is None:
                self._entered[index], self._before = together(self._device, self._wait)
            else:
                self._entered[index] = time.perf_counter()

    def _leave(self, index: int, *_: Any) -> None:
        if threading.get_ident() == self._thread:
            self._sync()
            if index == len(self._modules) - 1 and self._before is not None:
                end, after = together(self._device, self._wait)
                self._used.append(after.since(self._before))
                self._before = None
            else:
                end = time.perf_counter()
            self.ms += (end - self._entered.pop(index)) * 1000
            self.calls[index] += 1


def total(found: Sequence[Usage]) -> Usage:
    """The sum; None where a part is unknown, UNKNOWN for an empty list."""
    columns = zip(*found, strict=True) if found else ()
    sums = [None if None in column else sum(filter(None, column)) for column in columns]
    return Usage(*sums) if sums else UNKNOWN

"""Measures how busy the machine is while a run goes on.

Linux is read from /proc, other systems through psutil; a figure that neither gives is None.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.machine import clocks
from engine.machine.load import MachineLoad

_STAT = Path("/proc/stat")
_BUSY, _STEAL = (0, 1, 2, 5, 6), 7  # user, nice, system, irq, softirq; steal
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class _Counters:
    """CPU milliseconds of the whole machine since it started, and threads that want a core now."""

    busy_ms: float | None = None
    steal_ms: float | None = None
    runnable: int | None = None


class Meter:
    """Starts when it is created, in the thread that runs the stages; `read` may be called once."""

    def __init__(self, threads: int) -> None:
        self._cpus, self._threads = _own_cpus(), threads
        self._wait = clocks.ThreadWait()
        self._began_s = time.time()
        self._counters = _counters(self._cpus)
        self._start_s, self._cpu_ms = time.perf_counter(), clocks.cpu_ms()
        self._waited_ms = self._wait.ms()

    def read(self) -> MachineLoad:
        """The load since the start."""
        waited = clocks.since(self._waited_ms, self._wait.ms())
        wall = (time.perf_counter() - self._start_s) * 1000
        cpu = clocks.cpu_ms() - self._cpu_ms
        now, before = _counters(self._cpus), self._counters
        self._wait.close()
        everyone = clocks.since(before.busy_ms, now.busy_ms)
        steal = clocks.since(before.steal_ms, now.steal_ms)
        cores = len(self._cpus)
        return MachineLoad(
            began_s=self._began_s,
            wall_ms=wall,
            cpu_ms=cpu,
            cores=cores,
            threads=self._threads,
            waited_ms=waited,
            others=_cores(None if everyone is None else everyone - cpu, wall, cores),
            steal=_cores(steal, wall, cores),
            runnable=_beside_this(before.runnable, now.runnable),
        )


def _cores(cpu_ms: float | None, wall_ms: float, cores: int) -> float | None:
    """CPU time as a number of cores, clipped: the counters have a resolution of 10 ms."""
    if cpu_ms is None or not wall_ms:
        return None
    return min(max(0.0, cpu_ms / wall_ms), float(cores))


def _beside_this(*found: int | None) -> float | None:
    """The mean of the readings, without the thread that reads."""
    known = [max(0, one - 1) for one in found if one is not None]
    return sum(known) / len(known) if len(known) == len(found) else None


def _own_cpus() -> frozenset[int]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _counters(cpus: frozenset[int]) -> _Counters:
    try:
        return _from_proc(_STAT.read_text(encoding="ascii").splitlines(), cpus)
    except (OSError, ValueError, IndexError):
        return _from_psutil(cpus)


def _from_proc(lines: Iterable[str], cpus: frozenset[int]) -> _Counters:
    """The counters in the lines of /proc/stat; ValueError or IndexError for another format."""
    wanted, busy, steal = {f"cpu{one}" for one in cpus}, 0, 0
    runnable = None
    for line in lines:
        name, *values = line.split()
        if name in wanted:
            wanted.discard(name)
            busy += sum(int(values[place]) for place in _BUSY)
            steal += int(values[_STEAL])
        elif name == "procs_running":
            runnable = int(values[0])
    if wanted:
        raise ValueError(f"/proc/stat lacks {min(wanted)}")
    return _Counters(busy * 1000 / _TICK, steal * 1000 / _TICK, runnable)


def _from_psutil(cpus: frozenset[int]) -> _Counters:
    """User and system time of all cores; steal and runnable threads are unknown."""
    if len(cpus) < (os.cpu_count() or 1):  # psutil does not say which cores others used
        return _Counters()
    try:
        import psutil

        found = psutil.cpu_times()
    except (ImportError, OSError):
        return _Counters()
    return _Counters(1000 * (found.user + found.system + getattr(found, "nice", 0.0)))

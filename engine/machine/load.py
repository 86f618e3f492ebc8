"""How busy the machine was during a run, and the one rule that decides when it was too busy.  None
means "not known", never 0.  It reads the CPU time of this process, a thread's wait for a core, and
two clocks at one moment: the second checks the first, with times relative to that moment."""

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from engine.plain_files import Positive, Rate, Time

WAITED = 0.10  # of a run's time, ready but without a core
EXCESS = 0.25  # of the cores that a run needs, taken by others
LEAST_MS = 30.0  # of others' CPU time: Linux counts in steps of 10 ms
DIFFERENT = 0.25  # of the cores that a run needs: two blocks differ if others' use does by more
TIGHT_S = 20e-6  # a bracket this narrow is not tried again
TRIES = 50
_SCHEDSTAT = "/proc/thread-self/schedstat"  # ns on a core, ns ready and waiting, slices


@dataclass(frozen=True)
class MachineLoad:
    """The machine during one run, from just before its clock started to just after it ended.

    `cpu_ms`: CPU time of all threads of this process.  `waited_ms`: how long the thread that ran
    the stages was ready but had no core.  `others`, `steal`: cores used by other processes and by
    other guests of the host (CPU time per wall time), among the `cores` that this process may use.
    `threads`: cores that the run itself can use.  `began_s`: Unix time.  `busy`: why other work
    disturbed the times of the run; "" if it did not, or if nothing is known.
    """

    began_s: Time
    wall_ms: Time
    cpu_ms: Time
    cores: Positive
    threads: Positive
    waited_ms: Time | None = None
    others: Rate | None = None
    steal: Rate | None = None
    busy: str = field(default="", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "busy", _busy(self))

    @property
    def waited(self) -> float | None:
        """The share of the run's time in which its thread was ready but had no core."""
        return None if self.waited_ms is None or not self.wall_ms else self.waited_ms / self.wall_ms

    @property
    def taken(self) -> float | None:
        """Cores used by other processes and by other guests of the host, together."""
        return None if self.others is None else self.others + (self.steal or 0.0)


def _busy(load: MachineLoad) -> str:
    """Why the run was disturbed, if it was.

    The wait of its thread also covers other threads of this process, such as a page's, but not
    delays of torch's threads: so others may not take more than EXCESS of the cores that the run
    needs, once they have those that it leaves free.  Other guests of the host can take any core.
    """
    if load.waited is not None and load.waited > WAITED:
        return f"the run's thread waited for a core for {load.waited:.0%} of its time"
    if load.taken is None or load.taken * load.wall_ms < LEAST_MS:
        return ""
    if load.steal is not None and load.steal > WAITED * load.cores:
        return f"other guests of the host took {load.steal:.1f} of {load.cores:,} cores"
    needed = min(load.threads, load.cores)
    if load.taken - (load.cores - needed) > EXCESS * needed:
        return f"others used {load.taken:.1f} of {load.cores:,} cores"
    return ""


def together(loads: Sequence[MachineLoad]) -> MachineLoad | None:
    """Several runs as one: times are added, cores are means over time; None for no run.  A figure
    that is unknown for one run is unknown for all."""
    if not loads:
        return None
    wall = sum(load.wall_ms for load in loads)

    def mean(name: str) -> float | None:
        values = [getattr(load, name) for load in loads]
        if None in values or not wall:
            return None
        times = (value * load.wall_ms for value, load in zip(values, loads, strict=True))
        return float(sum(times) / wall)

    waits = [load.waited_ms for load in loads if load.waited_ms is not None]
    return MachineLoad(
        began_s=min(load.began_s for load in loads),
        wall_ms=wall,
        cpu_ms=sum(load.cpu_ms for load in loads),
        cores=loads[0].cores,
        threads=loads[0].threads,
        waited_ms=sum(waits) if wall and len(waits) == len(loads) else None,
        others=mean("others"),
        steal=mean("steal"),
    )


def different(a: MachineLoad, b: MachineLoad) -> bool:
    """Whether the machine's load differed so much that the times of two blocks do not compare."""
    needed = min(max(a.threads, b.threads), a.cores)
    return _apart(a.taken, b.taken, DIFFERENT * needed) or _apart(a.waited, b.waited, WAITED)


def _apart(a: float | None, b: float | None, most: float) -> bool:
    return a is not None and b is not None and abs(a - b) > most


def shares(load: MachineLoad, who: str) -> list[str]:
    """Cores that others used, and how long `who` waited; unknown figures are left out."""
    parts = []
    if load.taken is not None:
        parts.append(f"others used {load.taken:.1f} of {load.cores:,} cores")
    if load.waited is not None:
        parts.append(f"{who} waited for a core for {load.waited:.0%} of its time")
    return parts


def words(load: MachineLoad) -> str:
    parts = shares(load, "the run")
    if not parts:
        return "the machine's load is not known"
    return f"{', '.join(parts)}; CPU time {load.cpu_ms:,.0f} ms in {load.wall_ms:,.0f} ms"


_BUSY = ("user", "nice", "system", "irq", "softirq")


class Meter:
    """Starts when it is created, in the thread that runs the stages; `read` may be called once."""

    def __init__(self, threads: int) -> None:
        self._cpus, self._threads = _own_cpus(), threads
        self._wait = ThreadWait()
        self._began_s = time.time()
        self._busy_ms, self._steal_ms = _counters(self._cpus)
        self._start_s, self._cpu_ms = time.perf_counter(), cpu_ms()
        self._waited_ms = self._wait.ms()

    def read(self) -> MachineLoad:
        waited = since(self._waited_ms, self._wait.ms())
        wall = (time.perf_counter() - self._start_s) * 1000
        cpu = cpu_ms() - self._cpu_ms
        busy_ms, steal_ms = _counters(self._cpus)
        self._wait.close()
        cores = len(self._cpus)
        return MachineLoad(
            began_s=self._began_s,
            wall_ms=wall,
            cpu_ms=cpu,
            cores=cores,
            threads=self._threads,
            waited_ms=waited,
            others=_cores(since(cpu, since(self._busy_ms, busy_ms)), wall, cores),
            steal=_cores(since(self._steal_ms, steal_ms), wall, cores),
        )


def _cores(cpu_ms: float | None, wall_ms: float, cores: int) -> float | None:
    """CPU time as a number of cores, clipped: the counters have a resolution of 10 ms."""
    if cpu_ms is None or not wall_ms:
        return None
    return min(max(0.0, cpu_ms / wall_ms), float(cores))


def _own_cpus() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _counters(cpus: frozenset[int]) -> tuple[float | None, float | None]:
    """CPU milliseconds of these cores since they started: at work, and given to other guests;
    unknown if the system lists fewer cores."""
    try:
        import psutil  # a machine with torch and transformers alone may lack it

        every = psutil.cpu_times(percpu=True)
    except (ImportError, OSError, RuntimeError):
        return None, None
    if not cpus or max(cpus) >= len(every):
        return None, None
    own = [every[cpu] for cpu in cpus]
    busy = sum(getattr(one, name, 0.0) for one in own for name in _BUSY)
    steal = sum(one.steal for one in own) * 1000 if hasattr(own[0], "steal") else None
    return busy * 1000, steal


@dataclass(frozen=True)
class Moment:
    """One moment on two clocks, in seconds, known to within `width_s`."""

    first_s: float
    second_s: float
    width_s: float


def moment(first: Callable[[], float]) -> Moment:
    """The middle of the narrowest of several brackets; wide if the thread loses its core then."""
    best = Moment(0.0, 0.0, math.inf)
    for _ in range(TRIES):
        before = first()
        second = time.monotonic()
        after = first()
        found = Moment((before + after) / 2, second, abs(after - before))
        best = min(best, found, key=lambda one: one.width_s)
        if best.width_s <= TIGHT_S:
            break
    return best


def cpu_ms() -> float:
    """CPU time of this process so far, all threads together, in milliseconds.  The time of the
    calling thread would not be enough: torch computes in its own threads."""
    return time.process_time() * 1000


class ThreadWait:
    """How long the calling thread has been ready to run while others had its core, in ms.  Linux
    counts this in nanoseconds; elsewhere `ms()` is None: not known."""

    def __init__(self) -> None:
        self._file: int | None = None
        if sys.platform == "linux":
            with suppress(OSError):
                self._file = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)

    def ms(self) -> float | None:
        """Since the thread began; only differences mean something."""
        if self._file is None:
            return None
        try:
            return int(os.pread(self._file, 128, 0).split()[1]) / 1e6
        except (OSError, IndexError, ValueError):  # a kernel without these statistics
            return None

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()


def since(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start

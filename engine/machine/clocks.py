"""Reads two clocks at one moment, the CPU time of this process, and a thread's wait for a core.
The second clock checks the first.  Their times are compared relative to a moment that was read on
both."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

TIGHT_S = 20e-6  # a bracket this narrow is not tried again
TRIES = 50
_SCHEDSTAT = "/proc/thread-self/schedstat"  # ns on a core, ns ready and waiting, slices


@dataclass(frozen=True)
class Moment:
    """One moment on two clocks, in seconds, known to within `width_s`."""

    first_s: float
    second_s: float
    width_s: float


def moment(first: Callable[[], float]) -> Moment:
    """The middle of the narrowest of several brackets of readings, which is wide if the thread
    loses its core meanwhile."""
    best: Moment | None = None
    for _ in range(TRIES):
        before = first()
        second = time.monotonic()
        after = first()
        found = Moment((before + after) / 2, second, abs(after - before))
        best = found if best is None or found.width_s < best.width_s else best
        if best.width_s <= TIGHT_S:
            break
    assert best is not None
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
    """end - start, or None if one of them is not known."""
    return None if start is None or end is None else end - start

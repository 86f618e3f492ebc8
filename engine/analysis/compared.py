"""What Compare shows of one model: its finished runs of one request, and their spread.

Boundary: RunResults in, medians and ranges out; no drawing and no sentences.  With one run, the
median and both ends of the range are that run's value.  Only runs in one state are summarised
together: a cold run, a cancelled run, and a run that computed what the others read from the cache
are left out, and the reason is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from engine.types import STAGES, RunResult

TIMES: Mapping[str, Callable[[RunResult], float | None]] = {
    "total": lambda result: result.total_ms,
    "uncached_total": lambda result: result.uncached_total_ms,
    "ttft": lambda result: result.ttft_ms,
    "tpot": lambda result: result.tpot_ms,
    "unaccounted": lambda result: result.unaccounted_ms,
}

CANCELLED = "cancelled before the end"
PARTS_OF_DECODE = ("decode.prefill", "decode.steps")


@dataclass(frozen=True)
class RunRange:
    """The median and the range of `runs` values in milliseconds."""

    median: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class LeftOut:
    """How many runs are in no median, and why."""

    reason: str
    runs: int


@dataclass(frozen=True)
class ComparedModel:
    """A model's label, its family (for its colour) and its results, oldest first; at least one.

    `failures` are the errors of its runs that have no result; `unfinished` counts those that were
    cancelled before they had one.
    """

    label: str
    family: str
    results: tuple[RunResult, ...]
    failures: tuple[str, ...] = ()
    unfinished: int = 0

    @property
    def last(self) -> RunResult:
        """The newest run that counts."""
        return self.counted[-1]

    @cached_property
    def counted(self) -> tuple[RunResult, ...]:
        """The runs in the state of the newest complete and warm run, if there is one."""
        newest = max(reversed(self.results), key=lambda one: (not _cancelled(one), not one.cold))
        return tuple(one for one in self.results if _state(one) == _state(newest))

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The runs that do not count, by reason."""
        counted = {id(one) for one in self.counted}
        reasons = [self._reason(one) for one in self.results if id(one) not in counted]
        reasons += [CANCELLED] * self.unfinished + ["failed"] * len(self.failures)
        return tuple(LeftOut(reason, runs) for reason, runs in Counter(reasons).items())

    def _reason(self, result: RunResult) -> str:
        if _cancelled(result):
            return CANCELLED
        if result.cold and not self.last.cold:
            return "cold, the first run after loading"
        usual = {(span.name, span.source) for span in self.last.spans}
        others = [span for span in result.spans if (span.name, span.source) not in usual]
        return ", ".join(f"{span.name} {span.source}" for span in others) or "other stages"

    def time(self, name: str) -> RunRange | None:
        """The spread of a time of TIMES or of a span ("vision", "decode.prefill", ...).

        None if no run that counts has it; runs without it do not count.
        """
        values = [self._value(result, name) for result in self.counted]
        known = [value for value in values if value is not None]
        return RunRange(median(known), min(known), max(known), len(known)) if known else None

    def times(self) -> dict[str, RunRange]:
        """The spread of each time that a run has: TIMES, the stages and the parts of decode."""
        names = (*TIMES, *STAGES, *PARTS_OF_DECODE)
        found = {name: self.time(name) for name in names}
        return {name: spread for name, spread in found.items() if spread is not None}

    def _value(self, result: RunResult, name: str) -> float | None:
        if name in TIMES:
            return TIMES[name](result)
        span = result.span(name)
        return span.ms if span else None


def _cancelled(result: RunResult) -> bool:
    return result.generation.stop == "cancelled"


def _state(result: RunResult) -> tuple[object, ...]:
    """What makes two runs of one request comparable: warmth, backend, and every span's source."""
    sources = frozenset((span.name, span.source) for span in result.spans)
    return _cancelled(result), result.cold, result.backend, sources

"""What Compare shows of one model: its finished runs of one request, and their spread.

Boundary: RunResults in, medians and ranges out; no drawing and no sentences.  With one run, the
median and both ends of the range are that run's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from engine.types import RunResult

TIMES: Mapping[str, Callable[[RunResult], float | None]] = {
    "total": lambda result: result.total_ms,
    "uncached_total": lambda result: result.uncached_total_ms,
    "ttft": lambda result: result.ttft_ms,
    "tpot": lambda result: result.tpot_ms,
    "unaccounted": lambda result: result.unaccounted_ms,
}


@dataclass(frozen=True)
class Spread:
    """The median and the range of `runs` values in milliseconds."""

    median: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class ComparedModel:
    """A model's label, its family (for its colour) and its results, oldest first; at least one."""

    label: str
    family: str
    results: tuple[RunResult, ...]

    @property
    def last(self) -> RunResult:
        return self.results[-1]

    @property
    def counted(self) -> tuple[RunResult, ...]:
        """The complete runs."""
        return tuple(one for one in self.results if one.generation.stop != "cancelled")

    def time(self, name: str) -> Spread | None:
        """The spread of a time of TIMES or of a span ("vision", "decode.prefill", ...).

        None if no complete run has it; runs without it do not count.
        """
        values = [self._value(result, name) for result in self.counted]
        known = [value for value in values if value is not None]
        return Spread(median(known), min(known), max(known), len(known)) if known else None

    def _value(self, result: RunResult, name: str) -> float | None:
        if name in TIMES:
            return TIMES[name](result)
        span = result.span(name)
        return span.ms if span else None

"""What Compare shows of one model: its finished runs of one request, and their spread.

With one run, the median and both ends of the range are that run's value.  Only runs in one state
are summarised together: a cold run, a cancelled run, and a run that computed what the others read
from the cache are left out, and the reason is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from engine.palette import UNACCOUNTED
from engine.types import STAGES, RunResult, Span, StageName

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


PARTS: tuple[str, ...] = (*STAGES, UNACCOUNTED)
DECODE: StageName = "decode"
PREFILL, STEPS, REST = "decode.prefill", "decode.steps", "decode.rest"
_WHOLE: tuple[str, ...] = tuple(stage for stage in STAGES if stage != DECODE)
RUN_PARTS: tuple[str, ...] = (*_WHOLE, PREFILL, STEPS, REST, UNACCOUNTED)
StageTimes = Mapping[str, Mapping[str, float]]  # label -> part of PARTS -> ms


@dataclass(frozen=True)
class BarSegment:
    """One part of one model's bar.  A part without a time has no length."""

    label: str
    part: str
    start_ms: float
    ms: float

    @property
    def end_ms(self) -> float:
        return self.start_ms + self.ms


def segments(times: StageTimes, order: tuple[str, ...] = PARTS) -> list[BarSegment]:
    """Every part of `order` of every label."""
    found = []
    for label, parts in times.items():
        start = 0.0
        for part in order:
            found.append(BarSegment(label, part, start, max(0.0, parts.get(part, 0.0))))
            start = found[-1].end_ms
    return found


def run_times(model: ComparedModel) -> dict[str, float]:
    """The median of each part of RUN_PARTS that was measured, in milliseconds.

    REST is what decode took apart from its prefill and its token steps.
    """
    names = (*_WHOLE, PREFILL, STEPS, UNACCOUNTED)
    known = {name: found.median for name in names if (found := model.time(name))}
    rests = [rest for result in model.counted if (rest := _rest(result)) is not None]
    return known | ({REST: median(rests)} if rests else {})


def _rest(result: RunResult) -> float | None:
    decode, *parts = (result.span(name) for name in (DECODE, PREFILL, STEPS))
    return max(0.0, decode.ms - sum(part.ms for part in parts if part)) if decode else None


def uncached_times(model: ComparedModel) -> dict[str, float] | None:
    """run_times() with each cached stage at the time of its computation; None if no stage was
    cached or such a time is not known."""
    if not model.last.cached or model.last.uncached_total_ms is None:
        return None
    cached = {span.name: span.original_ms or 0.0 for span in cached_spans(model)}
    return run_times(model) | {name: ms for name, ms in cached.items() if name in RUN_PARTS}


def cached_spans(model: ComparedModel) -> list[Span]:
    """The spans that the newest run read from a cache; with repeats all that count read them."""
    return [span for span in model.last.spans if span.source == "cached"]

"""What Compare shows of one model: its finished runs of one request, and their spread.

With one run, the median and both ends of the range are that run's value.  Only runs in one state
are summarised together: a cold run, a cancelled run, and a run that computed what the others read
from the cache are left out, and the reason is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from engine.palette import UNACCOUNTED
from engine.types import STAGES, RunResult, Span, StageName

TIMES = ("total", "uncached_total", "ttft", "tpot", UNACCOUNTED)
CANCELLED = "cancelled before the end"
PARTS: tuple[str, ...] = (*STAGES, UNACCOUNTED)
DECODE: StageName = "decode"
PREFILL, STEPS, REST = "decode.prefill", "decode.steps", "decode.rest"
_WHOLE: tuple[str, ...] = tuple(stage for stage in STAGES if stage != DECODE)
RUN_PARTS: tuple[str, ...] = (*_WHOLE, PREFILL, STEPS, REST, UNACCOUNTED)
StageTimes = Mapping[str, Mapping[str, float]]  # label -> part of PARTS -> ms


@dataclass(frozen=True)
class RunRange:
    """The median and the range of `runs` values in milliseconds."""

    median: float
    low: float
    high: float
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
        newest = max(reversed(self.results), key=lambda one: (not cancelled(one), not one.cold))
        return tuple(one for one in self.results if _state(one) == _state(newest))

    @property
    def complete(self) -> bool:
        """Whether a run was not cancelled; if so, only such runs count."""
        return not cancelled(self.last)

    @property
    def total(self) -> RunRange:
        spread = self.time("total")
        assert spread is not None  # every result has a total
        return spread

    @property
    def per_token(self) -> RunRange | None:
        return self.time("tpot")

    @property
    def tokens(self) -> tuple[int, int]:
        """The fewest and the most new tokens of its runs."""
        numbers = [result.new_tokens for result in self.counted]
        return min(numbers), max(numbers)

    @property
    def left_out(self) -> dict[str, int]:
        """The number of runs that do not count, by reason."""
        counted, reasons = {id(one) for one in self.counted}, Counter[str]()
        usual = {(span.name, span.source) for span in self.last.spans}
        for result in (one for one in self.results if id(one) not in counted):
            others = [span for span in result.spans if (span.name, span.source) not in usual]
            reason = ", ".join(f"{span.name} {span.source}" for span in others) or "other stages"
            if result.cold and not self.last.cold:
                reason = "cold, the first run after loading"
            reasons[CANCELLED if cancelled(result) else reason] += 1
        reasons += Counter({CANCELLED: self.unfinished, "failed": len(self.failures)})
        return dict(reasons)

    def time(self, name: str) -> RunRange | None:
        """The spread of a time of TIMES or of a span ("vision", "decode.prefill", ...).

        None if no run that counts has it; runs without it do not count.
        """
        if name in TIMES:
            values = [getattr(result, f"{name}_ms") for result in self.counted]
        else:
            values = [span and span.ms for span in (one.span(name) for one in self.counted)]
        known = [value for value in values if value is not None]
        return RunRange(median(known), min(known), max(known), len(known)) if known else None

    def times(self) -> dict[str, RunRange]:
        """The spread of each time that a run has: TIMES, the stages and the parts of decode."""
        names = (*TIMES, *STAGES, PREFILL, STEPS)
        return {name: spread for name in names if (spread := self.time(name)) is not None}


def cancelled(result: RunResult) -> bool:
    return result.generation.stop == "cancelled"


def _state(result: RunResult) -> tuple[object, ...]:
    """What makes two runs of one request comparable: warmth, backend, and every span's source."""
    sources = frozenset((span.name, span.source) for span in result.spans)
    return cancelled(result), result.cold, result.backend, sources


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
    rests = []
    for result in model.counted:
        decode, *parts = (result.span(name) for name in (DECODE, PREFILL, STEPS))
        if decode:
            rests.append(max(0.0, decode.ms - sum(part.ms for part in parts if part)))
    return known | ({REST: median(rests)} if rests else {})


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

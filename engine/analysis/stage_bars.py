"""Stage times as bars: one bar per model, its stages end to end in their fixed order.

A bar of single runs shows decode in its parts (RUN_PARTS); other bars show the stages (PARTS).

Boundary: milliseconds in, segments out; pages and reports draw them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from engine.analysis.compared import ComparedModel
from engine.palette import UNACCOUNTED
from engine.types import STAGES, RunResult, Span, StageName

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

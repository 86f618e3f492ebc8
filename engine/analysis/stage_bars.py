"""Stage times as bars: one bar per model, its stages end to end in their fixed order.

Boundary: milliseconds in, segments out; pages and reports draw them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.palette import UNACCOUNTED
from engine.types import STAGES

PARTS: tuple[str, ...] = (*STAGES, UNACCOUNTED)
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


def segments(times: StageTimes) -> list[BarSegment]:
    """Every part of PARTS of every label."""
    found = []
    for label, parts in times.items():
        start = 0.0
        for part in PARTS:
            found.append(BarSegment(label, part, start, max(0.0, parts.get(part, 0.0))))
            start = found[-1].end_ms
    return found

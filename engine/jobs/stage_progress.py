"""The stages of a running run so far, for a page that watches it.

Boundary: moments in, spans out.  These times include what the watcher's thread was delayed by; the
result's spans replace them at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from engine.types import Doing, Mode, Span

GENERATE = "generate"  # in hooked mode, vision and prefill are told apart at the end only


def progress(
    marks: Sequence[tuple[Doing, float]], token_ms: Sequence[float], now: float, mode: Mode
) -> tuple[Span, ...]:
    """The spans so far, on a clock that starts with the load stage.

    `marks`: the stages begun, each with its moment in seconds on the clock of `now`.  The last one
    lasts until `now`; the first token divides decode into prefill and steps.
    """
    begun = [(name, moment) for name, moment in marks if name != "compile"]
    if not begun:
        return ()
    start = begun[0][1]
    ends = [(name, 1000 * (moment - start)) for name, moment in begun] + [
        ("", 1000 * (now - start))
    ]
    spans = [Span(name, at, max(0.0, end - at)) for (name, at), (_, end) in pairwise(ends)]
    last = "vision" if mode == "hooked" else "decode"
    if spans[-1].name != last:
        return tuple(spans)
    return (*spans[:-1], *_split(spans[-1], token_ms, GENERATE if last == "vision" else ""))


def _split(span: Span, token_ms: Sequence[float], name: str) -> tuple[Span, ...]:
    """The time before the first token, and the time since."""
    end = span.start_ms + span.ms
    first = min(max(token_ms[0], span.start_ms), end) if token_ms else end
    before = Span(name or "decode.prefill", span.start_ms, first - span.start_ms)
    return (before, Span("decode.steps", first, end - first)) if token_ms else (before,)

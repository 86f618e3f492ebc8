"""Checks that the figures of a result follow from its raw spans and token times.

Boundary: recomputes each figure from the spans; judges results of timed runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from engine.storage.result_rows import ResultRow
from engine.types import STAGES, RunResult
from engine.verify.stage_times import TimedRun
from engine.verify.verdict import CheckFinding, judged

NEAR_MS = 1e-6
EDGE_MS = 0.001


def figures(rounds: Sequence[Sequence[TimedRun]]) -> CheckFinding:
    """Checks token times of all runs, and the figures of the last round's results and rows."""
    results = [timed.result for round_ in rounds for timed in round_]
    faults = [fault for result in results for fault in _tokens(result)]
    for timed in rounds[-1]:
        expected = recomputed(timed.result)
        faults += _different(timed.kind, "result", timed.result, expected)
        faults += _different(timed.kind, "row", ResultRow.from_result(timed.result), expected)
    evidence = {"runs": len(results), "faults": faults[:10]}
    good = f"TTFT, TPOT, totals and token times of {len(results)} runs follow from the raw spans."
    return judged(faults, good, "faults", evidence)


def recomputed(result: RunResult) -> dict[str, float | None]:
    """Every derived figure by its definition, from spans, token times and the run's end."""
    times, count = result.generation.token_ms, len(result.generation.token_ids)
    stages = [span for span in result.spans if span.name in STAGES]
    first = times[0] if times else None
    after = None if first is None or count < 2 else (result.total_ms - first) / (count - 1)
    cold: float | None = result.total_ms
    for span in stages:
        if span.source == "cached" and cold is not None:
            cold = None if span.original_ms is None else cold - span.ms + span.original_ms
    return {
        "ttft_ms": first,
        "tpot_ms": after,
        "tokens_per_s": None if not after else 1000 / after,
        "unaccounted_ms": result.total_ms - math.fsum(span.ms for span in stages),
        "uncached_total_ms": cold,
        "new_tokens": count,
    }


def _different(
    kind: str, what: str, found: RunResult | ResultRow, expected: Mapping[str, float | None]
) -> Iterator[str]:
    for name, value in expected.items():
        stated = getattr(found, name)
        if stated is None or value is None:
            if stated is value:
                continue
            yield f"{kind}: {name} of the {what} is {stated}, but the spans give {value}."
        elif abs(stated - value) > NEAR_MS * max(1.0, abs(value)):
            yield f"{kind}: {name} of the {what} is {stated:.6g}, but the spans give {value:.6g}."


def _tokens(result: RunResult) -> Iterator[str]:
    """Faults unless each token has one time, in ascending order and within the decode stage."""
    times, count = result.generation.token_ms, len(result.generation.token_ids)
    if len(times) != count:
        yield f"{count} tokens have {len(times)} times."
    if any(after <= before for before, after in pairwise(times)):
        yield "Two tokens have the same time, or a token's time is before that of the previous one."
    decode = result.span("decode")
    if decode is None or not times:
        return
    end = decode.start_ms + decode.ms
    if not decode.start_ms - EDGE_MS <= times[0] <= times[-1] <= end + EDGE_MS:
        yield "A token's time is not within the decode stage."
    prefill = result.span("decode.prefill")
    if prefill is None or abs(prefill.start_ms + prefill.ms - times[0]) > EDGE_MS:
        yield "The prefill does not end at the first token."

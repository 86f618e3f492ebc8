"""The time that each published claim is about, and the ratios of two models' times.

Boundary: records in, milliseconds and ratios out; None if a time is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from engine.published.read.answer_pairs import matched
from engine.published.read.record_types import AnswerRecord, ResultFile

ClaimTime = Callable[[AnswerRecord], float | None]


def total(record: AnswerRecord) -> float | None:
    """Total ms of the whole run; None if the group's totals do not include loading."""
    return record.ms("total") if record.group.total_is_whole_run else None


def decode(record: AnswerRecord) -> float | None:
    """Decoding ms, including the prefill if the file does not separate them."""
    found = record.decoding()
    return found[1] if found and found[0] != "total" else None


CLAIM_TIMES: Mapping[str, ClaimTime] = {
    "overall": total,
    "decoding": decode,
    "loading": lambda record: record.ms("load"),
}


def ratio_of_means(file: ResultFile, claim_time: ClaimTime, corrected: bool) -> float | None:
    """The target's mean time divided by the draft's, each over all records with a time."""
    every = ([claim_time(r) for r in file.of(m, corrected)] for m in (file.target, file.draft))
    slow, fast = ([value for value in values if value is not None] for values in every)
    if not slow or not fast or sum(fast) <= 0:
        return None
    return (math.fsum(slow) / len(slow)) / (math.fsum(fast) / len(fast))


def pairs(
    file: ResultFile, claim_time: ClaimTime, corrected: bool
) -> list[tuple[str, float, float]]:
    """(clip, target ms, draft ms) of each sample with both times."""
    found = []
    for record, other in matched(file, file.draft, file.target, corrected):
        fast, slow = claim_time(record), claim_time(other)
        if fast and slow:
            found.append((record.source, slow, fast))
    return found

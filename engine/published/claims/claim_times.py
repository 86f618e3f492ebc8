"""The time that each published claim is about, and the ratios of two models' times.

Boundary: records in, milliseconds and ratios out; None if a time is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from engine.published.read.answer_pairs import decoding, matched
from engine.published.read.corrected import part_of
from engine.published.read.record_types import AnswerRecord, ResultFile, milliseconds

ClaimTime = Callable[[ResultFile, AnswerRecord], float | None]


def total(file: ResultFile, record: AnswerRecord) -> float | None:
    """Total ms of the whole run; None if the group's totals do not include loading."""
    found = part_of(record, file.group, "total")
    return milliseconds(*found) if found and file.group.total_is_whole_run else None


def decode(file: ResultFile, record: AnswerRecord) -> float | None:
    """Decoding ms, including the prefill if the file does not separate them."""
    found = decoding(record, file)
    return found[1] if found and found[0] != "total" else None


def load(file: ResultFile, record: AnswerRecord) -> float | None:
    found = part_of(record, file.group, "load")
    return milliseconds(*found) if found else None


CLAIM_TIMES: Mapping[str, ClaimTime] = {"overall": total, "decoding": decode, "loading": load}


def ratio_of_means(file: ResultFile, claim_time: ClaimTime, corrected: bool) -> float | None:
    """The target's mean time divided by the draft's, each over all records with a time."""
    every = (
        [claim_time(file, r) for r in file.of(m, corrected)] for m in (file.target, file.draft)
    )
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
        fast, slow = claim_time(file, record), claim_time(file, other)
        if fast and slow:
            found.append((record.source, slow, fast))
    return found

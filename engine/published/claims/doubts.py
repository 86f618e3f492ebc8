"""Whether a file's times are all in one unit, so that their ratio can be evidence.

Boundary: a ResultFile in, sentences out.  The audit looks for mixed units record by record; this
module only checks whether the times of two models can be compared.
"""

from __future__ import annotations

import statistics

from engine.published.claims.claim_times import decode, ratio_of_means
from engine.published.read import plausible_units
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.quoting import precise_ms

IMPLAUSIBLE = 100.0  # times as fast: mixed seconds and milliseconds are more likely
ADDS_UP = 0.05  # of a total


def doubts(file: ResultFile, ratio: float) -> tuple[str, ...]:
    """A sentence if the units of the file, or of this ratio of two stages, are implausible.

    A single stage can be more than 100x as fast (loading in 1.5 ms against 1 s).  If the totals
    are plausible and equal the sum of their stages, all times are in one unit.
    """
    if sentence := impossible(file):
        return sentence
    whole = [ratio_of_means(file, claim_time, corrected=False) for claim_time in (_total, decode)]
    odd = [one for one in whole if one is not None and _beyond(one)]
    if odd:
        return doubted(odd[0])
    if lone := _lone(file):
        return (f"units in doubt: totals of one model differ by {_times(lone)}",)
    return () if not _beyond(ratio) or _adds_up(file) else doubted(ratio)


def impossible(file: ResultFile) -> tuple[str, ...]:
    """A sentence if a model's time per token or prefill is impossible in the file's unit."""
    for doubt in plausible_units.doubts(file):
        if doubt.model in (file.draft, file.target) or doubt.model not in file.models:
            return (f"units in doubt: {doubt.what} of {doubt.model} takes {precise_ms(doubt.ms)}",)
    return ()


def doubted(ratio: float) -> tuple[str, ...]:
    """A sentence if the ratio itself is implausible."""
    if not _beyond(ratio):
        return ()
    return (f"units in doubt: {_times(ratio)} is not a plausible ratio of these models",)


def _beyond(ratio: float) -> bool:
    return not 1 / IMPLAUSIBLE < ratio < IMPLAUSIBLE


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio > 1 else f"{ratio:.2g}x"


def _lone(file: ResultFile) -> float | None:
    """The first implausible ratio of a model's total to its median total."""
    for model in (file.draft, file.target):
        every = [_total(record) for record in file.of(model)]
        totals = [value for value in every if value]
        usual = statistics.median(totals) if totals else 1.0
        odd = next((one / usual for one in totals if _beyond(one / usual)), None)
        if odd is not None:
            return odd
    return None


def _adds_up(file: ResultFile) -> bool:
    """Whether all records of both models have totals that equal the sum of their stages."""
    return all(_close(record) for model in (file.draft, file.target) for record in file.of(model))


def _close(record: AnswerRecord) -> bool:
    total, stages = record.part("total"), record.stage_sum
    if total is None or stages is None:
        return False
    return abs(total[1] - stages) <= ADDS_UP * total[1]


def _total(record: AnswerRecord) -> float | None:
    """Any total of the file, whatever it includes."""
    return record.ms("total")

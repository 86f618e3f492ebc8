"""Whether a file's times can all be of one unit, so that a ratio of them can be evidence.

Boundary: a ResultFile in, sentences out.  The audit looks for mixed units record by record; this
asks only whether two models' times can stand in one ratio.
"""

from __future__ import annotations

import statistics

from engine.analysis.number_text import precise_ms
from engine.published.claims.claim_times import decode, ratio_of_means
from engine.published.read import plausible_units
from engine.published.read.corrected import part_of, stage_sum
from engine.published.read.record_types import AnswerRecord, ResultFile, milliseconds

IMPLAUSIBLE = 100.0  # times as fast: seconds and milliseconds are rather mixed
ADDS_UP = 0.05  # of a total


def doubts(file: ResultFile, ratio: float) -> tuple[str, ...]:
    """A sentence if the units of a file, or of this ratio of two stages, cannot be right.

    A single stage may well be more than 100x as fast (loading in 1.5 ms against 1 s): where the
    totals are not, and stages add up to them, one unit holds for all.
    """
    if told := impossible(file):
        return told
    whole = [ratio_of_means(file, claim_time, corrected=False) for claim_time in (_total, decode)]
    odd = [one for one in whole if one is not None and _beyond(one)]
    if odd:
        return doubted(odd[0])
    if lone := _lone(file):
        return (f"units in doubt: a model's totals differ by {_times(lone)} among themselves",)
    return () if not _beyond(ratio) or _adds_up(file) else doubted(ratio)


def impossible(file: ResultFile) -> tuple[str, ...]:
    """A sentence if what a model's token or prefill takes is possible in no unit but another."""
    for doubt in plausible_units.doubts(file):
        if doubt.model in (file.draft, file.target) or doubt.model not in file.models:
            return (f"units in doubt: {doubt.what} of {doubt.model} takes {precise_ms(doubt.ms)}",)
    return ()


def doubted(ratio: float) -> tuple[str, ...]:
    """The sentence for a ratio that is implausible in itself, else nothing."""
    if not _beyond(ratio):
        return ()
    return (f"units in doubt: {_times(ratio)} is no likely ratio of these models",)


def _beyond(ratio: float) -> bool:
    return not 1 / IMPLAUSIBLE < ratio < IMPLAUSIBLE


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio > 1 else f"{ratio:.2g}x"


def _total(file: ResultFile, record: AnswerRecord) -> float | None:
    """Whatever the file calls a total: here only its unit matters."""
    found = part_of(record, file.group, "total")
    return milliseconds(*found) if found else None


def _lone(file: ResultFile) -> float | None:
    """The first total of a model, over its usual one, that is beyond all likelihood."""
    for model in (file.draft, file.target):
        every = [_total(file, record) for record in file.of(model)]
        totals = [value for value in every if value]
        usual = statistics.median(totals) if totals else 1.0
        odd = next((one / usual for one in totals if _beyond(one / usual)), None)
        if odd is not None:
            return odd
    return None


def _adds_up(file: ResultFile) -> bool:
    """Whether all records of both models have totals, and stages that make them up."""
    records = [*file.of(file.draft), *file.of(file.target)]
    return all(_close(file, record) for record in records)


def _close(file: ResultFile, record: AnswerRecord) -> bool:
    total, stages = part_of(record, file.group, "total"), stage_sum(record, file.group)
    if total is None or stages is None:
        return False
    return abs(total[1] - stages) <= ADDS_UP * total[1]

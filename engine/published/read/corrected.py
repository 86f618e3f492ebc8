"""Corrected records beside the recorded ones.  What cannot be corrected is left out.

The rules are in the documentation of published files.  `marks` say what was corrected: "sliced"
(first tokens were missing: 60 are added to the count, or it is left out), "prompt" (the answer
included the prompt), "context" (2,048 tokens counted twice), "cold" and "cold:KEY" (a warm-up, and
the affected stage), "total" (replaced by the sum of the stages), "placeholder:KEY" (a stage that
was never measured).

In a warm-up record only the affected stage is replaced, by the mean of the model's other records.
The total, and the time to the end of the prefill, are reduced by the same time.  So the mean stages
and the unaccounted rest still add up to the mean total.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.published.read.answer_tokens import (
    is_sliced,
    mark,
    prompt_ids,
    stripped,
    with_missing_ids,
)
from engine.published.read.file_forms import Part
from engine.published.read.record_types import AnswerRecord, Identity, milliseconds
from engine.published.read.who_answered import CLIP_TOKENS, EXPANSION

PLACEHOLDER_MS = 0.01
COLD_SHIFT = 0.05
COLD_RATIO = 2.0
THOUSANDFOLD = 300.0
COLD_SPREAD = 10 * 1.4826  # times the median deviation: ten standard deviations of normal noise
TOLERANCE = 0.02
TO_PREFILL = "prefill_complete_time"  # D: stages 1 to 4 by definition
_SAME: tuple[Part, ...] = ("preprocess", "vision", "prefill")  # work for every sample
_LENGTH: tuple[Part, ...] = ("decode", "steps")
Place = tuple[str, str]  # a record by its model and path


def corrected(
    records: Sequence[AnswerRecord], identities: Mapping[str, Identity]
) -> tuple[AnswerRecord, ...]:
    """The records in their order, each corrected if the file shows that it is wrong."""
    empty = placeholders(records)
    cold = cold_stages(records)
    prompted = {record.model for record in records if prompt_ids(record.ids)}
    found = []
    for record in records:
        identity = identities.get(record.model)
        better = with_missing_ids(stripped(record, record.model in prompted), identity)
        if is_doubled(better.context, identity) and better.context is not None:
            better = mark(replace(better, context=better.context - EXPANSION), "context")
        if keys := empty.get(record.model, ()):
            times = {key: value for key, value in better.times.items() if key not in keys}
            better = mark(replace(better, times=times), *(f"placeholder:{key}" for key in keys))
        better = _total(better)
        if (record.model, record.path) in cold:
            better = _warmed(better, _usual(records, record, cold))
        found.append(better)
    return tuple(found)


def _usual(
    records: Sequence[AnswerRecord], first: AnswerRecord, cold: Mapping[Place, Mapping[str, float]]
) -> dict[str, float]:
    """By stage of a warm-up, the mean over the model's records without a warm-up in it."""
    found = {}
    mine = [record for record in records if record.model == first.model]
    for key in cold[first.model, first.path]:
        warm = [record for record in mine if key not in cold.get((record.model, record.path), ())]
        values = [record.times[key] for record in warm if key in record.times]
        if values:
            found[key] = statistics.fmean(values)
    return found


def _warmed(record: AnswerRecord, usual: Mapping[str, float]) -> AnswerRecord:
    """The record with usual times instead of the stages of a warm-up, also in the total."""
    times = {**record.times, **usual}
    saved = {key: record.times[key] - value for key, value in usual.items()}
    total = record.part("total")
    if total is not None:
        times[total[0]] = max(0.0, total[1] - sum(saved.values()))
    if TO_PREFILL in times:
        before = sum(gain for key, gain in saved.items() if record.group.stages.get(key) != "steps")
        times[TO_PREFILL] = max(0.0, times[TO_PREFILL] - before)
    marks = ("cold", *(f"cold:{key}" for key in usual))
    return mark(replace(record, times=times), *marks)


def is_doubled(context: float | None, identity: Identity | None) -> bool:
    """Video-LLaVA's context with its 2,048 patch tokens counted a second time."""
    if context is None or identity is None or identity.family != "video_llava":
        return False
    return 5 <= context - EXPANSION - CLIP_TOKENS <= 150


def placeholders(records: Sequence[AnswerRecord]) -> dict[str, tuple[str, ...]]:
    """By model, the stages that never took more than 10 microseconds: they were not measured."""
    longest: dict[tuple[str, str], float] = {}
    for record in records:
        for key, value in record.times.items():
            place = record.model, key
            longest[place] = max(longest.get(place, 0.0), milliseconds(key, value))
    found: dict[str, tuple[str, ...]] = {}
    for (model, key), most in longest.items():
        part = records[0].group.stages.get(key, "total")
        if most <= PLACEHOLDER_MS and part != "total":
            found[model] = (*found.get(model, ()), key)
    return found


def _total(record: AnswerRecord) -> AnswerRecord:
    """A total below the sum of its stages is replaced by this sum."""
    total, stages = record.part("total"), record.stage_sum
    if not record.group.has_stage_times or total is None or stages is None:
        return record
    key, value = total
    if stages - value <= TOLERANCE * stages:
        return record
    return mark(replace(record, times={**record.times, key: stages}), "total")


def cold_stages(records: Sequence[AnswerRecord]) -> dict[Place, dict[str, float]]:
    """By (model, path) of a first record, its stages with a warm-up and the median of the others.

    Loading depends on the disk and is not checked.  Decoding depends on the answer's length, so it
    is a warm-up only if its time per token is one too.  Other stages do the same work for every
    sample.
    """
    rows: dict[str, list[AnswerRecord]] = {}
    for record in records:
        rows.setdefault(record.model, []).append(record)
    found: dict[Place, dict[str, float]] = {}
    for first, *rest in rows.values():
        if _is_thousandfold(first, rest):
            continue  # in another unit, so not a warm-up
        for key, value in first.times.items():
            part = first.group.stages.get(key)
            values = [record.times[key] for record in rest if key in record.times]
            slow = part in (*_SAME, *_LENGTH) and is_warm_up(value, values)
            if slow and part in _LENGTH:
                paces = [pace for record in rest if (pace := _pace(key, record)) is not None]
                mine = _pace(key, first)
                slow = mine is not None and is_warm_up(mine, paces)
            if slow:
                found.setdefault((first.model, first.path), {})[key] = statistics.median(values)
    return found


def _is_thousandfold(first: AnswerRecord, rest: Sequence[AnswerRecord]) -> bool:
    """Whether a first record takes too long for a warm-up: its unit is probably different."""
    mine, *others = (
        total[1] if (total := record.part("total")) else record.stage_sum
        for record in (first, *rest)
    )
    known = [value for value in others if value]
    return bool(mine and known and mine > THOUSANDFOLD * statistics.median(known))


def _pace(key: str, record: AnswerRecord) -> float | None:
    """The decoding time per token of a record with known tokens."""
    whole = stripped(record, prompted=False)
    if key not in record.times or not whole.tokens or is_sliced(whole):
        return None
    return record.times[key] / whole.tokens


def is_warm_up(first: float, others: Sequence[float]) -> bool:
    """Whether a first value is an outlier that changes the mean.

    It must raise the mean by more than 5 %, be more than twice the largest other value, and be more
    than ten standard deviations (from the median deviation) above the median.  A first of ten
    values that scatter by half of their mean passes once in 50,000 times.  A ratio to the median
    would also accept noise, and a spread would also accept irrelevant differences.
    """
    if len(others) < 2 or min(others) <= 0:
        return False
    mean, usual = statistics.fmean(others), statistics.median(others)
    spread = statistics.median(abs(value - usual) for value in others)
    moved = statistics.fmean([first, *others]) > (1 + COLD_SHIFT) * mean
    return moved and first > COLD_RATIO * max(others) and first - usual > COLD_SPREAD * spread

"""Corrected records beside the recorded ones.  What cannot be corrected is left out.

`marks` say what was corrected: "sliced" (first tokens were missing: 60 are added to the count, or
it is left out), "prompt" (the answer included it), "context" (2,048 tokens counted twice), "cold"
and "cold:KEY" (a warm-up, and the affected stage), "total" (replaced by the sum of the stages),
"placeholder:KEY" (a stage that was never measured).

In a warm-up record only the affected stage is replaced, by the mean of the model's other records.
The total, and the time to the end of the prefill, are reduced by the same time.  So the mean stages
and the unaccounted rest still add up to the mean total.

Some published scripts kept the prompt's ids in front of an answer, which can be removed; others cut
as many ids off answers without a prompt: only their number is known, and only for EventGPT.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.published.read.record_types import BOS, AnswerRecord, Identity, milliseconds
from engine.published.read.who_answered import (
    CLIP_ID,
    CLIP_TOKENS,
    EXPANSION,
    IMAGE_ID,
    KEY_FAMILY,
    foreign,
)

PLACEHOLDER_MS = 0.01
THOUSANDFOLD = 300.0
TOLERANCE = 0.02
TO_PREFILL = "prefill_complete_time"  # stages 1 to 4 by definition
_SAME = ("preprocess", "vision", "prefill")  # work for every sample
_LENGTH = ("decode", "steps")


def corrected(
    records: Sequence[AnswerRecord], identities: Mapping[str, Identity]
) -> tuple[AnswerRecord, ...]:
    """The records in their order, each corrected if the file shows that it is wrong."""
    every: dict[str, list[AnswerRecord]] = {}
    for record in records:
        every.setdefault(record.model, []).append(record)
    better = {}
    for model, mine in every.items():
        prompted, empty = any(prompt_ids(record.ids) for record in mine), placeholders(mine)
        found = [_mended(stripped(one, prompted), identities.get(model), empty) for one in mine]
        usual = {key: statistics.fmean(values) for key, values in cold_stages(mine).items()
                 if key not in empty}  # fmt: skip
        if usual:  # times instead of the stages of a warm-up, also in the total
            first = found[0]
            saved = {key: first.times[key] - value for key, value in usual.items()}
            stages, times = first.group.stages, {**first.times, **usual}
            before = sum(gain for key, gain in saved.items() if stages.get(key) != "steps")
            total = first.part("total") or ("", 0.0)
            for key, less in ((total[0], sum(saved.values())), (TO_PREFILL, before)):
                if key in times:
                    times[key] = max(0.0, times[key] - less)
            marks = first.marks | {"cold", *(f"cold:{key}" for key in usual)}
            found[0] = replace(first, times=times, marks=marks)
        better[model] = iter(found)
    return tuple(next(better[record.model]) for record in records)


def _mended(record: AnswerRecord, identity: Identity | None, empty: Sequence[str]) -> AnswerRecord:
    """The record with whole counts, and without stages that were never measured."""
    tokens, context, marks = record.tokens, record.context, {*record.marks}
    if is_sliced(record):
        tokens = (record.tokens or 0.0) + SLICE
        other = identity is not None and foreign(identity.claimed, record.model)
        # the scripts cut ids off EventGPT's answers without a prompt only
        if (other or KEY_FAMILY.get(record.model) != "eventgpt" or "prompt" in record.marks
                or tokens > MOST * words(record)):  # fmt: skip
            tokens = None
        marks.add("sliced")
    if context is not None and is_doubled(context, identity):
        context -= EXPANSION
        marks.add("context")
    marks |= {f"placeholder:{key}" for key in empty}
    times = {key: value for key, value in record.times.items() if key not in empty}
    better = replace(record, tokens=tokens, context=context, times=times)
    total, stages = better.part("total"), better.stage_sum or 0.0
    if record.group.covers and total and stages - total[1] > TOLERANCE * stages:
        times[total[0]] = stages
        marks.add("total")
    return replace(better, times=times, marks=frozenset(marks))


def is_doubled(context: float | None, identity: Identity | None) -> bool:
    """Video-LLaVA's context with its 2,048 patch tokens counted a second time."""
    if context is None or identity is None or identity.family != "video_llava":
        return False
    return 5 <= context - EXPANSION - CLIP_TOKENS <= 150


def placeholders(records: Sequence[AnswerRecord]) -> tuple[str, ...]:
    """The stages of a model that never took more than 10 microseconds: they were not measured."""
    timed = [(key, milliseconds(key, ms)) for record in records for key, ms in record.times.items()]
    long = {key for key, ms in timed if ms > PLACEHOLDER_MS}
    return tuple(key for key in dict.fromkeys(key for key, _ in timed) if key not in long
                 and records[0].group.stages.get(key, "total") != "total")  # fmt: skip


def cold_stages(records: Sequence[AnswerRecord]) -> dict[str, list[float]]:
    """The stages of a model's first record with a warm-up, and the times of the others.  Loading
    depends on the disk and is not checked.  Decoding depends on the answer's length, so it is a
    warm-up only if its time per token is one too.  Other stages do the same for every sample."""
    whole = [total[1] if (total := one.part("total")) else one.stage_sum for one in records]
    known = [value for value in whole[1:] if value]
    # too long for a warm-up: its unit is probably different
    thousandfold = known and (whole[0] or 0.0) > THOUSANDFOLD * statistics.median(known)
    if len(records) < 3 or thousandfold:
        return {}
    first, *rest = records
    found = {}
    for key, value in first.times.items():
        part = first.group.stages.get(key)
        values = [record.times[key] for record in rest if key in record.times]
        slow = part in (*_SAME, *_LENGTH) and is_warm_up(value, values)
        if slow and part in _LENGTH:
            mine, *paces = (_pace(key, record) for record in records)
            others = [pace for pace in paces if pace is not None]
            slow = mine is not None and is_warm_up(mine, others)
        if slow:
            found[key] = values
    return found


def _pace(key: str, record: AnswerRecord) -> float | None:
    """The time per token, without a prompt; None for an answer that is not whole."""
    whole = stripped(record, prompted=False)
    if key not in record.times or not whole.tokens or is_sliced(whole):
        return None
    return record.times[key] / whole.tokens


def is_warm_up(first: float, others: Sequence[float]) -> bool:
    """Whether a first value is an outlier that changes the mean: it must raise the mean by over 5%,
    be more than twice the largest other value, and be more than ten standard deviations (from the
    median deviation) above the median.  A first of ten values that scatter by half of their
    mean passes once in 50,000 times.  A ratio to the median would also accept noise, and a spread
    would also accept irrelevant differences."""
    if len(others) < 2 or min(others) <= 0:
        return False
    mean, usual = statistics.fmean(others), statistics.median(others)
    spread = statistics.median(abs(value - usual) for value in others)
    moved = statistics.fmean([first, *others]) > 1.05 * mean
    # 1.4826 median deviations are a standard deviation of normal noise
    return moved and first > 2 * max(others) and first - usual > 10 * 1.4826 * spread


SLICE = 60  # the length of the scripts' prompt, which they cut off EventGPT's answers
ASSISTANT = (22933, 9047, 13566, 29901)  # "ASSISTANT:" in LLaMA's vocabulary
PLACEHOLDERS = frozenset({IMAGE_ID, CLIP_ID, -200})
WORDS = 0.8  # tokens per word: an answer with fewer is incomplete, because a word has at least one
MOST = 2.0  # tokens per word: complete published answers have 1.0 to 1.5


def prompt_ids(ids: Sequence[int] | None) -> int:
    """How many ids belong to the prompt: up to and including "ASSISTANT:", otherwise the last image
    placeholder near the beginning."""
    if not ids or not (ids[0] == BOS or not PLACEHOLDERS.isdisjoint(ids)):
        return 0
    for end in range(len(ASSISTANT), len(ids) + 1):
        if tuple(ids[end - len(ASSISTANT) : end]) == ASSISTANT:
            return end
    places = [index for index, token in enumerate(ids) if token in PLACEHOLDERS]
    is_prompt = len(places) >= 100 and places[0] <= 100  # with few ids before the image
    return places[-1] + 1 if is_prompt else 0


def stripped(record: AnswerRecord, prompted: bool) -> AnswerRecord:
    """The record without a prompt.  prompted: other answers of this model include it, so a count
    without ids is unknown."""
    if record.ids and (cut := prompt_ids(record.ids)):
        ids = record.ids[cut:]
        return replace(record, ids=ids, tokens=float(len(ids)), marks=record.marks | {"prompt"})
    if prompted and not record.ids and record.tokens is not None:
        return replace(record, tokens=None, marks=record.marks | {"prompt"})
    return record


def is_sliced(record: AnswerRecord) -> bool:
    """Whether there are fewer than 0.8 tokens per word: first ids are missing."""
    return bool(record.tokens and record.text) and (record.tokens or 0) < WORDS * words(record)


def words(record: AnswerRecord) -> int:
    """The number of words of the answer, without a question in front of it."""
    return len((record.text or "").rpartition("ASSISTANT:")[2].split())

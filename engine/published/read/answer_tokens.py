"""Whose tokens an answer's are: prompts that stand in front of it, and slices that it lacks.

Published scripts kept a prompt's ids in front of an answer, or cut as many off one that never held
them.  The first can be taken off; of the second only the number is known, and only for EventGPT.

Boundary: changes one record at a time; the sentences about it are the audit's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.published.read.record_types import BOS, AnswerRecord, Identity
from engine.published.read.who_answered import CLIP_ID, IMAGE_ID, KEY_FAMILY, foreign

SLICE = 60  # ids of the scripts' prompt, cut off answers of EventGPT that never held it
ASSISTANT = (22933, 9047, 13566, 29901)  # "ASSISTANT:" in LLaMA's vocabulary
PLACEHOLDERS = frozenset({IMAGE_ID, CLIP_ID, -200})
MANY_PLACEHOLDERS = 100
WORDS = 0.8  # tokens a word: fewer are no whole answer, for each word takes one at least
MOST = 2.0  # tokens a word: the published files' whole answers have 1.0 to 1.5
_EARLY = 100  # a prompt's text before its image is no longer


def prompt_ids(ids: Sequence[int] | None) -> int:
    """How many of the ids are the prompt's: up to and with "ASSISTANT:", or else with the last
    placeholder of an image near the beginning."""
    if not ids or not (ids[0] == BOS or not PLACEHOLDERS.isdisjoint(ids)):
        return 0
    size = len(ASSISTANT)
    for start in range(len(ids) - size + 1):
        if tuple(ids[start : start + size]) == ASSISTANT:
            return start + size
    return _placeholders(ids)


def _placeholders(ids: Sequence[int]) -> int:
    places = [index for index, one in enumerate(ids) if one in PLACEHOLDERS]
    if len(places) < MANY_PLACEHOLDERS or places[0] > _EARLY:
        return 0
    return places[-1] + 1


def is_open(ids: Sequence[int] | None) -> bool:
    """Whether a prompt is there without the "ASSISTANT:" that shows its end."""
    cut = prompt_ids(ids)
    return bool(cut and ids is not None and tuple(ids[cut - len(ASSISTANT) : cut]) != ASSISTANT)


def stripped(record: AnswerRecord, prompted: bool) -> AnswerRecord:
    """prompted: other answers of this model hold the prompt, so that a count alone says nothing."""
    if prompted and not record.ids and record.tokens is not None:
        return mark(replace(record, tokens=None), "prompt")
    cut = prompt_ids(record.ids)
    if not cut or record.ids is None:
        return record
    ids = record.ids[cut:]
    return mark(replace(record, ids=ids, tokens=float(len(ids))), "prompt")


def is_sliced(record: AnswerRecord) -> bool:
    """A count below 0.8 of the words: ids were cut off, whoever answered."""
    if not record.tokens or not record.text:
        return False
    return record.tokens < WORDS * words(record)


def words(record: AnswerRecord) -> int:
    """Of the answer alone: some texts repeat the question in front of it."""
    return len((record.text or "").rpartition("ASSISTANT:")[2].split())


def mended(record: AnswerRecord, identity: Identity | None) -> AnswerRecord:
    """A sliced count with what the scripts cut off EventGPT's, or None where that is not known."""
    if not is_sliced(record) or record.tokens is None:
        return record
    whole = record.tokens + SLICE
    explained = is_of_the_scripts(record, identity) and whole <= MOST * words(record)
    return mark(replace(record, tokens=whole if explained else None), "sliced")


def is_of_the_scripts(record: AnswerRecord, identity: Identity | None) -> bool:
    """Whether the scripts' cut is what EventGPT's answer lacks; with its prompt in front it lacks
    something else."""
    if KEY_FAMILY.get(record.model) != "eventgpt" or "prompt" in record.marks:
        return False
    return identity is None or not foreign(identity.claimed, record.model)


def mark(record: AnswerRecord, *marks: str) -> AnswerRecord:
    return replace(record, marks=record.marks | set(marks))

"""Answers that include the prompt, or that lack their first ids.

Some published scripts kept the prompt's ids in front of an answer; others cut as many ids off
answers without a prompt.  The first can be removed.  Of the second only the number is known, and
only for EventGPT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.published.read.record_types import BOS, AnswerRecord, Identity
from engine.published.read.who_answered import CLIP_ID, IMAGE_ID, KEY_FAMILY, foreign

SLICE = 60  # the length of the scripts' prompt, which they cut off EventGPT's answers
ASSISTANT = (22933, 9047, 13566, 29901)  # "ASSISTANT:" in LLaMA's vocabulary
PLACEHOLDERS = frozenset({IMAGE_ID, CLIP_ID, -200})
MANY_PLACEHOLDERS = 100
WORDS = 0.8  # tokens per word: an answer with fewer is incomplete, because a word has at least one
MOST = 2.0  # tokens per word: complete published answers have 1.0 to 1.5
_EARLY = 100  # at most so many ids before the image in a prompt


def prompt_ids(ids: Sequence[int] | None) -> int:
    """How many ids belong to the prompt: up to and including "ASSISTANT:", otherwise the last image
    placeholder near the beginning."""
    if not ids or not (ids[0] == BOS or not PLACEHOLDERS.isdisjoint(ids)):
        return 0
    for end in range(len(ASSISTANT), len(ids) + 1):
        if tuple(ids[end - len(ASSISTANT) : end]) == ASSISTANT:
            return end
    places = [index for index, token in enumerate(ids) if token in PLACEHOLDERS]
    is_prompt = len(places) >= MANY_PLACEHOLDERS and places[0] <= _EARLY
    return places[-1] + 1 if is_prompt else 0


def is_open(ids: Sequence[int] | None) -> bool:
    """Whether the ids have a prompt without the "ASSISTANT:" at its end."""
    cut = prompt_ids(ids)
    return bool(cut and ids and tuple(ids[cut - len(ASSISTANT) : cut]) != ASSISTANT)


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


def whole_count(record: AnswerRecord, identity: Identity | None) -> float | None:
    """The number of tokens of a record with missing ids: SLICE more, None if it is unknown."""
    whole = (record.tokens or 0.0) + SLICE
    explained = is_of_the_scripts(record, identity) and whole <= MOST * words(record)
    return whole if explained else None


def is_of_the_scripts(record: AnswerRecord, identity: Identity | None) -> bool:
    """Whether the scripts cut SLICE ids off this answer: only EventGPT's without a prompt."""
    if KEY_FAMILY.get(record.model) != "eventgpt" or "prompt" in record.marks:
        return False
    return identity is None or not foreign(identity.claimed, record.model)

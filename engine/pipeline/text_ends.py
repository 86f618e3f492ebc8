"""How much of an answer's text is known after each of its tokens, for a replay.

It runs after the run's clock has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from operator import eq

UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # at the end: bytes of a character are missing

Decode = Callable[[Sequence[int]], str]


def text_ends(decode: Decode, ids: Sequence[int]) -> tuple[int, ...]:
    """For each id, the number of known characters of `decode(ids).strip()`; the last is all.

    Each id is decoded with its neighbour before it, which takes time proportional to the number of
    ids; with all before it only if that gives another text.
    """
    whole = decode(ids)
    parts = _parts(decode, ids)
    if "".join(parts) != whole:
        parts = _exact_parts(decode, ids, whole)
    text, lead = whole.strip(), len(whole) - len(whole.lstrip())
    ends, known = [], -lead
    for part in parts:
        known += len(part)
        ends.append(min(max(known, 0), len(text)))
    return (*ends[:-1], len(text)) if ends else ()


def _parts(decode: Decode, ids: Sequence[int]) -> list[str]:
    """The text that each id adds; "" while a character is unfinished."""
    parts, first, read = [], 0, 0
    for end in range(1, len(ids) + 1):
        before, now = decode(ids[first:read]), decode(ids[first:end])
        if len(now) > len(before) and not now.endswith(UNFINISHED):
            parts.append(now[len(before) :])
            first, read = read, end
        else:
            parts.append("")
    return parts


def _exact_parts(decode: Decode, ids: Sequence[int], whole: str) -> list[str]:
    """What the text of the first ids has in common with the whole text, id by id."""
    parts, known = [], 0
    for end in range(1, len(ids) + 1):
        same = takewhile(bool, map(eq, decode(ids[:end]), whole))
        found = max(known, sum(1 for _ in same))
        parts.append(whole[known:found])
        known = found
    return parts

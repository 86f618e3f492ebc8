"""How much of an answer's text is known after each of its tokens, for a replay.  It runs after the
run's clock has stopped."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from operator import eq
from typing import Any

from tokenizers.decoders import DecodeStream


def text_ends(tokenizer: Any, ids: Sequence[int]) -> tuple[int, ...]:
    """For each id, the number of known characters of the answer's text without white space around
    it; the last is all.  An id is decoded with all before it only where the parts do not add up to
    the whole text."""
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    whole = decode(ids)
    parts = _parts(tokenizer, ids)
    if "".join(parts) != whole:
        parts = _exact_parts(decode, ids, whole)
    text, lead = whole.strip(), len(whole) - len(whole.lstrip())
    ends, known = [], -lead
    for part in parts:
        known += len(part)
        ends.append(min(max(known, 0), len(text)))
    return (*ends[:-1], len(text)) if ends else ()


def _parts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text that each id adds; "" while a character is unfinished.  [] if the tokenizer changes
    earlier text, or is none of the library tokenizers."""
    stream = DecodeStream(skip_special_tokens=True)
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        return []
    try:
        return [stream.step(fast, one) or "" for one in ids]
    except Exception:  # noqa: BLE001 - the library raises no other class
        return []


def _exact_parts(
    decode: Callable[[Sequence[int]], str], ids: Sequence[int], whole: str
) -> list[str]:
    """What the text of the first ids has in common with the whole text, id by id."""
    parts, known = [], 0
    for end in range(1, len(ids) + 1):
        same = takewhile(bool, map(eq, decode(ids[:end]), whole))
        found = max(known, sum(1 for _ in same))
        parts.append(whole[known:found])
        known = found
    return parts

"""Which tokens of an answer chosen words are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.errors import BadInput
from engine.prompts import MARKERS
from engine.quoting import cut, quoted

NOT_SAID = "The model did not say these words: they are scored as if its answer began with them."
TWICE = "The words occur {:,} times in the answer: the first place is explained."
Tokenize = Callable[[str], Sequence[int]]


@dataclass(frozen=True)
class ScoredWords:
    """The words as they are scored: a part [first, after) of the ids."""

    words: str
    said: bool
    token_ids: tuple[int, ...]
    scored: tuple[int, int]
    notes: tuple[str, ...] = ()


def find(
    words: str, answer: str, ids: Sequence[int], ends: Sequence[int], tokenize: Tokenize
) -> ScoredWords:
    """The first place of the words in the answer, or the words as an answer of their own.

    `ends`: the number of the answer's characters that are known after each id.  Case is ignored
    only if the words do not occur as they are written.
    """
    places = _places(words, answer) or _places(words, answer, re.IGNORECASE)
    if not places:
        alone = tuple(tokenize(words))
        if not alone:
            raise BadInput(f"{quoted(words)} has no tokens in this model: give other words.")
        return ScoredWords(words, False, alone, (0, len(alone)), (NOT_SAID,))
    begin, after = places[0]
    notes = (TWICE.format(len(places)),) if len(places) > 1 else ()
    return ScoredWords(answer[begin:after], True, tuple(ids), _tokens(begin, after, ends), notes)


def _places(words: str, answer: str, flags: re.RegexFlag = re.NOFLAG) -> list[tuple[int, int]]:
    """Where the words stand as whole words; any whitespace stands for any other."""
    text = r"\s+".join(map(re.escape, words.split()))
    letter = re.compile("[A-Za-z0-9]")
    before = r"(?<![A-Za-z0-9])" if letter.match(words[0]) else ""
    behind = r"(?![A-Za-z0-9])" if letter.match(words[-1]) else ""
    return [match.span() for match in re.finditer(before + text + behind, answer, flags)]


def _tokens(begin: int, after: int, ends: Sequence[int]) -> tuple[int, int]:
    """The tokens that hold characters from `begin` to before `after`.

    A character of several tokens is known after its last one, so those before it count too.
    """
    first = next(place for place, end in enumerate(ends) if end > begin)
    last = next(place for place, end in enumerate(ends) if end >= after)
    while first and ends[first - 1] == (ends[first - 2] if first > 1 else 0):
        first -= 1
    return first, last + 1


def refuse_markers(words: str, special: Sequence[str]) -> None:
    """BadInput if the words contain a token that prompts use as a marker."""
    for marker in (*MARKERS, *special):
        if marker and marker in words:
            raise BadInput(
                f"The words contain {quoted(marker)}, which the model reads as a marker: leave it "
                "out."
            )


def refuse_ids(ids: Sequence[int], known: int, model: str) -> None:
    """BadInput for ids that the model does not have."""
    if strange := next((one for one in ids if not 0 <= one < known), None):
        raise BadInput(
            f"The answer holds the token {strange:,}, but {cut(model)} has {known:,} tokens: it "
            "is the answer of another model, run this one again."
        )

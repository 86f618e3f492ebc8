"""Two texts compared word by word: their overlap and their differences.

Boundary: strings in, numbers and pieces out.  Overlap is not accuracy: an answer may share words
with a reference and be wrong, or share none and be right.

Word F1 is SQuAD's answer score (Rajpurkar et al. 2016): the harmonic mean of two shares, the shared
words of all words in each text.  A repeated word counts as often as both texts have it.  Words are
runs of letters and digits in lower case.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

NAME = "word F1"
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\s*\S+")


@dataclass(frozen=True)
class DiffPiece:
    """A part of the two texts: in both, or only in the first or second."""

    kind: Literal["both", "first", "second"]
    text: str


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def word_f1(first: str, second: str) -> float | None:
    """From 0 (no word shared) to 1 (the same words); None if neither text has a word."""
    a, b = words(first), words(second)
    if not a and not b:
        return None
    shared = sum((Counter(a) & Counter(b)).values())
    return 2 * shared / (len(a) + len(b))


def difference(first: str, second: str) -> tuple[DiffPiece, ...]:
    """Both texts as pieces in reading order; each piece says which text has it."""
    a, b = _PIECE.findall(first), _PIECE.findall(second)
    matcher = SequenceMatcher(None, [p.strip() for p in a], [p.strip() for p in b], autojunk=False)
    pieces = []
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            pieces.append(DiffPiece("both", "".join(a[i:j])))
            continue
        pieces += [DiffPiece("first", "".join(a[i:j]))] if i < j else []
        pieces += [DiffPiece("second", "".join(b[k:m]))] if k < m else []
    return tuple(pieces)

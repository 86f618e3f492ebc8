"""A draft's text with each piece accepted or rejected by the target.

Published files have ids and texts but no tokenizer.  So the text of each id is inferred: a text is
split into words and signs; an answer with as many ids as pieces gives one piece per id, and longer
words get the remaining ids.  `doubt` says why a division is uncertain or missing.  A piece of
several ids is accepted only if all of them are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from engine.analysis.acceptance import Pair

ORDER = ("rejected", "beyond", "matched", "accepted")  # a piece has the worst state of its ids
MOST_IDS = 6  # of one word
LONGEST = 1024  # ids of an answer that is divided
GUESSED = "which words have several ids is guessed from their length"
_PIECE = re.compile(r"\s*\w+|\s*[^\w\s]")
_SPECIAL = frozenset({0, 1, 2})


@dataclass(frozen=True)
class MarkedPiece:
    """A part of the draft's text with its ids' positions (first, one after last) and state."""

    text: str
    first: int
    end: int
    state: str


@dataclass(frozen=True)
class Painting:
    """The draft's text in pieces.  doubt: why the division is uncertain, "" if it is certain; it
    ends a sentence that begins with "here"."""

    pieces: tuple[MarkedPiece, ...]
    doubt: str = ""

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def states(pair: Pair) -> list[str]:
    """Of each id of the draft.  matched: equal to the target's, but after the prefix."""
    same = [a == b for a, b in zip(pair.draft, pair.target, strict=False)]
    found = ["matched" if equal else "rejected" for equal in same]
    found += ["beyond"] * (len(pair.draft) - len(same))
    return ["accepted"] * pair.prefix + found[pair.prefix :]


def from_text(pair: Pair, text: str) -> Painting:
    """From the answer's text only."""
    of_ids = states(pair)
    places = [place for place, token in enumerate(pair.draft) if token not in _SPECIAL]
    words, doubt = split(text), ""
    if (sizes := shares(len(places), words)) is None:
        doubt = (
            f"the text is shown as one piece: {len(places):,} ids cannot be given to its "
            f"{len(words):,} words and signs"
        )
        words, sizes = ([text], [len(places)]) if places else ([], [])
    elif max(sizes) > 1:
        doubt = GUESSED
    pieces = []
    for word, size, end in zip(words, sizes, accumulate(sizes), strict=True):
        own = places[end - size : end]
        worst = min((of_ids[place] for place in own), key=ORDER.index)
        pieces.append(MarkedPiece(word, own[0], own[-1] + 1, worst))
    return Painting(tuple(pieces), doubt)


def split(text: str) -> list[str]:
    """Words and signs with the space before them."""
    return _PIECE.findall(text)


def shares(ids: int, pieces: Sequence[str]) -> list[int] | None:
    """How many ids each piece has, or None if there are too few or too many: one, and each of the
    rest where it leaves the fewest letters to an id."""
    sizes = [1] * len(pieces)
    if not pieces or not len(pieces) <= ids <= min(MOST_IDS * len(pieces), LONGEST):
        return None
    lengths = [len(piece.strip()) for piece in pieces]
    for _ in range(ids - len(pieces)):
        sizes[max(range(len(sizes)), key=lambda place: lengths[place] / sizes[place])] += 1
    return sizes

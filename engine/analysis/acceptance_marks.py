"""A draft's text with each piece accepted or rejected by the target.

Published files have ids and texts but no tokenizer.  So the text of each id is inferred: a text is
split into words and signs, an answer with as many ids as pieces gives one piece per id, and longer
words get the remaining ids.  `doubt` says why a division is uncertain or missing.  A piece of
several ids is accepted only if all of them are.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.analysis.acceptance import Pair

ORDER = ("rejected", "beyond", "matched", "accepted")  # a piece has the worst state of its ids
MOST_IDS = 6  # of one word
LEARNT_FROM = 80  # answers
LONGEST = 1024  # ids of an answer that is divided
ROUNDS = 3
_PIECE = re.compile(r"\s*\w+|\s*[^\w\s]")
_SPECIAL = frozenset({0, 1, 2})
CONFLICT = 4.0


@dataclass(frozen=True)
class Spelling:
    """Known from other answers: the text of each id, and the id of each text."""

    pieces: Mapping[int, str] = field(default_factory=dict)
    ids: Mapping[str, int] = field(default_factory=dict)


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
    prefix, found = pair.prefix, []
    for position, token in enumerate(pair.draft):
        if position < prefix:
            found.append("accepted")
        elif position >= len(pair.target):
            found.append("beyond")
        else:
            found.append("matched" if token == pair.target[position] else "rejected")
    return found


def from_text(pair: Pair, text: str, spelling: Spelling | None = None) -> Painting:
    """From the answer's text only, and what other answers of the file show (see `learn`)."""
    of_ids, known = states(pair), spelling or Spelling()
    places = [place for place, token in enumerate(pair.draft) if token not in _SPECIAL]
    ids, words = [pair.draft[place] for place in places], split(text)

    def piece(word: str, first: int, end: int) -> MarkedPiece:
        worst = min((of_ids[place] for place in places[first:end]), key=ORDER.index)
        return MarkedPiece(word, places[first], places[end - 1] + 1, worst)

    spans = align(ids, words, known)
    if spans is None:
        return Painting(
            (piece(text, 0, len(ids)),) if ids else (), _undivided(len(ids), len(words))
        )
    doubts = (_cost(ids[a:b], word, known)[1] for word, (a, b) in zip(words, spans, strict=True))
    pieces = (piece(word, *span) for word, span in zip(words, spans, strict=True))
    return Painting(tuple(pieces), next(filter(None, doubts), ""))


def _undivided(ids: int, words: int) -> str:
    """Why `align` returns None."""
    if not words:
        return "the text has no word and is shown as one piece"
    whole = f"the text is shown as one piece: it has {words:,} words and signs"
    if ids < words:
        return f"{whole} and only {ids:,} {'id is' if ids == 1 else 'ids are'} there"
    if ids > LONGEST:
        return f"{whole} and {ids:,} ids, more than the {LONGEST:,} that are divided"
    return f"{whole} and {ids:,} ids, more than {MOST_IDS} for each"


def split(text: str) -> list[str]:
    """Words and signs with the space before them."""
    return _PIECE.findall(text)


def learn(answers: Sequence[tuple[Sequence[int], str]]) -> Spelling:
    """The text of each id, learnt from (ids, text) of a file's answers.

    Answers with as many ids as pieces come first; they help to divide the others.
    """
    distinct: dict[str, tuple[int, ...]] = {}
    for ids, text in answers:
        if len(distinct) < LEARNT_FROM and len(ids) <= LONGEST:
            distinct.setdefault(text, tuple(i for i in ids if i not in _SPECIAL))
    rows = [(ids, split(text)) for text, ids in distinct.items()]
    spelling = Spelling()
    for rounds in range(1 + ROUNDS):
        votes: Counter[tuple[int, str]] = Counter()
        for ids, pieces in rows:
            if rounds or len(ids) == len(pieces):
                spans = align(ids, pieces, spelling) or ()
                for piece, (first, end) in zip(pieces, spans, strict=False):
                    if end == first + 1:
                        votes[ids[first], piece] += 1
        letters: dict[int, str] = {}
        tokens: dict[str, int] = {}
        for (token, piece), _ in votes.most_common():
            if token not in letters and piece not in tokens:
                letters[token], tokens[piece] = piece, token
        spelling = Spelling(letters, tokens)
    return spelling


def align(
    ids: Sequence[int], pieces: Sequence[str], spelling: Spelling
) -> list[tuple[int, int]] | None:
    """(first, one after the last) id of each piece, or None if there are too few or too many ids.

    The division with the lowest cost (Viterbi).  An id known for the piece has a negative cost; an
    id known for another piece, or a piece known by another id, costs most; several ids cost more
    for short words.
    """
    many, count = len(pieces), len(ids)
    if not many or not many <= count <= min(MOST_IDS * many, LONGEST):
        return None
    costs = [[math.inf] * (count + 1) for _ in range(many + 1)]
    sizes = [[0] * (count + 1) for _ in range(many + 1)]
    costs[many][count] = 0.0
    for piece in range(many - 1, -1, -1):
        for token in range(piece, count - (many - piece) + 1):
            for size in range(1, min(MOST_IDS, count - token) + 1):
                rest = costs[piece + 1][token + size]
                if rest < math.inf:
                    part = ids[token : token + size]
                    cost = rest + _cost(part, pieces[piece], spelling)[0]
                    if cost < costs[piece][token]:
                        costs[piece][token], sizes[piece][token] = cost, size
    spans, token = [], 0
    for piece in range(many):
        size = sizes[piece][token]
        spans.append((token, token + size))
        token += size
    return spans if costs[0][0] < math.inf else None


def _cost(ids: Sequence[int], piece: str, spelling: Spelling) -> tuple[float, str]:
    """The cost of giving these ids to this piece, and why they may not belong to it."""
    word = piece.strip()
    if len(ids) == 1:
        if (known := spelling.pieces.get(ids[0])) is not None:
            if known.strip() == word:  # a text begins without its space
                return -1.0, ""
            other = f"the id of {word!r} is that of {known.strip()!r} elsewhere"
            return CONFLICT, f"they contradict each other: {other}"
        if piece in spelling.ids:
            return CONFLICT, f"they contradict each other: {word!r} has another id elsewhere"
        return 0.05 * max(len(word) - 6, 0), ""
    if len(ids) > len(word) + 1:
        return 20.0, f"{word!r} would have {len(ids)} ids, more than it has letters"
    others = [spelling.pieces[token].strip() for token in ids if token in spelling.pieces]
    strange, settled = [known for known in others if known not in word], piece in spelling.ids
    cost = len(ids) - 1 + 2.0 / len(word) + CONFLICT * (len(strange) + settled)
    if cost < CONFLICT:
        return cost, ""
    if strange:
        return cost, f"an id of {word!r} is that of {strange[0]!r} elsewhere"
    if settled:
        return cost, f"{word!r} takes {len(ids)} ids, and a single one elsewhere"
    return cost, f"{word!r} takes {len(ids)} ids, and nothing else shows which letters each has"

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

from engine.analysis.acceptance import Painted, Pair, paint

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


def from_text(pair: Pair, text: str, spelling: Spelling | None = None) -> Painting:
    """From the answer's text only, and what other answers of the file show (see `learn`)."""
    painted = [one for one in paint(pair) if one.id not in _SPECIAL]
    ids, words, known = [one.id for one in painted], split(text), spelling or Spelling()
    spans = align(ids, words, known)
    if spans is None:
        return Painting(_by_id(painted, text), _undivided(len(ids), len(words)))
    pieces, doubts = [], []
    for word, (first, end) in zip(words, spans, strict=True):
        part = painted[first:end]
        pieces.append(MarkedPiece(word, part[0].position, part[-1].position + 1, _worst(part)))
        doubts.append(_doubt(ids[first:end], word, known))
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


def _doubt(ids: Sequence[int], piece: str, spelling: Spelling) -> str:
    """Why these ids may not belong to this piece; the branches are those of `_cost`."""
    word = piece.strip()
    if _cost(ids, piece, spelling) < CONFLICT:
        return ""
    if len(ids) == 1 and ids[0] in spelling.pieces:
        known = spelling.pieces[ids[0]].strip()
        return f"they contradict each other: the id of {word!r} is that of {known!r} elsewhere"
    if len(ids) == 1:
        return f"they contradict each other: {word!r} has another id elsewhere"
    if len(ids) > len(word) + 1:
        return f"{word!r} would have {len(ids)} ids, more than it has letters"
    other = [spelling.pieces[token].strip() for token in ids if token in spelling.pieces]
    if strange := [known for known in other if known not in word]:
        return f"an id of {word!r} is that of {strange[0]!r} elsewhere"
    if piece in spelling.ids:
        return f"{word!r} takes {len(ids)} ids, and a single one elsewhere"
    return f"{word!r} takes {len(ids)} ids, and nothing else shows which letters each has"


def _worst(painted: Sequence[Painted]) -> str:
    return min((one.state for one in painted), key=ORDER.index)


def _by_id(painted: Sequence[Painted], text: str) -> tuple[MarkedPiece, ...]:
    """The whole text as one piece, if it cannot be divided."""
    if not painted:
        return ()
    return (MarkedPiece(text, painted[0].position, painted[-1].position + 1, _worst(painted)),)


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
    spelling = _improved([row for row in rows if len(row[0]) == len(row[1])], Spelling())
    for _ in range(ROUNDS):
        spelling = _improved(rows, spelling)
    return spelling


def _improved(rows: Sequence[tuple[Sequence[int], list[str]]], spelling: Spelling) -> Spelling:
    votes: Counter[tuple[int, str]] = Counter()
    for ids, pieces in rows:
        spans = align(ids, pieces, spelling)
        for piece, (first, end) in zip(pieces, spans or (), strict=False):
            if end == first + 1:
                votes[ids[first], piece] += 1
    letters: dict[int, str] = {}
    tokens: dict[str, int] = {}
    for (token, piece), _ in votes.most_common():
        if token not in letters and piece not in tokens:
            letters[token], tokens[piece] = piece, token
    return Spelling(letters, tokens)


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
                    cost = rest + _cost(ids[token : token + size], pieces[piece], spelling)
                    if cost < costs[piece][token]:
                        costs[piece][token], sizes[piece][token] = cost, size
    spans, token = [], 0
    for piece in range(many):
        size = sizes[piece][token]
        spans.append((token, token + size))
        token += size
    return spans if costs[0][0] < math.inf else None


def _cost(ids: Sequence[int], piece: str, spelling: Spelling) -> float:
    word = piece.strip()
    if len(ids) == 1:
        known, other = spelling.pieces.get(ids[0]), spelling.ids.get(piece)
        if known is not None and known.strip() == word:  # a text begins without its space
            return -1.0
        if known is not None or other is not None:
            return CONFLICT
        return 0.05 * max(len(word) - 6, 0)
    if len(ids) > len(word) + 1:
        return 20.0
    known_ids = [spelling.pieces[token] for token in ids if token in spelling.pieces]
    wrong = sum(1 for known in known_ids if known.strip() not in word)
    settled = CONFLICT if piece in spelling.ids else 0.0
    return len(ids) - 1 + 2.0 / len(word) + CONFLICT * wrong + settled

"""The words of an explanation: which tokens of an answer they are, and the explanation in words."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.attribution.explained import REMOVED, Explanation, nats_text, place
from engine.errors import BadInput
from engine.quoting import count, cut, quoted
from engine.storage.explanations import MomentLoss
from engine.types import Box

BY_CHANCE = 0.05  # above this p a map may be chance
LEAST_PROBABLE = 0.01  # of each of the words' tokens; below it no place is named
SHOWN = 5  # cells that are listed
LEAST = 0.005  # nats; less would be listed as 0.00
NOT_SAID = "The model did not say these words: they are scored as if its answer began with them."
TWICE = "The words occur {:,} times in the answer: the first place is explained."
UNIT = (
    "Nats: how much the log-probability of the words falls when a part is removed. At 1 nat the "
    "words become 2.7 times less likely; below 0 they become more likely."
)
LIMITS = (
    "Removing a part can create something new, such as an edge or an empty road, and the loss may "
    "come from that.",
    "Another size of cells or another filling can give another map that is as plausible.",
    "The map shows what these words depend on in this model. It does not show that they are right.",
)
HOW = {"replaced": "replaced by its neighbour", "emptied": "emptied of its events"}


def sentences(answer: str) -> tuple[str, ...]:
    found = (part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", answer))
    return tuple(dict.fromkeys(part for part in found if re.search(r"\w", part)))


def improbable(probability: float) -> bool:
    """Whether the model gives a token too little; rounded as the sentence about it."""
    return float(f"{probability:.2g}") < LEAST_PROBABLE


def no_place(found: Explanation) -> bool:
    """Whether no place is named: the map may be chance, or the words are too unlikely."""
    return found.chance.p > BY_CHANCE or improbable(found.chance.probability)


def cells(found: Explanation) -> tuple[str, ...]:
    """The cells that carry most, in order; () if no cell lost anything."""
    strongest = [cell for cell in found.strongest[:SHOWN] if cell.nats >= LEAST]
    return tuple(f"{_where(cell.box)}: {nats_text(cell.nats)}" for cell in strongest)


def _where(box: Box) -> str:
    """The place in words, with the cell's column and row in its map."""
    left, top, right, bottom = box
    across, down = round(1 / (right - left)), round(1 / (bottom - top))
    column, row = round(left * across) + 1, round(top * down) + 1
    return f"{place(box)} (column {column}, row {row} of {across} x {down})"


def moment(one: MomentLoss) -> str:
    return f"{one.label}, {HOW[one.how]}: {nats_text(one.nats)}"


def plain(found: Explanation) -> str:
    return (
        f"Log-probability of the words with the whole input: {nats_text(found.logprob)}; "
        f"probability of their least likely token: {found.chance.probability:.2g}."
    )


def how(found: Explanation) -> str:
    options = found.request.options
    grid = f"cells of {options.grid} x {options.grid}"
    coarse = f", after a first map of {options.coarse} x {options.coarse}" if options.coarse else ""
    removed = f"a box of {options.side} x {options.side} cells was {REMOVED[found.removal]}"
    done = f"{count(found.cost.encodings, 'encoding')}, {found.ms / 1000:,.1f} s"
    return f"Map of {grid}{coarse}; around each, {removed}. {done}."


def alt(found: Explanation, name: str) -> str:
    """The map as one text, for readers who do not see it."""
    head = f"Heat map over what the model sees of {name}, for the words “{found.words}”."
    if no_place(found):
        return f"{head} {found.chance.sentence}"
    strongest = cells(found)
    if not strongest:
        return f"{head} The words lose nothing without any of the parts."
    return f"{head} Strongest: {'; '.join(strongest[:3])}."


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
    """The first place of the words in the answer, or the words as an answer of their own.  `ends`:
    the number of the answer's characters that are known after each id.  Case is ignored only if the
    words do not occur as they are written."""
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
    """The tokens that hold characters from `begin` to before `after`."""
    first = next(place for place, end in enumerate(ends) if end > begin)
    last = next(place for place, end in enumerate(ends) if end >= after)
    while first and ends[first - 1] == (ends[first - 2] if first > 1 else 0):
        first -= 1
    return first, last + 1


def refuse_ids(ids: Sequence[int], known: int, model: str) -> None:
    """BadInput for ids that the model does not have."""
    if strange := next((one for one in ids if not 0 <= one < known), None):
        raise BadInput(
            f"The answer holds the token {strange:,}, but {cut(model)} has {known:,} tokens: it "
            "is the answer of another model, run this one again."
        )

"""Two models' token ids for one sample, compared position by position.

Boundary: ids in, counts and states out; no averages.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from operator import eq


@dataclass(frozen=True)
class Pair:
    """A draft and a target of one sample.

    ..._ms: decode time of the whole answer, if known; ..._tokens: its number of tokens if some ids
    are missing.  clip: the recording, if the sample's name does not identify it.
    """

    sample: str
    draft: tuple[int, ...]
    target: tuple[int, ...]
    question: str = ""
    draft_ms: float | None = None
    target_ms: float | None = None
    draft_tokens: float | None = None
    target_tokens: float | None = None
    clip: str = ""

    @property
    def source(self) -> str:
        return self.clip or self.sample

    @property
    def prefix(self) -> int:
        """The number of leading ids that are equal."""
        both = zip(self.draft, self.target, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))

    @property
    def compared(self) -> int:
        return min(len(self.draft), len(self.target))

    @property
    def matched(self) -> int:
        return sum(map(eq, self.draft, self.target))


@dataclass(frozen=True)
class Painted:
    """One id of a draft and its state.  matched: equal to the target's, but after the prefix."""

    position: int
    id: int
    target: int | None
    state: str  # "accepted", "matched", "rejected", "beyond"


def paint(pair: Pair) -> tuple[Painted, ...]:
    """Each id of the draft with the target's id at the same position."""
    prefix, found = pair.prefix, []
    for position, token in enumerate(pair.draft):
        other = pair.target[position] if position < len(pair.target) else None
        if position < prefix:
            state = "accepted"
        elif other is None:
            state = "beyond"
        else:
            state = "matched" if token == other else "rejected"
        found.append(Painted(position, token, other, state))
    return tuple(found)

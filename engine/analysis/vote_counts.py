"""Votes between the answers of two labels: counts, and the share of sequences that prefer one.

Clips of one sequence overlap in time, so each sequence counts once, by the majority of its votes; a
sequence without a majority counts for none.  Blind and open votes are never mixed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from engine.analysis import statistics
from engine.analysis.results_table import labels
from engine.analysis.statistics import WinShare
from engine.storage.schemas import Choice, Vote, VotedAnswer

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class VoteCount:
    """The votes between two labels.

    a_better, b_better, both, neither: votes.  share: of the sequences with a majority, those that
    prefer a; None if there is none.
    """

    a: str
    b: str
    blind: bool
    a_better: int
    b_better: int
    both: int
    neither: int
    share: WinShare | None

    @property
    def votes(self) -> int:
        return self.a_better + self.b_better + self.both + self.neither

    @property
    def conclusion(self) -> Literal["a", "b", ""]:
        """Which label is preferred, if the printed interval excludes one half."""
        if self.share is None:
            return ""
        if float(statistics.printed(self.share.low)) > 0.5:
            return "a"
        return "b" if float(statistics.printed(self.share.high)) < 0.5 else ""


def voted_answer(line: Any) -> VotedAnswer:
    """The key of an answer, from its line of the table."""
    return VotedAnswer(str(line["run"]), str(line["model"]), int(line["repeat"]))


def in_order(first: VotedAnswer, second: VotedAnswer, sample: str, seed: int) -> bool:
    """Whether `first` is shown on the left: by chance, the same for the same seed and sample."""
    left, right = sorted((first, second))
    words = "\n".join((str(seed), sample, *map(repr, (left, right))))
    kept = hashlib.sha256(words.encode()).digest()[0] % 2 == 0
    return kept == (first == left)


def turned(vote: Vote, left: VotedAnswer) -> Vote:
    """The same vote with this answer on the left."""
    if vote.first == left:
        return vote
    swapped: dict[Choice, Choice] = {"first": "second", "second": "first"}
    choice = swapped.get(vote.choice, vote.choice)
    return replace(vote, first=vote.second, second=vote.first, choice=choice)


def tally(votes: Iterable[Vote], table: pd.DataFrame) -> tuple[VoteCount, ...]:
    """Per pair of labels with votes: first the blind ones, then the open ones.

    Votes on answers that are not in the table do not count.
    """
    known = [vote for vote in votes if vote.choice]
    lines = table[(table["phase"] == "measured") & table["sample"].isin({v.sample for v in known})]
    columns = lines[["run", "model", "repeat", "sample", "label", "sequence"]]
    where = {  # -> label and sequence
        (line["sample"], voted_answer(line)): (line["label"], str(line["sequence"] or ""))
        for line in columns.to_dict("records")
    }
    # Per pair and kind: the preferred label, or the choice, and the sequence of each vote.
    grouped: dict[tuple[frozenset[str], bool], list[tuple[str, str]]] = {}
    for vote in known:
        sides = [where.get((vote.sample, answer)) for answer in (vote.first, vote.second)]
        if sides[0] is not None and sides[1] is not None:
            (first, sequence), (second, _) = sides[0], sides[1]
            winner = {"first": first, "second": second}.get(vote.choice, f"\0{vote.choice}")
            key = frozenset((first, second)), vote.blind
            grouped.setdefault(key, []).append((winner, sequence))
    found = []
    for (a, b), blind in product(combinations(labels(table), 2), (True, False)):
        if not (pair := grouped.get((frozenset((a, b)), blind))):
            continue
        numbers = Counter(winner for winner, _ in pair)
        lead = Counter[str]()
        for winner, sequence in pair:
            lead[sequence] += (winner == a) - (winner == b)
        decided = [value for value in lead.values() if value]
        wins = sum(value > 0 for value in decided)
        share = statistics.share_interval(wins, len(decided)) if decided else None
        both, neither = numbers["\0both"], numbers["\0neither"]
        found.append(VoteCount(a, b, blind, numbers[a], numbers[b], both, neither, share))
    return tuple(found)

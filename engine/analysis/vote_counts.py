"""Votes between the answers of two labels: counts, and the share of sequences that prefer one.

Clips of one sequence overlap in time, so each sequence counts once, by the majority of its votes; a
sequence without a majority counts for none.  Blind and open votes are never mixed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
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
    where = _where(table, {vote.sample for vote in known})
    grouped: dict[tuple[frozenset[str], bool], list[tuple[str, str, str]]] = {}
    for vote in known:
        sides = [where.get((vote.sample, answer)) for answer in (vote.first, vote.second)]
        if sides[0] is not None and sides[1] is not None:
            (first, sequence), (second, _) = sides[0], sides[1]
            winner = {"first": first, "second": second}.get(vote.choice, vote.choice)
            kind = "better" if vote.choice in ("first", "second") else "same"
            grouped.setdefault((frozenset((first, second)), vote.blind), []).append(
                (kind, winner, sequence)
            )
    return tuple(
        _count(a, b, blind, grouped[key])
        for a, b in combinations(labels(table), 2)
        for blind in (True, False)
        if (key := (frozenset((a, b)), blind)) in grouped
    )


def _where(
    table: pd.DataFrame, samples: set[str]
) -> dict[tuple[str, VotedAnswer], tuple[str, str]]:
    """(sample, answer) -> (label, sequence), of measured results."""
    lines = table[(table["phase"] == "measured") & table["sample"].isin(samples)]
    columns = lines[["run", "model", "repeat", "sample", "label", "sequence"]]
    return {
        (line["sample"], voted_answer(line)): (line["label"], str(line["sequence"] or ""))
        for line in columns.to_dict("records")
    }


def _count(a: str, b: str, blind: bool, votes: list[tuple[str, str, str]]) -> VoteCount:
    """`votes`: (kind, winning label or choice, sequence)."""
    numbers = Counter((kind, winner) for kind, winner, _ in votes)
    lead: Counter[str] = Counter()
    for kind, winner, sequence in votes:
        lead[sequence] += (kind == "better") * (1 if winner == a else -1)
    decided = [value for value in lead.values() if value]
    wins = sum(value > 0 for value in decided)
    return VoteCount(
        a,
        b,
        blind,
        a_better=numbers["better", a],
        b_better=numbers["better", b],
        both=numbers["same", "both"],
        neither=numbers["same", "neither"],
        share=statistics.share_interval(wins, len(decided)) if decided else None,
    )

"""Votes between the answers of two labels: counts, and the share of sequences that prefer one.

Clips of one sequence overlap in time, so each sequence counts once, by the majority of its votes; a
sequence without a majority counts for none.  Blind and open votes are never mixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from engine.analysis import statistics
from engine.analysis.results_table import labels
from engine.analysis.statistics import WinShare
from engine.storage.schemas import Vote, VotedAnswer

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class VoteCount:
    """The votes between two labels, by what they prefer: a label, "both" or "neither".

    share: of the sequences with a majority, those that prefer a; None if there is none.
    """

    a: str
    b: str
    blind: bool
    counts: Counter[tuple[str, str]]  # ("label", its name) or ("both", ""), ("neither", "")
    share: WinShare | None

    @property
    def preferred(self) -> str:
        """The label that is preferred, if the printed interval excludes one half."""
        if self.share is None:
            return ""
        if float(statistics.printed(self.share.low)) > 0.5:
            return self.a
        return self.b if float(statistics.printed(self.share.high)) < 0.5 else ""


def voted_answer(line: Any) -> VotedAnswer:
    """The key of an answer, from its line of the table."""
    return VotedAnswer(str(line["run"]), str(line["model"]), int(line["repeat"]))


def tally(votes: Iterable[Vote], table: pd.DataFrame) -> tuple[VoteCount, ...]:
    """Per pair of labels with votes: first the blind ones, then the open ones.

    Votes on answers that are not in the table do not count.
    """
    columns = ["run", "model", "repeat", "sample", "label", "cluster"]
    lines = table.loc[table["phase"] == "measured", columns].to_dict("records")
    where = {(line["sample"], voted_answer(line)): line for line in lines}
    # Per pair and kind: what is preferred, and the sequence of each vote.
    grouped: dict[tuple[frozenset[str], bool], list[tuple[tuple[str, str], str]]] = {}
    for vote in votes:
        sides = [where.get((vote.sample, answer)) for answer in vote.answers]
        if sides[0] is not None and sides[1] is not None:
            known = {"first": ("label", sides[0]["label"]), "second": ("label", sides[1]["label"])}
            key = frozenset((sides[0]["label"], sides[1]["label"])), vote.blind
            choice = known.get(vote.choice, (vote.choice, ""))
            grouped.setdefault(key, []).append((choice, str(sides[0]["cluster"])))
    found = []
    for (a, b), blind in product(combinations(labels(table), 2), (True, False)):
        pair = grouped.get((frozenset((a, b)), blind), [])
        lead = Counter[str]()
        for choice, sequence in pair:
            lead[sequence] += (choice == ("label", a)) - (choice == ("label", b))
        decided = [value for value in lead.values() if value]
        wins = sum(value > 0 for value in decided)
        share = statistics.share_interval(wins, len(decided)) if decided else None
        if pair:
            found.append(VoteCount(a, b, blind, Counter(choice for choice, _ in pair), share))
    return tuple(found)

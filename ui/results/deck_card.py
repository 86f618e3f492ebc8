"""The open card of the deck: its two answers from left to right, and this visit's vote.

Boundary: decides what may be shown and stores votes; deck_view.py draws.  In blind mode the sides
are shuffled, and the names are hidden until the visitor has voted.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st
from msgspec.structs import replace as changed

from engine.analysis.ranking import DeckCard
from engine.analysis.vote_counts import in_order, turned, voted_answer
from engine.errors import StageScopeError
from engine.storage.schemas import Choice, Vote, VotedAnswer
from ui.results import sample_view
from ui.results.opened_runs import OpenedRuns
from ui.results.sample_view import Result

SEED, SEEN, PROBLEM = "results_deck_seed", "results_deck_seen", "results_deck_problem"
CHOICES: dict[Choice, tuple[str, str]] = {  # label, key
    "first": ("A better", "1"),
    "second": ("B better", "2"),
    "both": ("Both good", "3"),
    "neither": ("Neither", "4"),
}


@dataclass(frozen=True)
class OpenCard:
    """A sample's two answers; contradicting values are in the order of the sides.

    hidden: the names are not shown yet.  vote: this visit's vote, without a choice if there is
    none yet.  others: the votes of other visits on these answers.
    """

    card: DeckCard
    sides: tuple[Result, Result]
    hidden: bool
    vote: Vote
    others: tuple[Vote, ...]

    @property
    def final(self) -> bool:
        """A blind vote cannot be changed, because the names are known then."""
        return self.vote.blind and not self.hidden

    def name(self, side: int) -> str:
        letter = "AB"[side]
        return f"Answer {letter}" if self.hidden else f"{letter}: {self.sides[side].label}"

    def words(self, vote: Vote) -> str:
        """The choice of a vote on these answers, with the label that it prefers."""
        choice = turned(vote, self.vote.first).choice
        if choice in ("first", "second"):
            return f"{self.sides[choice == 'second'].label} better"
        return CHOICES[choice][0].lower() if choice else "no choice"

    def other_votes(self) -> str:
        """The choices of other visits, for example "LLaVA-1.5 better 2, neither 1"."""
        chosen = Counter(self.words(vote) for vote in self.others if vote.choice)
        return ", ".join(f"{words} {number:,}" for words, number in chosen.items())

    def store(self, choice: Choice, note: str) -> None:
        """Stores the vote, always with the same one of two runs; for callbacks."""
        where = min(self.sides, key=_key).source
        try:
            where.vote(changed(self.vote, choice=choice, note=note))
        except StageScopeError as error:
            st.session_state[PROBLEM] = str(error)


def open_card(
    opened: OpenedRuns, pair: tuple[str, str], card: DeckCard, votes: Sequence[Vote], blind: bool
) -> OpenCard:
    """The card as this visit may see it; names that are shown are noted for blind mode."""
    sides = _answer(opened, pair[0], card.sample), _answer(opened, pair[1], card.sample)
    seed = st.session_state.setdefault(SEED, secrets.randbelow(2**32))
    if blind and not in_order(_key(sides[0]), _key(sides[1]), card.sample, seed):
        sides = sides[1], sides[0]
        card = replace(card, contradictions=tuple((n, b, a) for n, a, b in card.contradictions))
    answers = _key(sides[0]), _key(sides[1])
    here = [v for v in votes if (v.sample, v.answers) == (card.sample, frozenset(answers))]
    mine = {vote.blind: turned(vote, answers[0]) for vote in here if vote.seed == seed}
    voted = blind and True in mine and bool(mine[True].choice)
    hidden = blind and not voted and not _seen(card.sample, answers)
    if not hidden:
        _names_seen().add((card.sample, frozenset(answers)))
    vote = Vote(card.sample, *answers, "", hidden or voted, seed)
    others = tuple(vote for vote in here if vote.seed != seed)
    return OpenCard(card, sides, hidden, mine.get(vote.blind, vote), others)


def _seen(sample: str, answers: tuple[VotedAnswer, VotedAnswer]) -> bool:
    return (sample, frozenset(answers)) in _names_seen()


def _names_seen() -> set[tuple[str, frozenset[VotedAnswer]]]:
    """The pairs of answers whose names this visit has seen."""
    found: set[tuple[str, frozenset[VotedAnswer]]] = st.session_state.setdefault(SEEN, set())
    return found


def _answer(opened: OpenedRuns, label: str, sample: str) -> Result:
    """The label's first measured answer to the sample."""
    table = opened.table
    lines = table[(table["sample"] == sample) & (table["label"] == label)]
    lines = lines[(lines["phase"] == "measured") & (lines["error"] == "")]
    return sample_view.result_of(opened, lines.head(1).to_dict("records")[0])


def _key(result: Result) -> VotedAnswer:
    return voted_answer(result.line)

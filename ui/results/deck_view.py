"""The deck on Results: samples ordered by disagreement, one at a time, with votes.

In blind mode the sides are shuffled, and until the visitor has voted nothing on the card tells
which model gave which answer: no name, colour, time or fixed side.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from msgspec.structs import replace as changed

from engine.analysis import agreement, vote_counts
from engine.analysis.agreement import DeckCard
from engine.analysis.vote_counts import in_order, turned, voted_answer
from engine.errors import StageScopeError, StoreError
from engine.models import registry
from engine.prompts import OFF_SCRIPT
from engine.report import vote_part
from engine.report.answer_part import STOPS
from engine.storage import annotations as feedback
from engine.storage.annotations import MAX_NOTE_CHARS
from engine.storage.schemas import Choice, Vote, VotedAnswer
from ui.results import comparison_view, opened_runs, sample_view
from ui.results.opened_runs import OpenedRuns
from ui.results.sample_view import Result
from ui.widgets import blocks, choices, notices
from ui.widgets.stored_runs import Stamp, stamp_of
from ui.widgets.text import count
from ui.widgets.text import escape as literal

SAMPLE = "results_deck"  # in the URL
HIDDEN = "Hidden until you vote"
NAMES = {name: name for name in (HIDDEN, "Shown")}
NONE = "The two models answered no sample with the same question: choose other models or runs."
ORDER = "Contradictions first, then the least words in common."
HELP = (
    "While names are hidden, the sides are shuffled. Blind votes and open votes are counted apart."
)
SEEN = "You have seen the names of these two answers before, so your vote counts as open."
OTHER_QUESTION = "{} left out: the two models were asked different questions about them."
AFTER = "The names and the counts appear after your vote."
PICTURES = "The pictures that the models were given; their order does not follow the answers."
MOST_NOTES = 5  # of other visits, on a card
# In the session: for the sides, the pairs whose names were seen, why a vote was not stored.
SEED, NAMED, PROBLEM = "results_deck_seed", "results_deck_seen", "results_deck_problem"
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

    def words(self, vote: Vote) -> str:
        """The choice of a vote on these answers, with the label that it prefers."""
        choice = turned(vote, self.vote.first).choice
        if choice in ("first", "second"):
            return f"{self.sides[choice == 'second'].label} better"
        return CHOICES[choice][0].lower() if choice else "no choice"


def show(opened: OpenedRuns) -> None:
    if len(opened.labels) < 2:
        notices.hint(comparison_view.ONE)
        return
    # Buttons, not a switch: the keys for votes work after a click on a button.
    blind = choices.buttons("Model names", NAMES, "results_names", help_=HELP) == HIDDEN
    labels, pair = opened.labels, (opened.labels[0], opened.labels[1])
    if len(labels) > 2:  # in blind mode the choice is folded away
        with st.expander("Models of this deck", expanded=not blind):
            pair = choices.two(labels, pair, ("results_a", "results_b"))
    if pair[0] == pair[1]:
        notices.notice("Model A and Model B are the same: choose another Model B.", "results_same")
        return
    deck = opened_runs.deck(opened, *pair)
    if not deck:
        notices.hint(NONE)
        return
    place = _pager([card.sample for card in deck])
    if left_out := agreement.answered_by_both(opened.table, *pair) - len(deck):
        notices.small(OTHER_QUESTION.format(count(left_out, "sample")), "deck_left_out")
    folders = [source.info.folder for source in opened.sources]
    votes = tuple(vote for one in folders for vote in _votes(one, stamp_of(one, (feedback.VOTES,))))
    found = open_card(opened, pair, deck[place], votes, blind)
    _draw(found, blind)
    if found.hidden:
        notices.small(AFTER, "deck_totals")
    else:
        _totals(opened, votes, pair)


@st.cache_resource(max_entries=8, show_spinner=False)
def _votes(folder: Path, stamp: Stamp) -> tuple[Vote, ...]:
    """The votes of a run; none if they cannot be read, which the run's problems report."""
    try:
        return feedback.votes(folder)
    except StoreError:
        return ()


def open_card(
    opened: OpenedRuns, pair: tuple[str, str], card: DeckCard, votes: Sequence[Vote], blind: bool
) -> OpenCard:
    """The card as this visit may see it; names that are shown are noted for blind mode."""
    sides = _answer(opened, pair[0], card.sample), _answer(opened, pair[1], card.sample)
    answers = voted_answer(sides[0].line), voted_answer(sides[1].line)
    seed = st.session_state.setdefault(SEED, secrets.randbelow(2**32))
    if blind and not in_order(*answers, card.sample, seed):
        sides, answers = sides[::-1], answers[::-1]
        card = replace(card, contradictions=tuple((n, b, a) for n, a, b in card.contradictions))
    here = [v for v in votes if (v.sample, v.answers) == (card.sample, frozenset(answers))]
    mine = {vote.blind: turned(vote, answers[0]) for vote in here if vote.seed == seed}
    voted = blind and True in mine and bool(mine[True].choice)
    seen: set[tuple[str, frozenset[VotedAnswer]]] = st.session_state.setdefault(NAMED, set())
    hidden = blind and not voted and (card.sample, frozenset(answers)) not in seen
    if not hidden:
        seen.add((card.sample, frozenset(answers)))
    vote = Vote(card.sample, *answers, "", hidden or voted, seed)
    others = tuple(vote for vote in here if vote.seed != seed)
    return OpenCard(card, sides, hidden, mine.get(vote.blind, vote), others)


def _answer(opened: OpenedRuns, label: str, sample: str) -> Result:
    """The label's first measured answer to the sample."""
    table = opened.table
    lines = table[(table["sample"] == sample) & (table["label"] == label)]
    lines = lines[(lines["phase"] == "measured") & (lines["error"] == "")]
    return sample_view.result_of(opened, lines.head(1).to_dict("records")[0])


def _pager(names: Sequence[str]) -> int:
    asked = st.query_params.get(SAMPLE)
    place = names.index(asked) if asked in names else 0
    before = names[place - 1] if place else None
    after = names[place + 1] if place + 1 < len(names) else None
    with st.container(horizontal=True, vertical_alignment="center", key="results_deck_pager"):
        for label, key, name in (("Previous", "P", before), ("Next", "N", after)):
            st.button(
                label,
                key=f"results_deck_{label.lower()}",
                shortcut=key,
                on_click=st.query_params.update,
                args=({SAMPLE: name},),
                disabled=name is None,
            )
        st.caption(f"{place + 1:,} of {count(len(names), 'sample')}", width="content")
        st.caption(ORDER, width="content")
    return place


def _draw(found: OpenCard, blind: bool) -> None:
    st.subheader(literal(found.card.sample), anchor=False)
    sample_view.asked(found.sides)
    notices.small(differences(found.card), "deck_differences")
    for side, column in enumerate(st.columns(2)):
        with column:
            _side(found, side)
    if blind and not found.vote.blind:
        notices.notice(SEEN, "deck_seen")
    _ballot(found)
    if not found.hidden:  # for example "LLaVA-1.5 better 2, neither 1", then the notes
        chosen = Counter(found.words(vote) for vote in found.others if vote.choice)
        counts = ", ".join(f"{words} {number:,}" for words, number in chosen.items())
        notes = [f"note: {vote.note}" for vote in found.others if vote.note][-MOST_NOTES:]
        if lines := [*filter(None, [counts]), *notes]:
            notices.small("Other visits: " + "\n".join(lines), "deck_others")
    shown = {}  # in an order that does not depend on the sides
    for one in found.sides:
        entry = registry.find(one.task.model)
        shown[repr((entry and entry.kind, one.run.header.plan.media))] = one
    st.caption(PICTURES)
    for number, (kind, column) in enumerate(zip(sorted(shown), st.columns(2), strict=False)):
        with column:
            sample_view.pictures(shown[kind], f"deck_{number}")


def differences(card: DeckCard) -> str:
    differ = [f"{name}: A {a}, B {b}" for name, a, b in card.contradictions]
    words = f"{count(len(differ), 'contradiction')}: {'; '.join(differ)}."
    overlap = "" if card.overlap is None else f"Word F1 {card.overlap:.3f}."
    return f"{words if differ else 'No contradiction in an attribute.'} {overlap}".strip()


def _side(found: OpenCard, side: int) -> None:
    """One answer; nothing here may tell the model while the names are hidden."""
    answer, letter = found.sides[side], "AB"[side]
    line, name, tone = answer.line, f"Answer {letter}", "other"
    if not found.hidden:
        name, tone = f"{letter}: {answer.label}", answer.card_tone
    with st.container(border=True, key=f"card_{tone}_deck_{letter}"):
        st.markdown(f"**{literal(name)}**")
        with st.container(key=f"answer_deck_{letter}"):
            st.text(line["text"] or " ")
        if stop := STOPS.get(str(line["stop"]), ""):
            notices.small(stop, f"deck_stop_{letter}")
        if line["off_script"] and not found.hidden:
            notices.notice(OFF_SCRIPT, f"off_script_deck_{letter}")


def _ballot(found: OpenCard) -> None:
    vote = found.vote
    answers = [f"{one.run}_{one.model}_{one.repeat}" for one in sorted(vote.answers)]
    note = "_".join(["results_deck_note", str(vote.blind), vote.sample, *answers])
    st.session_state.setdefault(note, vote.note)
    with st.container(horizontal=True, key="results_deck_choices"):
        for choice, (label, key) in CHOICES.items():
            st.button(
                label,
                key=f"results_deck_{choice}",
                shortcut=key,
                type="primary" if vote.choice == choice else "secondary",
                disabled=vote.blind and not found.hidden,  # the names are known now
                on_click=_keep,
                args=(found, choice, note),
            )
    if vote.choice:
        kind = "blind" if vote.blind else "open"
        notices.small(f"Your {kind} vote: {found.words(vote)}.", "deck_vote")
    st.text_input(
        "Note",
        key=note,
        max_chars=MAX_NOTE_CHARS,
        placeholder="A note about this choice",
        on_change=_keep,
        args=(found, vote.choice, note),
    )
    if problem := st.session_state.pop(PROBLEM, ""):
        notices.problem(problem, "deck_vote")


def _keep(found: OpenCard, choice: Choice, note: str) -> None:
    """Stores the vote, always with the same one of two runs."""
    vote = changed(found.vote, choice=choice, note=st.session_state[note].strip())
    where = min(found.sides, key=lambda side: voted_answer(side.line)).source
    try:
        feedback.put_vote(where.info.folder, vote)
    except StageScopeError as error:
        st.session_state[PROBLEM] = str(error)


def _totals(opened: OpenedRuns, votes: Sequence[Vote], pair: tuple[str, str]) -> None:
    """The counts of the pair's votes; they name the models."""
    st.subheader("Votes", anchor=False)
    found = [one for one in vote_counts.tally(votes, opened.table) if {one.a, one.b} == {*pair}]
    if not found:
        notices.small("No vote on these two models yet.", "deck_totals")
        return
    for number, one in enumerate(found):
        notices.small(vote_part.sentence(one), f"deck_total_{number}")
    blocks.draw([vote_part.table(found)], "deck_table")
    notices.small(vote_part.MEANING, "deck_meaning")

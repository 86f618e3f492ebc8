"""The deck on Results: samples ordered by disagreement, one at a time, with votes.

In blind mode the sides are shuffled, and until the visitor has voted nothing on the card tells
which model gave which answer: no name, colour, time or fixed side.  The reference and the
attributes are shown after the vote, blind or open.
"""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import streamlit as st

from engine.analysis import agreement, statistics
from engine.analysis.agreement import DeckCard
from engine.errors import StoreError
from engine.models import registry
from engine.storage import annotations as feedback
from engine.storage.annotations import Choice, Vote, VotedAnswer
from ui.compare import blind_vote
from ui.results import comparison_view, opened_runs, sample_view
from ui.results.opened_runs import OpenedRuns
from ui.results.sample_view import Result
from ui.widgets import choices, notices
from ui.widgets.text import count, escape

SAMPLE = "results_deck"  # in the URL
HIDDEN = "Hidden until you vote"
NAMES = {name: name for name in (HIDDEN, "Shown")}
NONE = "The two models answered no sample with the same question: choose other models or runs."
HELP = (
    "While names are hidden, the sides are shuffled. Blind votes and open votes are counted apart."
)
SEEN = "You have seen the names of these two answers before, so your vote counts as open."
OTHER_QUESTION = "{} left out: the two models were asked different questions about them."
AFTER = "The names, the reference and the counts appear after your vote."
NO_VOTE = "No vote on these two models yet."
MEANING = (
    "Each vote counts as independent, also several about one sequence: the interval says nothing "
    "about other samples."
)
NAMED = "results_deck_seen"  # in the session: the pairs whose names were seen
BUTTONS: dict[Choice, tuple[str, str]] = {  # by side: label, key
    "first": ("A better", "1"),
    "second": ("B better", "2"),
    "both": ("Both good", "3"),
    "neither": ("Neither", "4"),
}
OTHER: dict[Choice, Choice] = {"first": "second", "second": "first"}


def show(opened: OpenedRuns) -> None:
    # Buttons, not a switch: the keys for votes work after a click on a button.
    blind = choices.buttons("Model names", NAMES, "results_names", help_=HELP) == HIDDEN
    labels, pair = opened.labels, (opened.labels[0], opened.labels[1])
    if len(labels) > 2:  # in blind mode the choice is folded away
        with st.expander("Models of this deck", expanded=not blind):
            pair = choices.two(labels, pair, ("results_a", "results_b"))
    if pair[0] == pair[1]:
        notices.notice(comparison_view.SAME, "results_same")
        return
    deck = opened_runs.deck(opened, *pair)
    if not deck:
        notices.hint(NONE)
        return
    names = [card.sample for card in deck]
    asked = st.query_params.get(SAMPLE)
    place = names.index(asked) if asked in names else 0
    with st.container(horizontal=True, vertical_alignment="center", key="results_deck_pager"):
        choices.neighbours(names, place, SAMPLE, st.query_params)
        st.caption(f"{place + 1:,} of {count(len(names), 'sample')}", width="content")
        st.caption("Contradictions first, then the least words in common.", width="content")
    if left_out := agreement.answered_by_both(opened.table, *pair) - len(deck):
        notices.small(OTHER_QUESTION.format(count(left_out, "sample")), "deck_left_out")
    votes: list[Vote] = []
    for source in opened.sources:
        with contextlib.suppress(StoreError):  # which the run's problems report
            votes += feedback.votes(source.info.folder)
    card = deck[place]
    if _draw(card, [_answer(opened, label, card.sample) for label in pair], votes, blind):
        _totals(opened, votes, pair)
    else:
        notices.small(AFTER, "deck_totals")


def _answer(opened: OpenedRuns, label: str, sample: str) -> Result:
    table = opened.table
    lines = table[(table["sample"] == sample) & (table["label"] == label)]
    lines = lines[(lines["phase"] == "measured") & (lines["error"] == "")]
    return sample_view.result_of(opened, lines.head(1).to_dict("records")[0])


def _draw(card: DeckCard, pair: Sequence[Result], votes: Sequence[Vote], blind: bool) -> bool:
    """The card as this visit may see it.  Returns whether the names are shown."""
    visit = blind_vote.visit()
    keys = [voted_answer(side.line) for side in pair]
    # By chance, the same for a visit and a sample.
    draws = [hashlib.sha256(repr((visit, card.sample, key)).encode()).digest() for key in keys]
    turned = blind and draws[0] > draws[1]
    sides = pair[::-1] if turned else pair
    voted_on = min(keys), max(keys)
    mine = {
        vote.blind: vote.choice
        for vote in votes
        if (vote.visit, vote.sample, vote.answers) == (visit, card.sample, voted_on)
    }
    seen: set[tuple[str, tuple[VotedAnswer, ...]]] = st.session_state.setdefault(NAMED, set())
    voted_blind = blind and True in mine
    hidden = blind and not voted_blind and (card.sample, voted_on) not in seen
    if not hidden:
        seen.add((card.sample, voted_on))
    st.subheader(escape(card.sample), anchor=False)
    vote = Vote(card.sample, voted_on, "both", hidden or voted_blind, visit)
    voted = vote.blind in mine
    sample_view.asked(sides, known=voted)
    if voted:
        notices.small(differences(card, turned), "deck_differences")
    for letter, side, column in zip("AB", sides, st.columns(2), strict=True):
        with column:
            _side(side, letter, hidden)
    if blind and not hidden and not voted_blind:
        notices.notice(SEEN, "deck_seen")
    _ballot(vote, mine.get(vote.blind), sides)
    shown = {}  # in an order that does not depend on the sides
    for side in sides:
        entry = registry.find(side.task.model)
        shown[repr((entry and entry.kind, side.run.header.plan.media))] = side
    st.caption("The pictures that the models were given; their order does not follow the answers.")
    for number, (kind, column) in enumerate(zip(sorted(shown), st.columns(2), strict=False)):
        with column:
            sample_view.pictures(shown[kind], f"deck_{number}")
    return not hidden


def voted_answer(line: Any) -> VotedAnswer:
    return VotedAnswer(str(line["run"]), str(line["model"]), int(line["repeat"]))


def differences(card: DeckCard, turned: bool) -> str:
    parts = [(name, *((b, a) if turned else (a, b))) for name, a, b in card.contradictions]
    differ = [f"{name}: A {a}, B {b}" for name, a, b in parts]
    words = f"{count(len(differ), 'contradiction')}: {'; '.join(differ)}."
    overlap = "" if card.overlap is None else f"Word F1 {card.overlap:.3f}."
    return f"{words if differ else 'No contradiction in an attribute.'} {overlap}".strip()


def _side(answer: Result, letter: str, hidden: bool) -> None:
    """One answer; nothing here may tell the model while the names are hidden."""
    line, key = answer.line, f"deck_{letter}"
    name = f"Answer {letter}" if hidden else f"{letter}: {answer.label}"
    with notices.frame("" if hidden else answer.tone, key):
        st.markdown(f"**{escape(name)}**")
        notices.answer(line["text"], key)
        notices.remarks(line["stop"], line["off_script"] and not hidden, key)


def _ballot(vote: Vote, chosen: Choice | None, sides: Sequence[Result]) -> None:
    """The buttons of a vote, which is stored for the order of its answers, not for the sides."""
    left, right = sides
    crossed = voted_answer(left.line) != vote.answers[0]
    folder = (right if crossed else left).run.folder  # of two runs always the same one
    with st.container(horizontal=True, key="results_deck_choices"):
        for side, (label, key) in BUTTONS.items():
            choice = OTHER.get(side, side) if crossed else side
            pressed = msgspec.structs.replace(vote, choice=choice)
            st.button(
                label,
                key=f"results_deck_{side}",
                shortcut=key,
                type="primary" if chosen == choice else "secondary",
                disabled=vote.blind and chosen is not None,  # the names are known now
                on_click=notices.attempt,
                args=("deck", feedback.put_vote, folder, pressed),
            )
            if chosen == choice:
                better = {"first": left, "second": right}.get(side)
                words = f"{better.label} better" if better else label.lower()
    if chosen:
        notices.small(f"Your {'blind' if vote.blind else 'open'} vote: {words}.", "deck_vote")
    notices.said("deck")


def _totals(opened: OpenedRuns, votes: Sequence[Vote], pair: tuple[str, str]) -> None:
    """The pair's votes, blind and open ones apart; they name the models."""
    lines = opened.table[opened.table["phase"] == "measured"].to_dict("records")
    label = {(line["sample"], voted_answer(line)): line["label"] for line in lines}
    counts = {True: Counter[Choice](), False: Counter[Choice]()}
    for vote in votes:
        sides = tuple(label.get((vote.sample, answer)) for answer in vote.answers)
        if sides in (pair, pair[::-1]):
            choice = vote.choice if sides == pair else OTHER.get(vote.choice, vote.choice)
            counts[vote.blind][choice] += 1
    st.subheader("Votes", anchor=False)
    for blind, found in counts.items():
        first, second = found["first"], found["second"]
        words = (
            f"{'Blind' if blind else 'Open'} votes: {pair[0]} better {first:,}, {pair[1]} better "
            f"{second:,}, both good {found['both']:,}, neither {found['neither']:,}."
        )
        if decided := first + second:
            low, high = statistics.exact_share(first / decided, decided)
            words += (
                f" {pair[0]} is preferred in {first:,} of {decided:,} votes (95 % interval "
                f"{100 * low:.1f} to {100 * high:.1f} %)."
            )
        if found:
            notices.small(words, f"deck_votes_{'blind' if blind else 'open'}")
    notices.small(MEANING if any(counts.values()) else NO_VOTE, "deck_totals")

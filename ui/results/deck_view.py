"""The deck on Results: samples ordered by disagreement, one at a time, with votes.

Boundary: draws the open card; the engine orders and counts.  While the names are hidden, nothing on
the card tells which model gave which answer: no name, colour, time or fixed side.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.analysis import ranking, vote_counts
from engine.analysis.ranking import DeckCard
from engine.errors import DatasetError, MediaError, UnknownModel
from engine.models import registry
from engine.palette import TONES
from engine.prompts import OFF_SCRIPT
from engine.report import vote_part
from engine.storage.annotations import MAX_NOTE_CHARS
from engine.storage.schemas import Choice, Vote
from ui.compare import cards
from ui.results import comparison_view, deck_card, opened_runs, sample_view
from ui.results.deck_card import CHOICES, OpenCard
from ui.results.opened_runs import OpenedRuns
from ui.results.sample_view import Result
from ui.widgets import blocks, contact_sheets, notices
from ui.widgets.text import count
from ui.widgets.text import escape as literal

SAMPLE, NAMES = "results_deck", "results_names"  # in the URL
HIDDEN, SHOWN = "Hidden until you vote", "Shown"
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


def show(opened: OpenedRuns) -> None:
    if len(opened.labels) < 2:
        notices.hint(comparison_view.ONE)
        return
    blind = _blind()
    pair = _pair(opened.labels, blind)
    if pair[0] == pair[1]:
        notices.notice("Model A and Model B are the same: choose another Model B.", "results_same")
        return
    deck = opened_runs.deck(opened, *pair)
    if not deck:
        notices.hint(NONE)
        return
    place = _pager([card.sample for card in deck])
    if left_out := ranking.answered_by_both(opened.table, *pair) - len(deck):
        notices.small(OTHER_QUESTION.format(count(left_out, "sample")), "deck_left_out")
    votes = tuple(vote for source in opened.sources for vote in source.votes())
    found = deck_card.open_card(opened, pair, deck[place], votes, blind)
    _draw(found, blind)
    if found.hidden:
        notices.small(AFTER, "deck_totals")
    else:
        _totals(opened, votes, pair)


def _blind() -> bool:
    """Whether names are hidden.  Buttons, not a switch: keys work after a click on a button."""
    chosen = st.segmented_control(
        "Model names",
        (HIDDEN, SHOWN),
        default=HIDDEN,
        required=True,
        key=NAMES,
        bind="query-params",
        help=HELP,
    )
    return chosen == HIDDEN


def _pair(labels: Sequence[str], blind: bool) -> tuple[str, str]:
    """The two labels; the choice among several is folded away in blind mode."""
    if len(labels) == 2:
        return labels[0], labels[1]
    with st.expander("Models of this deck", expanded=not blind):
        left, right = st.columns(2)
        a = left.selectbox("Model A", labels, 0, key="results_a", bind="query-params")
        b = right.selectbox("Model B", labels, 1, key="results_b", bind="query-params")
    return a or labels[0], b or labels[1]


def _pager(names: Sequence[str]) -> int:
    """The place in the deck, with buttons and their keys."""
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
                on_click=_go,
                args=(name,),
                disabled=name is None,
            )
        st.caption(f"{place + 1:,} of {count(len(names), 'sample')}", width="content")
        st.caption(ORDER, width="content")
    return place


def _go(sample: str) -> None:
    st.query_params[SAMPLE] = sample


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
    if not found.hidden:
        notes = [f"note: {vote.note}" for vote in found.others if vote.note][-MOST_NOTES:]
        if lines := [*filter(None, [found.other_votes()]), *notes]:
            notices.small("Other visits: " + "\n".join(lines), "deck_others")
    _pictures(found.sides)


def differences(card: DeckCard) -> str:
    """How the two answers differ, in words."""
    said = [f"{name}: A {a}, B {b}" for name, a, b in card.contradictions]
    overlap = "" if card.overlap is None else f"Word F1 {card.overlap:.3f}."
    if not said:
        return f"No contradiction in an attribute. {overlap}".strip()
    return f"{count(len(said), 'contradiction')}: {'; '.join(said)}. {overlap}".strip()


def _pictures(sides: Sequence[Result]) -> None:
    """The pictures of both models, in an order that does not depend on the sides."""
    try:
        entries = {one.task.model: registry.entry(one.task.model) for one in sides}
        kinds = {(entries[one.task.model].kind, one.how) for one in sides}
        sample = sample_view.sample_of(sides[0])
        sheets = [contact_sheets.seen(sample, *kind) for kind in sorted(kinds, key=repr)]
    except UnknownModel:
        notices.small("No pictures to show: models.toml lacks an entry of a model.", "seen_deck")
        return
    except (MediaError, DatasetError) as error:
        notices.small(f"No pictures to show: {error}", "seen_deck")
        return
    st.caption(PICTURES)
    for number, (sheet, column) in enumerate(zip(sheets, st.columns(2), strict=False)):
        with column:
            st.image(sheet.picture, width="stretch", alt=sheet.alt)
            notices.small(sheet.caption, f"seen_deck_{number}")


def _side(found: OpenCard, side: int) -> None:
    """One answer; nothing here may tell the model while the names are hidden."""
    line, letter = found.sides[side].line, "AB"[side]
    tone = found.sides[side].tone
    colour = tone if tone in TONES and not found.hidden else "other"
    with st.container(border=True, key=f"card_{colour}_deck_{letter}"):
        st.markdown(f"**{literal(found.name(side))}**")
        with st.container(key=f"answer_deck_{letter}"):
            st.text(line["text"] or " ")
        if stop := cards.STOPS.get(str(line["stop"]), ""):
            notices.small(stop, f"deck_stop_{letter}")
        if line["off_script"] and not found.hidden:
            notices.notice(OFF_SCRIPT, f"off_script_deck_{letter}")


def _ballot(found: OpenCard) -> None:
    """The choices and the note."""
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
                disabled=found.final,
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
    if problem := st.session_state.pop(deck_card.PROBLEM, ""):
        notices.problem(problem, "deck_vote")


def _keep(found: OpenCard, choice: Choice, note: str) -> None:
    found.store(choice, st.session_state[note].strip())


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

"""A blind vote on Compare: until it, nothing tells which model gave which answer.  It belongs to
the runs that were started while names were to be hidden.  A saved comparison keeps it as the deck
on Results keeps votes: one for each pair of answers."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_uppercase

import streamlit as st

from engine.jobs.run_job import RunView
from engine.storage.annotations import Choice, Vote, VotedAnswer
from ui.widgets import followed_runs, notices
from ui.widgets.followed_runs import RUNS

BLIND, VISIT = "compare_blind", "vote_visit"  # in the URL; in the session: its number
BALLOTS = "compare_ballots"  # in the session, by the ids of the runs
HELP = (
    "For the next Run: answers are shuffled, without names and times, until you vote. Save to "
    "Results keeps the vote."
)
ASK = "Which answer is best? Names and times appear after your vote."
HEAD = '<div class="verdict"><h2>{}</h2></div>'
ALL: dict[Choice, tuple[str, str]] = {  # of all answers: the button, and the vote in words
    "both": ("All good", "all answers are good"),
    "neither": ("None", "no answer is good"),
}


@dataclass
class Ballot:
    """The models from left to right, and what was chosen: one of them, a key of ALL, or ""."""

    order: list[str]
    choice: str = ""


def toggle() -> None:
    st.toggle("Hide names until you vote", key=BLIND, bind="query-params", help=HELP)


def visit() -> int:
    """The number that marks this session's votes."""
    return int(st.session_state.setdefault(VISIT, secrets.randbelow(2**32)))


def begin() -> None:
    """Hides the names of the runs that were just started, if that was chosen."""
    if st.session_state.get(BLIND):
        order = [view.model for view in followed_runs.views()]
        secrets.SystemRandom().shuffle(order)
        _ballots()[tuple(RUNS.ids())] = Ballot(order)


def _ballots() -> dict[tuple[str, ...], Ballot]:
    found: dict[tuple[str, ...], Ballot] = st.session_state.setdefault(BALLOTS, {})
    return found


def hiding() -> bool:
    """Whether the names of the shown runs are hidden: not if fewer than two can have answers."""
    ballot = _ballots().get(tuple(RUNS.ids()))
    able = [view for view in followed_runs.views() if view.state == "done" or not view.ended]
    return ballot is not None and not ballot.choice and len(able) > 1


def show(views: Sequence[RunView]) -> None:
    """The answers of all runs, once all have ended, under letters; then the vote."""
    ballot, by_model = _ballots()[tuple(RUNS.ids())], {view.model: view for view in views}
    letters = dict(zip(ballot.order, ascii_uppercase, strict=False))
    letters = {name: letter for name, letter in letters.items() if name in by_model}
    live = any(not view.ended for view in views)
    head = st.html(HEAD.format(ASK))
    columns = st.container(key="compare_cards").columns(max(2, len(views)))
    for (name, letter), column in zip(letters.items(), columns, strict=False):
        view = by_model[name]
        with column, notices.frame("", f"blind_{letter}"):
            st.container(key=f"head_blind_{letter}").subheader(letter, anchor=False)
            if live:
                st.caption("The answers appear when all models have answered.")
            elif view.state == "done":
                notices.answer(view.text, f"blind_{letter}")
            else:  # an error may name its model
                st.caption("No answer.")
    if live:
        followed_runs.follow(lambda _: head.html(HEAD.format(followed_runs.progress())))
        st.rerun()
    done = [name for name in letters if by_model[name].state == "done"]
    labels = {name: f"{letters[name]} best" for name in done}
    labels |= {choice: label for choice, (label, _) in ALL.items()}
    with st.container(horizontal=True, key="compare_vote"):
        for number, (choice, label) in enumerate(labels.items(), 1):
            key, vote = f"compare_vote_{number}", (ballot, "choice", choice)
            st.button(label, key=key, shortcut=str(number), on_click=setattr, args=vote)


def words(labels: Mapping[str, str]) -> str:
    ballot = _ballots().get(tuple(RUNS.ids()))
    if ballot is None or not ballot.choice:
        return ""
    said: dict[str, str] = {choice: of_all for choice, (_, of_all) in ALL.items()}
    best = f"{labels.get(ballot.choice, ballot.choice)} answered best"
    was = (f"{letter} was {labels.get(name, name)}"
           for letter, name in zip(ascii_uppercase, ballot.order, strict=False))  # fmt: skip
    return f"Your blind vote: {said.get(ballot.choice, best)}. {', '.join(was)}."


def votes(ids: tuple[str, ...], sample: str, answered: Sequence[VotedAnswer]) -> Iterator[Vote]:
    """The vote on the runs `ids` as votes on pairs of these answers: the best with each other one,
    or all pairs where all are good or none is."""
    ballot = _ballots().get(ids)
    if ballot is None or not ballot.choice:
        return
    for first, second in combinations(sorted(answered), 2):
        sides: dict[str, Choice] = {first.model: "first", second.model: "second"}
        sides |= {choice: choice for choice in ALL}
        if choice := sides.get(ballot.choice):
            yield Vote(sample, (first, second), choice, True, visit())

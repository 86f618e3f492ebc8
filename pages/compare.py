"""Compare: one sample, up to six columns, one question; answers and stage times side by side.

The runs are jobs in the engine's queue, so a redraw of the page loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from engine.demo.wordings import QUESTIONS
from engine.errors import StageScopeError
from engine.models.checkpoint import ModelEntry
from engine.prompts import COMMON_QUESTIONS, DEFAULT_QUESTION, MAX_QUESTION_CHARS
from engine.types import RunOptions, RunRequest, Sample
from ui.compare import (
    agreement_view,
    card_board,
    draft_panel,
    explain_panel,
    history,
    recording_view,
    shown_inputs,
)
from ui.widgets import dataset_picker, followed_runs, links, model_picker, notices, preparation
from ui.widgets.followed_runs import MAX_MODELS
from ui.widgets.model_picker import DEFAULT_MODELS, pick_loadable_models
from ui.widgets.run_settings import pick_repeats, pick_run_options, run_and_cancel
from ui.widgets.sample_picker import pick_sample

QUESTION = "compare_question"
RUN = "compare_run"
COMMON = "compare_common"
CUT = "compare_cut"


@dataclass(frozen=True)
class CompareChoice:
    """The current values of all widgets."""

    sample: Sample | None
    models: tuple[ModelEntry, ...]
    question: str
    options: RunOptions
    cut: bool
    repeats: int
    problem: str = ""  # a setting that cannot be read

    @property
    def ready(self) -> bool:
        return self.sample is not None and bool(self.models) and not self.problem

    def requests(self) -> list[RunRequest]:
        """One request per model; BadInput if a value is invalid."""
        if self.sample is None:
            return []
        return [self.options.ask(self.sample, one.name, self.question) for one in self.models]


def choose(entries: Sequence[ModelEntry]) -> CompareChoice:
    """The sidebar, then the question above the answers."""
    with st.sidebar:
        sample = pick_sample(entries)
        missing = sample.missing if sample is not None else {}
        models = pick_loadable_models(entries, "compare", DEFAULT_MODELS, MAX_MODELS, missing)
        repeats = pick_repeats()
        options, problem = pick_run_options()
    question, cut = ask(models, sample)
    return CompareChoice(sample, models, question, options, cut, repeats, problem)


def ask(models: Sequence[ModelEntry], sample: Sample | None) -> tuple[str, bool]:
    """The question, from its field or the list of common ones, and whether it was cut."""
    left, right = st.columns([3, 1.4], vertical_alignment="top")
    offered = offer(models, sample)
    with right:
        st.selectbox(
            "Common questions",
            offered,
            index=None,
            key=COMMON,
            placeholder=f"Pick one of {len(offered)}",
            on_change=_use_common,
        )
    with left:
        question = st.text_area(
            "Question",
            DEFAULT_QUESTION,
            height=68,
            key=QUESTION,
            bind="query-params",
            on_change=_cut,
        )
    if (length := st.session_state.pop(CUT, 0)) > 0:
        notices.notice(
            f"The question had {length:,} characters and was cut to {MAX_QUESTION_CHARS:,}: "
            "check its end, then press Run.",
            "cut",
        )
    return question or "", length > 0


def _cut() -> None:
    """Cuts a question that is too long for the models, so that it also fits into a link."""
    if len(text := st.session_state[QUESTION]) > MAX_QUESTION_CHARS:
        st.session_state[CUT] = len(text)
        st.session_state[QUESTION] = text[:MAX_QUESTION_CHARS]


def offer(models: Sequence[ModelEntry], sample: Sample | None) -> list[str]:
    """The record's own question, those that demo checkpoints were trained on, then common ones."""
    own = (sample.question,) if sample is not None and sample.question else ()
    known = QUESTIONS if any(model.demo for model in models) else ()
    return list(dict.fromkeys((*own, *known, *COMMON_QUESTIONS)))


def _use_common() -> None:
    if st.session_state[COMMON] is not None:
        st.session_state[QUESTION] = st.session_state[COMMON]
        st.session_state[COMMON] = None


def buttons(choice: CompareChoice, live: bool) -> None:
    """Run, Cancel, and the switch of the known answer."""
    with st.container(horizontal=True, vertical_alignment="center", key="compare_buttons"):
        run_and_cancel("compare", ("Run", RUN), live, choice.ready, followed_runs.RUNS.cancel)
        views = followed_runs.views()  # the cards have the sample of the shown runs
        sample = views[0].request.sample if views else choice.sample
        agreement_view.known_answer(sample, live)
    if not choice.ready:
        notices.small(_missing(choice), "run_needs")


def _missing(choice: CompareChoice) -> str:
    """Why Run cannot be pressed."""
    if choice.problem:
        return choice.problem
    if choice.sample is not None:
        return "Run needs a model that can use this input: the sidebar says which can."
    if st.session_state.get("compare_source") == "files":
        return "Run needs a file that can be used: the sidebar says what is wrong with yours."
    if dataset_picker.making():
        return "The demo scenes are being made: Run is ready in a few seconds."
    return "Run needs a sample: choose one in the sidebar."


def say_changes(choice: CompareChoice) -> None:
    """A sentence and Run if the choice differs from that of the shown runs."""
    shown = [view.request for view in followed_runs.views()]
    try:
        found = shown_inputs.changes(shown, choice.sample, choice.requests())
    except StageScopeError:  # no question: Run says why
        found = ("question",) if shown else ()
    shown_inputs.banner(found, choice.sample, choice.ready and not followed_runs.live())


def start(choice: CompareChoice) -> str:
    """Starts the runs if Run was pressed, before any button is drawn: they then show it without
    another run of the page.  What is wrong with the choice, or ""."""
    pressed = any(st.session_state.get(key) for key in (RUN, shown_inputs.RUN))
    if not pressed or not choice.ready or choice.cut:
        return ""
    links.forget()
    try:
        followed_runs.start(choice.requests(), choice.repeats)
    except StageScopeError as error:
        return str(error)
    return ""


def main() -> None:
    entries = model_picker.entries_or_stop()
    links.remember()
    st.title("Compare", anchor=False)
    spoken = card_board.Spoken()
    choice = choose(entries)
    problem = start(choice)
    live = followed_runs.live()
    buttons(choice, live)
    if problem:
        notices.problem(problem, "run")
    recording_view.rates(choice.sample, choice.models, choice.options)
    say_changes(choice)
    how = choice.options
    names = [view.model for view in followed_runs.views()]
    entries = model_picker.on_page(entries, choice.models, names)
    named = {entry.name: entry for entry in entries}
    models = tuple(named[model.name] for model in choice.models)
    with st.container(key="compare_board"):
        card_board.show(entries, choice.sample, models, how.media, spoken)
    if live and not followed_runs.live():  # ended before the board could follow: draw the buttons
        st.rerun()
    explain_panel.section(entries)
    history.section(entries)
    asked = (choice.sample, models, choice.question)
    draft_panel.section(*asked, how)


preparation.through_app()
main()

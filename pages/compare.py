"""Compare: one sample, up to six columns, one question; answers and stage times side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from engine.demo.wordings import QUESTIONS
from engine.errors import StageScopeError
from engine.models.checkpoint import ModelEntry
from engine.prompts import COMMON_QUESTIONS, MAX_QUESTION_CHARS
from engine.types import RunOptions, RunRequest, Sample
from ui.compare import blind_vote, card_board, compare_tabs, history, shown_inputs
from ui.widgets import choices, followed_runs, links, model_picker, notices, preparation
from ui.widgets.choices import pick_repeats, pick_run_options, run_and_cancel
from ui.widgets.dataset_picker import making, pick_sample
from ui.widgets.followed_runs import MAX_MODELS
from ui.widgets.text import escape

QUESTION = "compare_question"
RUN = "compare_run"
COMMON = "compare_common"
CUT = "compare_cut"


@dataclass(frozen=True)
class CompareChoice:
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


def choose(entries: Sequence[ModelEntry]) -> tuple[CompareChoice, str, bool]:
    """The sidebar, then the question with Run: the choice, what is wrong with it or "", and
    whether models ran when Run was drawn."""
    with st.sidebar:
        sample = pick_sample(entries)
        missing = sample.missing if sample is not None else {}
        models = model_picker.pick_loadable_models(entries, "compare", 3, MAX_MODELS, missing)
        with st.expander("Settings", key="compare_settings"):
            repeats = pick_repeats()
            blind_vote.toggle()
            options, problem = pick_run_options()
    problem = problem or model_picker.unasked_hosts("compare", models)
    with st.container(horizontal=True, vertical_alignment="bottom", key="compare_ask"):
        question = choices.question("Question", QUESTION, height=72, on_change=_cut)
        cut = bool(st.session_state.pop(CUT, False))
        choice = CompareChoice(sample, models, question, options, cut, repeats, problem)
        with st.container(width=190, gap="xsmall", key="compare_buttons"):
            wrong = start(choice)
            common(models, sample)
            live, cancel = followed_runs.live(), followed_runs.RUNS.cancel
            run_and_cancel("compare", "Run", RUN, live, choice.ready, cancel)
    if cut:
        most = f"{MAX_QUESTION_CHARS:,} characters"
        notices.notice(f"The question was cut to {most}: check its end, then press Run.", "cut")
    if not choice.ready:
        notices.hint(_missing(choice))
    return choice, wrong, live


def common(models: Sequence[ModelEntry], sample: Sample | None) -> None:
    """A menu: a list in the field would lose its text when somebody types."""

    def use() -> None:
        st.session_state[QUESTION] = st.session_state[COMMON]

    own = (sample.question,) if sample is not None and sample.question else ()
    known = QUESTIONS if any(model.demo for model in models) else ()
    offered = list(dict.fromkeys((*own, *known, *COMMON_QUESTIONS)))
    st.menu_button(
        "Common questions", offered, key=COMMON, format_func=escape, on_click=use, width="stretch"
    )


def _cut() -> None:
    """Cuts a question that is too long for the models, so that it also fits into a link."""
    if len(text := st.session_state[QUESTION]) > MAX_QUESTION_CHARS:
        st.session_state[CUT] = True
        st.session_state[QUESTION] = text[:MAX_QUESTION_CHARS]


def _missing(choice: CompareChoice) -> str:
    if choice.problem:
        return choice.problem
    if choice.sample is not None and not st.session_state.get("compare_models"):
        return "Run needs a model: choose one to six in the sidebar."
    if choice.sample is not None:
        return "Run needs a model that can use this input: the sidebar says which can."
    if st.session_state.get("compare_source") == "files":
        if not st.session_state.get("compare_files"):
            return "Run needs a file: drop your own files in the sidebar."
        return "Run needs a file that can be used: the sidebar says what is wrong with yours."
    if making():
        return "The demo scenes are being made: Run is ready in a few seconds."
    return "Run needs a sample: choose one in the sidebar, or drop your own files there."


def start(choice: CompareChoice) -> str:
    """Starts the runs if Run was pressed, before any button is drawn: they then show it without
    another run of the page.  What is wrong with the choice, or ""."""
    pressed = any(st.session_state.get(key) for key in (RUN, shown_inputs.RUN))
    if not pressed or not choice.ready or choice.cut:
        return ""
    links.forget()
    try:
        followed_runs.start(choice.requests(), choice.repeats)
        blind_vote.begin()
    except StageScopeError as error:
        return str(error)
    return ""


def main() -> None:
    entries = model_picker.entries_or_stop()
    st.title("Compare", anchor=False)
    spoken = card_board.live_region()
    choice, problem, live = choose(entries)
    if problem:
        notices.problem(problem, "run")
    # A sentence and Run if the choice differs from that of the shown runs.
    requests = [view.request for view in followed_runs.views()]
    try:
        changed = shown_inputs.changes(requests, choice.sample, choice.requests())
    except StageScopeError:  # no question: Run says why
        changed = ("question",) if requests else ()
    shown_inputs.banner(changed, choice.sample, choice.ready and not followed_runs.live())
    names = [view.model for view in followed_runs.views()]
    entries = model_picker.on_page(entries, choice.models, names)
    named = {entry.name: entry for entry in entries}
    models = tuple(named[model.name] for model in choice.models)
    asked = (choice.sample, models, choice.question, choice.options)
    below = partial(compare_tabs.show, named, *asked)
    with st.container(key="compare_board"):
        card_board.show(named, choice.sample, models, spoken, below)
    if live and not followed_runs.live():  # ended before the board could follow: draw the buttons
        st.rerun()
    if not blind_vote.hiding():
        history.section(named)


preparation.through_app(main)

"""Results: saved runs, alone and compared, down to single answers."""

import shlex
from collections.abc import Callable, Sequence

import streamlit as st

from engine import settings
from engine.errors import StageScopeError
from engine.models import registry
from engine.report import document
from engine.storage.plan import COMPARISON
from ui.published import draft_view
from ui.results import comparison_view, deck_view, overview, run_list, sample_list, sample_view
from ui.results.opened_runs import OpenedRuns, Source, grown, open_, shown_stamps
from ui.widgets import choices, notices, preparation

NOT_YET = "The chosen run has no results yet: come back when its first sample is done."
NOTHING = "The chosen run has no results: choose another one above."
FILES = "Result files of others need no GPU: import them on the page Published files."


def kept_comparison(opened: OpenedRuns) -> bool:
    """Whether only a comparison is shown that was saved on the Compare page: it has one sample."""
    return len(opened.runs) == 1 and opened.runs[0].header.plan.order_why == COMPARISON


def samples(opened: OpenedRuns) -> None:
    if len(opened.labels) > 1 and st.toggle(VOTING, key=VOTE, bind="query-params"):
        deck_view.show(opened)  # without the verdict, whose token counts would tell the models
        return
    kept = kept_comparison(opened)
    overview.verdict(document.saved_verdict(opened.runs))
    name = opened.runs[0].header.plan.samples[0] if kept else sample_list.choose(opened)
    if name is not None:
        sample_view.show(opened, name)


def quality(opened: OpenedRuns) -> None:
    if overview.has_choices(opened):
        st.subheader("Accuracy", anchor=False)
        overview.accuracy(opened)
    overview.references(opened)
    overview.robustness(opened)
    if len(opened.labels) > 1 and st.toggle(DRAFTS, key="results_acceptance", bind="query-params"):
        draft_view.show_own(opened)


VOTING, VOTE = "Vote, one sample at a time", "results_vote"
DRAFTS = "One model's answers as drafts of another"
VIEW, VIEWED = "results_view", "results_viewed"  # in the URL; in the session: the runs shown before
FIRST = "results_answers_first"  # in the session: the page, not the visitor, chose the view
VIEWS: dict[str, Callable[[OpenedRuns], None]] = {
    "Overview": overview.show,
    "Comparison": comparison_view.show,
    "Samples": samples,
    "Quality": quality,
    "Export": overview.export,
}


def view(opened: OpenedRuns) -> None:
    """The chosen view; the others are not computed."""
    before, st.session_state[VIEWED] = st.session_state.get(VIEWED), opened.key
    asked = before is None and VIEW in st.query_params
    kept = kept_comparison(opened)
    if kept and before != opened.key and not asked:
        st.session_state[VIEW], st.session_state[FIRST] = "Samples", True  # its answers come first
    elif not kept and st.session_state.pop(FIRST, False) and st.session_state[VIEW] == "Samples":
        st.session_state[VIEW] = "Overview"
    name = choices.buttons("View", {name: name for name in VIEWS}, VIEW, hidden=True)
    with st.spinner("Computing figures …"):  # it appears after half a second
        VIEWS[name](opened)


def show(picked: Sequence[Source]) -> None:
    opened = open_(picked)
    run_list.head(opened)
    if grown(picked):
        with st.container(horizontal=True, vertical_alignment="center"):
            notices.small("This run has new results.", "results_grown")
            st.button("Reload", key="results_again", on_click=shown_stamps().clear)
    if opened.table.empty:
        running = any(source.info.state == "running" for source in picked)
        notices.hint(NOT_YET if running else NOTHING)
        return
    view(opened)


def example() -> str:
    """A command that makes a run here: the models that can run, on the demo scenes."""
    try:
        able = [one.name for one in registry.entries() if registry.unavailable(one) is None]
    except StageScopeError:  # Compare and Models say what is wrong with models.toml
        able = []
    parts = ["--dataset", str(settings.load().demo_dir), "--models", ",".join(able) or "NAME,NAME"]
    return shlex.join(["python", "-m", "engine", "bench", *parts])


def main() -> None:
    st.title("Results", anchor=False)
    picked = run_list.choose()
    notices.said(run_list.DELETED)
    if picked is None:
        notices.hint(
            "There is no run yet. Start one on the Benchmark page or from a terminal. It appears "
            "here at once, and each result is saved as soon as it is measured:"
        )
        st.code(example(), language=None)
        st.page_link("pages/benchmark.py", label="Go to Benchmark")
        notices.small(FILES, "results_files")
    elif not picked:
        notices.hint("Choose one or more runs above.")
    else:
        with notices.telling("results_open", notices.problem):
            show(picked)


preparation.through_app(main)

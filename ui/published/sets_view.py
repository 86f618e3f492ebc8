"""Chosen sets of published files: the head, the two switches, one view at a time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from engine.errors import StageScopeError
from engine.published.claims import published_report
from ui.published import adding, audit_view, draft_view, file_figures, opened_sets, published_charts
from ui.published.opened_sets import OpenedSets
from ui.results.result_sources import ELSEWHERE_WORDS, Source
from ui.widgets import blocks, choices, notices
from ui.widgets.text import escape

VALUES = {"corrected": "Corrected", "recorded": "As recorded"}
VALUES_HELP = (
    "As recorded: ratios, charts and names as in the files. Corrected: missing tokens are added, "
    "prompts are removed from answers, contexts are counted once, warm-ups are removed from stages "
    "and totals, placeholders are shown as not measured, and models are named by the evidence. "
    "Tables of stages show both."
)
REPORTS = {
    "html": ("Report, one HTML file", "text/html", "Readable offline, printable."),
    "md": ("Report, Markdown", "text/markdown", "The same text and tables."),
}


def open_(picked: Sequence[Source]) -> OpenedSets | None:
    """The chosen sets; None with a message if one is gone."""
    try:
        return opened_sets.open_(picked)
    except StageScopeError as error:
        notices.problem(str(error), "imported_open")
        return None


def head(found: OpenedSets) -> None:
    """What was just added, the open sets, and their actions."""
    adding.say_added()
    for one in found.sources:
        with st.container(horizontal=True, vertical_alignment="center"):
            parts = (ELSEWHERE_WORDS, one.name, one.dataset, one.amount)
            notices.small(" · ".join(filter(None, parts)), f"imported_head_{one.key}")
            adding.remove(one)
        adding.keep(one)


def values(found: OpenedSets) -> OpenedSets:
    """The switch between recorded and corrected."""
    chosen = choices.buttons("Values", VALUES, "results_values", help_=VALUES_HELP)
    return replace(found, corrected=chosen != "recorded")


def show(found: OpenedSets) -> None:
    """A line per claim, then the chosen view."""
    notices.small(published_report.summary(found.files), "imported_summary")
    for claim in found.claims:
        with st.container(key=f"claim_{claim.outcome.replace(' ', '_')}_{claim.name}"):
            st.text(claim.line)
    titles = {name: title for name, (title, _) in VIEWS.items()}
    name = choices.buttons("View of recorded files", titles, "results_recorded_view", hidden=True)
    VIEWS[name][1](found)


def claims(found: OpenedSets) -> None:
    """The three claims of the benchmark's design documents beside the files' evidence."""
    shown = "corrected values" if found.corrected else "values as recorded"
    notices.small(
        "Claims about EventGPT in the benchmark's design documents, and the ratios in these files: "
        f"the other model's time divided by EventGPT's. Charts, medians and notes: {shown}. A "
        f"ratio within 10 % of a claim supports it. {published_report.PER_TOKEN}",
        "imported_claims",
    )
    for headline in found.claims:
        st.subheader(escape(headline.claim), anchor=False)
        chart = published_charts.claim(headline, found.corrected)
        parts = [*chart, *published_report.claim_blocks(headline)]
        blocks.draw(parts, f"imported_claim_{headline.name}")


def report(found: OpenedSets) -> None:
    """The report of the chosen files as a download."""
    notices.small(
        "What was claimed, what the files show, what cannot be known. The report has recorded and "
        "corrected values side by side.",
        "imported_reports",
    )
    for form, (title, mime, what) in REPORTS.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            write = published_report.page if form == "html" else published_report.markdown
            st.download_button(
                title,
                partial(write, found.files),
                f"stagescope-published.{form}",
                mime,
                key=f"imported_report_{form}",
                on_click="ignore",
                width=260,
            )
            st.caption(what)
    st.caption("From a terminal:")
    # kept sets by name; the page does not know the paths of a visit's files
    kept = [shlex.quote(one.name) for one in found.sources if one.kind == "set"]
    names = " ".join([*kept, *["FOLDER"] * (len(kept) < len(found.sources))])
    command = f"python -m engine report --imported {names} --format html --out report.html"
    st.code(command, language=None)


VIEWS: dict[str, tuple[str, Callable[[OpenedSets], None]]] = {
    "findings": ("Files and findings", audit_view.show),
    "figures": ("Figures", file_figures.show),
    "drafts": ("Acceptance", draft_view.show),
    "claims": ("Claims", claims),
    "report": ("Report", report),
}

"""Chosen sets of published files: the head, the two switches, one view at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from engine.errors import StageScopeError
from ui.published import (
    adding,
    audit_view,
    claim_view,
    draft_view,
    file_figures,
    file_list,
    opened_sets,
)
from ui.published.opened_sets import OpenedSets
from ui.results.result_sources import ELSEWHERE_WORDS, Source
from ui.widgets import notices

VIEWS: dict[str, tuple[str, Callable[[OpenedSets], None]]] = {
    "findings": ("Files and findings", audit_view.show),
    "figures": ("Figures", file_figures.show),
    "drafts": ("Acceptance", draft_view.show),
    "claims": ("Claims", claim_view.show),
    "report": ("Report", claim_view.show_report),
}
VALUES = {"corrected": "Corrected", "recorded": "As recorded"}
VALUES_HELP = (
    "As recorded: all figures as in the files. Corrected: missing tokens are added, prompts are "
    "removed from answers, contexts are counted once, warm-ups are removed from stages and totals, "
    "placeholders are shown as not measured, and models are named by the evidence. "
    "Changes all tables and charts."
)


def open_(picked: Sequence[Source]) -> OpenedSets | None:
    """The chosen sets; None with a message if one is gone."""
    try:
        return opened_sets.open_(picked)
    except StageScopeError as error:
        notices.problem(str(error), "imported_open")
        return None


def head(found: OpenedSets) -> None:
    """What was just added, the open sets, and their actions."""
    adding.say_added(found)
    for one in found.sources:
        with st.container(horizontal=True, vertical_alignment="center"):
            parts = (ELSEWHERE_WORDS, one.name, one.dataset, one.amount)
            notices.small(" · ".join(filter(None, parts)), f"imported_head_{one.key}")
            adding.remove(one)
        adding.keep(one)


def values(found: OpenedSets) -> OpenedSets:
    """The switch between recorded and corrected."""
    chosen = st.segmented_control(
        "Values",
        list(VALUES),
        default="corrected",
        required=True,
        format_func=lambda one: VALUES[one],
        key="results_values",
        bind="query-params",
        help=VALUES_HELP,
    )
    return replace(found, corrected=chosen != "recorded")


def show(found: OpenedSets) -> None:
    """A line per claim, then the chosen view."""
    notices.small(file_list.summary(found), "imported_summary")
    for claim in opened_sets.claims(found):
        with st.container(key=f"claim_{claim.outcome.replace(' ', '_')}_{claim.name}"):
            st.text(claim.line)
    name = st.segmented_control(
        "View of recorded files",
        list(VIEWS),
        default="findings",
        required=True,
        format_func=lambda one: VIEWS[one][0],
        key="results_recorded_view",
        bind="query-params",
        label_visibility="collapsed",
    )
    VIEWS[name or "findings"][1](found)

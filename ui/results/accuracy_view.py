"""Accuracy on multiple-choice questions: conclusions, a chart, the table, published figures."""

from __future__ import annotations

import streamlit as st

from engine.report import charts, choice_part
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, notices

NOTHING = (
    "No answer can be judged yet: all results failed, or the right options are not known. The "
    "counts are below."
)
LEGEND = (
    "Filled dots: measured here, with 95 % intervals where there are at least 6 sequences. Upright "
    "marks: chance."
)
HOLLOW = "Hollow squares: published figures that were not run here."


def available(opened: OpenedRuns) -> bool:
    """Whether the chosen runs have multiple-choice questions."""
    return bool((opened.table["choices"] > 0).any())


def show(opened: OpenedRuns) -> None:
    found = opened_runs.choices(opened)
    published = found.baselines.lines
    blocks.draw(list(choice_part.conclusions(found)), "results_accuracy")
    if published or any(one.accuracy for one in found.choices):
        drawn = charts.choices(found.choices, published, opened.families)
        words = charts.choice_words(found.choices, published)
        st.altair_chart(drawn, alt=words, width="stretch")
        st.caption(f"{LEGEND} {HOLLOW}" if published else LEGEND)
    if not any(one.accuracy for one in found.choices):
        notices.hint(NOTHING)
    blocks.draw(choice_part.tables(found.choices, published), "results_accuracy_table")
    with st.expander("How answers are read and counted", key="results_accuracy_meaning"):
        notices.small(choice_part.MEANING, "results_accuracy_meaning")

"""The switch "Show the known answer" and its box: reference answer and scene attributes."""

from __future__ import annotations

import streamlit as st

from engine.prompts import DEFAULT_QUESTION
from engine.types import Sample
from ui.widgets import notices
from ui.widgets.text import escape

# The switch stands beside the buttons; the box has a line of its own below them.
STYLE = """
.st-key-compare_buttons :is([data-testid="stLayoutWrapper"], .stVerticalBlock):has(
  > .st-key-compare_truth, > .stVerticalBlock > .st-key-compare_truth) { display: contents; }
.st-key-compare_buttons [data-testid="stLayoutWrapper"]:has(> .st-key-known_answer) {
  flex: 0 0 100%; }
"""


def section(sample: Sample | None, live: bool) -> None:
    """live: models run.  Then a click redraws the page, because a fragment would wait for them."""
    (_section if live else st.fragment(_section))(sample)


def _section(sample: Sample | None) -> None:
    shown = st.toggle(
        "Show the known answer",
        key="compare_truth",
        bind="query-params",
        help="The dataset's reference answer and, for demo scenes, the scene's attributes.",
    )
    if shown and sample is not None:
        with st.container(border=True, key="known_answer"):
            _box(sample)


def _box(sample: Sample) -> None:
    if not sample.truth and not sample.reference:
        st.caption("This sample has no reference answer.")
    if sample.reference:
        st.caption("Reference answer to the dataset's question:")
        notices.small(sample.question or DEFAULT_QUESTION, "reference_question")
        st.text(sample.reference)
    if sample.truth:
        st.caption("Scene attributes")
        with st.container(horizontal=True, gap="medium"):
            for name, value in sample.truth.items():
                st.metric(escape(name), escape(value), width="content")

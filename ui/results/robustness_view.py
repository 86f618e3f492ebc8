"""Accuracy and changed answers of a sweep by the strength of the change."""

from __future__ import annotations

import streamlit as st

from engine.analysis.robustness import Robustness
from engine.report import robustness_part as part
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, notices

NONE_HERE = (
    "The chosen runs are not perturbed, so there are no curves. A sweep makes them: write several "
    "strengths of one change under Perturb on the Benchmark page, as in drop:0/0.3/0.6."
)


def applies(opened: OpenedRuns) -> bool:
    """Whether one of the runs is perturbed."""
    return any(run.header.plan.perturbed for run in opened.runs)


def show(opened: OpenedRuns) -> None:
    """A chart and a table per measure."""
    found = opened_runs.robustness_of(opened)
    if found is None:
        notices.hint(NONE_HERE)
    elif found.problem:
        notices.notice(found.problem, "results_robustness_problem")
    else:
        _curves(found)


def _curves(found: Robustness) -> None:
    for measure in found.measures:
        st.subheader(part.NAMES[measure], anchor=False)
        st.altair_chart(part.chart(found, measure), alt=part.words(found, measure), width="stretch")
        with st.expander("Table", key=f"results_robustness_{measure}"):
            blocks.draw([part.table(found, measure)], f"results_robustness_{measure}")
    notices.small("\n".join(f"• {one}" for one in part.definitions(found)), "results_robustness")

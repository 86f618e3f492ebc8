"""Settings, models and machine of the runs, agreement with references, reports to download.

Boundary: shows the engine's report parts and calls its writers.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial

import streamlit as st

from engine.report import export, submission
from engine.report.document import agreement
from engine.report.export import FORMATS
from engine.report.origin_part import flow, origin
from ui.results import accuracy_view, opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.results.run_sources import RunSource
from ui.widgets import blocks, notices

KINDS = {
    "html": ("Report, one HTML file", "text/html", "With charts, readable offline, printable."),
    "md": ("Report, Markdown", "text/markdown", "The same words and tables as text."),
    "csv": ("Results, CSV", "text/csv", "One line per result."),
    "json": ("Findings, JSON", "application/json", "Counts, figures, comparisons, splits."),
    "trace": ("Trace, JSON", "application/json", "Stages and tokens, for ui.perfetto.dev."),
}
ENDINGS = {"trace": "trace.json"}


def show(opened: OpenedRuns) -> None:
    """Plans, journals, models and machine, then the tensors between the stages."""
    if not opened.runs:
        st.caption("These results were not measured here, so nothing is known about their run.")
        return
    blocks.draw(origin(opened_runs.findings(opened)), "results_origin")
    passed = replace(opened_runs.findings(opened), passages=opened_runs.flow(opened))
    blocks.draw(flow(passed), "results_flow")


def agree(opened: OpenedRuns) -> None:
    """Attribute accuracy of demo scenes, overlap with reference answers."""
    attributes, overlaps = opened_runs.scores(opened)
    if not attributes and not overlaps:
        notices.hint(
            "These runs have no reference answers and no scene attributes to compare with. A "
            "reference answer is the gpt value of a record's conversations."
        )
        return
    whole = replace(opened_runs.findings(opened), attributes=attributes, overlaps=overlaps)
    blocks.draw(agreement(whole), "results_agreement")


def reports(opened: OpenedRuns) -> None:
    """A button per format; a report is written when it is downloaded."""
    if not opened.runs:
        st.caption("Choose a run to download its reports.")
        return
    notices.small(
        "Every sentence in a report is computed from the chosen runs. With thousands of results "
        "this takes a few seconds.",
        "results_reports",
    )
    name = "-".join(run.id for run in opened.runs)
    for form in FORMATS:
        title, mime, what = KINDS[form]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.download_button(
                title,
                partial(_written, opened, form),
                f"stagescope-{name}.{ENDINGS.get(form, form)}",
                mime,
                key=f"results_report_{form}",
                on_click="ignore",
                width=260,
            )
            st.caption(what)
    if accuracy_view.available(opened):
        _submission(opened, name)
    if not any(isinstance(one, RunSource) and one.private for one in opened.sources):
        st.caption("From a terminal:")
        st.code(command(opened), language=None)


def _submission(opened: OpenedRuns, name: str) -> None:
    """The answers to multiple-choice questions, only for runs that have such questions."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Answers, JSON",
            lambda: "".join(submission.pieces(opened.runs)),
            f"stagescope-{name}.answers.json",
            "application/json",
            key="results_report_submission",
            on_click="ignore",
            width=260,
        )
        st.caption("One object per multiple-choice question and model: the letter and the answer.")


def _written(opened: OpenedRuns, form: str) -> str:
    return "".join(export.write(opened.runs, form))


def command(opened: OpenedRuns) -> str:
    runs = " ".join(shlex.quote(run.folder.name) for run in opened.runs)
    return f"python -m engine report {runs} --format html --out report.html"

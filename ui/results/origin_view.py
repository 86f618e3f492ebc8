"""Settings, models and machine of the runs, agreement with references, reports to download."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial

import streamlit as st

from engine.report import export
from engine.report.document import agreement
from engine.report.export import FORMATS
from engine.report.origin_part import flow, origin
from ui.results import accuracy_view, opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, notices

# Format: title, MIME type, content, end of the file's name.
KINDS = {
    "html": ("Report, one HTML file", "text/html", "With charts, readable offline, printable.",
             "html"),
    "md": ("Report, Markdown", "text/markdown", "The same words and tables as text.", "md"),
    "csv": ("Results, CSV", "text/csv", "One line per result.", "csv"),
    "json": ("Findings, JSON", "application/json", "Counts, figures, comparisons, splits.", "json"),
    "trace": ("Trace, JSON", "application/json", "Stages and tokens, for ui.perfetto.dev.",
              "trace.json"),
    "submission": ("Answers, JSON", "application/json",
                   "One object per multiple-choice question and model: the letter and the answer.",
                   "answers.json"),
}  # fmt: skip


def show(opened: OpenedRuns) -> None:
    """Plans, journals, models and machine, then the tensors between the stages."""
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
    notices.small(
        "Every sentence in a report is computed from the chosen runs. With thousands of results "
        "this takes a few seconds.",
        "results_reports",
    )
    name = "-".join(run.id for run in opened.runs)
    more = ["submission"] if accuracy_view.available(opened) else []
    for form in (*FORMATS, *more):
        title, mime, what, ending = KINDS[form]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.download_button(
                title,
                partial(_written, opened, form),
                f"stagescope-{name}.{ending}",
                mime,
                key=f"results_report_{form}",
                on_click="ignore",
                width=260,
            )
            st.caption(what)
    if not any(source.private for source in opened.sources):
        st.caption("From a terminal:")
        runs = shlex.join(run.folder.name for run in opened.runs)
        command = f"python -m engine report {runs} --format html --out report.html"
        st.code(command, language=None)


def _written(opened: OpenedRuns, form: str) -> str:
    if form == "submission":
        return "".join(export.submission(opened.runs))
    return "".join(export.write(opened.runs, form))

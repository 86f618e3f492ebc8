"""The views that show the engine's blocks: accuracy, robustness, references, what ran, reports."""

import shlex
from functools import partial

import streamlit as st

from engine import settings
from engine.report import bundle, charts, choice_part
from engine.report import export as documents
from engine.report import robustness_part as curves
from engine.report.document import agreement
from engine.report.origin_part import flow, origin
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, notices

NOTHING = (
    "No answer can be judged yet: all results failed, or the right options are not known. The "
    "counts are below."
)
LEGEND = "Dots have 95 % intervals where there are at least 6 sequences. Upright marks: chance."
NO_REFERENCE = (
    "These runs have no reference answers and no scene attributes to compare with. A "
    "reference answer is the gpt value of a record's conversations."
)
KINDS = {  # format, which also ends the file's name: title, MIME type, content
    "html": ("Report, one HTML file", "text/html", "With charts, readable offline, printable."),
    "zip": (
        "Bundle, ZIP",
        "application/zip",
        "Answers, pictures and clips: unpacked, its index.html opens anywhere.",
    ),
    "md": ("Report, Markdown", "text/markdown", "The same words and tables as text."),
    "csv": ("Results, CSV", "text/csv", "One line per result."),
    "parquet": ("Results, Parquet", "application/vnd.apache.parquet", "The same lines, typed."),
    "json": ("Findings, JSON", "application/json", "Counts, figures, comparisons, splits."),
}


def has_choices(opened: OpenedRuns) -> bool:
    return bool((opened.table["choices"] > 0).any())


def accuracy(opened: OpenedRuns) -> None:
    found = opened_runs.findings(opened)
    blocks.draw(list(choice_part.conclusions(found)), "results_accuracy")
    if any(one.accuracy for one in found.choices):
        words = charts.choice_words(found.choices)
        st.altair_chart(charts.choices(found.choices, opened.families), alt=words)
        st.caption(LEGEND)
    else:
        notices.hint(NOTHING)
    blocks.draw([choice_part.table(found.choices)], "results_accuracy_table")
    with st.expander("How answers are read and counted", key="results_accuracy_meaning"):
        notices.small(choice_part.MEANING, "results_accuracy_meaning")


def robustness(opened: OpenedRuns) -> None:
    found = opened_runs.findings(opened).robustness
    if found is None:  # no run is perturbed
        return
    if found.problem:
        notices.notice(found.problem, "results_robustness_problem")
        return
    for measure in found.measures:
        key = f"results_robustness_{measure}"
        st.subheader(f"{curves.NAMES[measure]} by strength of the change", anchor=False)
        words = curves.words(found, measure)
        st.altair_chart(curves.chart(found, measure), alt=words)
        with st.expander("Table", key=key):
            blocks.draw([curves.table(found, measure)], key)
    lines = [f"• {definition}" for definition in curves.definitions(found)]
    notices.small("\n".join(lines), "results_robustness")


def references(opened: OpenedRuns) -> None:
    found = opened_runs.findings(opened)
    blocks.draw(agreement(found), "results_agreement")
    others = has_choices(opened) or found.robustness
    if not (found.attributes or found.overlaps or others):
        notices.hint(NO_REFERENCE)


def export(opened: OpenedRuns) -> None:
    """A button per format; then plans, journals, models, machine, and the tensors."""
    notices.small(
        "Every sentence in a report is computed from the chosen runs. With thousands of results "
        "this takes a few seconds.",
        "results_reports",
    )
    name = "-".join(run.id for run in opened.runs)
    blocks.downloads(KINDS, partial(_written, opened), f"stagescope-{name}", "results_report")
    if not any(source.private for source in opened.sources):
        st.caption("From a terminal:")
        runs = shlex.join(run.folder.name for run in opened.runs)
        command = f"{settings.COMMAND} report {runs} --format html --out report.html"
        st.code(command, language=None)
    found = opened_runs.findings(opened)
    blocks.draw(origin(found), "results_origin")
    blocks.draw(flow(found), "results_flow")


def _written(opened: OpenedRuns, form: str) -> bytes:
    return bundle.zipped(opened.runs) if form == "zip" else documents.data(opened.runs, form)

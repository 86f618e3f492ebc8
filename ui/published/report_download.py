"""The report of the chosen files as a download, and its command for a terminal.

Boundary: the engine writes the report.
"""

from __future__ import annotations

import shlex
from functools import partial

import streamlit as st

from engine.published.claims import published_report as imported_report
from ui.published.opened_sets import OpenedSets
from ui.widgets import notices

KINDS = {
    "html": ("Report, one HTML file", "text/html", "Readable offline, printable."),
    "md": ("Report, Markdown", "text/markdown", "The same text and tables."),
}


def show(found: OpenedSets) -> None:
    notices.small(
        "What was claimed, what the files show, what cannot be known. The report has recorded and "
        "corrected values side by side.",
        "imported_reports",
    )
    for form, (title, mime, what) in KINDS.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.download_button(
                title,
                partial(written, found, form),
                f"stagescope-published.{form}",
                mime,
                key=f"imported_report_{form}",
                on_click="ignore",
                width=260,
            )
            st.caption(what)
    st.caption("From a terminal:")
    st.code(command(found), language=None)


def written(found: OpenedSets, form: str) -> str:
    write = imported_report.page if form == "html" else imported_report.markdown
    return write(found.files)


def command(found: OpenedSets) -> str:
    """Kept sets by name; the page does not know the paths of a visit's files."""
    kept = [shlex.quote(one.name) for one in found.sources if one.kind == "set"]
    other = ["FOLDER"] if len(kept) < len(found.sources) else []
    names = " ".join([*kept, *other])
    return f"python -m engine report --imported {names} --format html --out report.html"

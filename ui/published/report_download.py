"""The report of the chosen files, to read elsewhere.

Boundary: the engine writes; this offers it for download and says how to get it in a terminal.
"""

from __future__ import annotations

import shlex
from functools import partial

import streamlit as st

from engine.published.claims import published_report as imported_report
from ui.published.opened_sets import OpenedSets
from ui.results.set_sources import SetSource
from ui.widgets import notices

KINDS = {
    "html": ("Report, one HTML file", "text/html", "Readable offline, printable."),
    "md": ("Report, Markdown", "text/markdown", "The same words and tables as text."),
}


def show(found: OpenedSets) -> None:
    notices.small(
        "What was claimed, what the files show, what cannot be known; recorded and corrected "
        "values stand beside each other in it.",
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
    """Kept sets by name; files of a visit have no path that the page knows."""
    kept = [shlex.quote(one.name) for one in found.sources if isinstance(one, SetSource)]
    other = ["FOLDER"] if len(kept) < len(found.sources) else []
    names = " ".join([*kept, *other])
    return f"python -m engine report --imported {names} --format html --out report.html"

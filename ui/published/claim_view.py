"""The three claims of the benchmark's design documents beside the files' evidence, and the report
of the chosen files as a download."""

from __future__ import annotations

import shlex
from functools import partial

import streamlit as st

from engine.published.claims import published_report
from engine.published.claims.evidence import PER_TOKEN
from ui.charts import published_charts
from ui.published import opened_sets
from ui.published.opened_sets import OpenedSets
from ui.widgets import blocks, notices
from ui.widgets.text import escape

REPORTS = {
    "html": ("Report, one HTML file", "text/html", "Readable offline, printable."),
    "md": ("Report, Markdown", "text/markdown", "The same text and tables."),
}


def show(found: OpenedSets) -> None:
    values = "corrected values" if found.corrected else "values as recorded"
    notices.small(
        "Claims about EventGPT in the benchmark's design documents, and the ratios in these files: "
        f"the other model's time divided by EventGPT's. Charts, medians and notes: {values}. A "
        f"ratio within 10 % of a claim supports it. {PER_TOKEN}",
        "imported_claims",
    )
    for headline in opened_sets.claims(found):
        st.subheader(escape(headline.claim), anchor=False)
        if len(published_charts.ratios(headline, found.corrected)):
            st.altair_chart(
                published_charts.claim(headline, found.corrected),
                alt=published_charts.claim_words(headline, found.corrected),
                width="stretch",
            )
        blocks.draw(published_report.claim_blocks(headline), f"imported_claim_{headline.name}")


def show_report(found: OpenedSets) -> None:
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

"""The three claims of the benchmark's design documents, each beside the files' evidence.

Boundary: engine.published.claims.headlines in, charts and tables out.
"""

from __future__ import annotations

import streamlit as st

from engine.published.claims.confounds import PER_TOKEN
from engine.published.claims.headlines import Evidence, Headline
from engine.quoting import NONE, times
from engine.report.blocks import ReportTable
from ui.charts import published_charts
from ui.published import opened_sets
from ui.published.opened_sets import OpenedSets
from ui.widgets import blocks, notices
from ui.widgets.text import escape

COLUMNS = ("file", "against", "notes", "n", "ratio of means", "median over clips (95 %)")


def show(found: OpenedSets) -> None:
    values = "corrected values" if found.corrected else "values as recorded"
    notices.small(
        "Claims about EventGPT in the benchmark's design documents, and the ratios in these files "
        f"({values}): the other model's time divided by EventGPT's. A ratio within 10 % of a claim "
        f"supports it. {PER_TOKEN}",
        "imported_claims",
    )
    for headline in opened_sets.claims(found):
        st.subheader(escape(headline.claim), anchor=False)
        st.text(headline.verdict)
        if headline.evidence:
            _evidence(headline, found.corrected)
        if headline.without:
            blocks.draw([absent(headline)], f"imported_without_{headline.name}")


def _evidence(headline: Headline, corrected: bool) -> None:
    if published_charts.ratios(headline, corrected):
        st.altair_chart(
            published_charts.claim(headline, corrected),
            alt=published_charts.claim_words(headline, corrected),
            width="stretch",
        )
    blocks.draw([table(headline, corrected)], f"imported_claim_{headline.name}")


def absent(headline: Headline) -> ReportTable:
    """The files without evidence for a claim, by reason."""
    rows = tuple((one.reason, ", ".join(one.files)) for one in headline.without)
    return ReportTable("Files without evidence", ("reason", "files"), rows, 2)


def table(headline: Headline, corrected: bool) -> ReportTable:
    rows = tuple(_row(one, corrected) for one in headline.evidence)
    return ReportTable("File by file", COLUMNS, rows, 3)


def _row(one: Evidence, corrected: bool) -> tuple[str, ...]:
    ratio, span = one.ratio(corrected), one.paired
    return (
        one.file,
        one.other,
        "; ".join(one.notes) or NONE,
        one.amount,
        times(ratio),
        times(span.median, (span.low, span.high)) if span else NONE,
    )

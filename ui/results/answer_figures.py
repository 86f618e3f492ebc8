"""The figures of one answer: badges that qualify its times, and the times.

A sample of a batch shows the batch's times, marked as such.
"""

from __future__ import annotations

import streamlit as st

from engine.analysis.compared import RunRange
from engine.report import answer_part
from engine.report.answer_part import FORMULAS
from engine.storage.result_rows import ResultRow
from ui.compare import trust_badges
from ui.compare.trust_badges import BATCH_HELP
from ui.widgets import notices
from ui.widgets.text import ms

COLUMNS = {"New tokens": "new_tokens", "TTFT": "ttft_ms", "TPOT": "tpot_ms", "Total": "total_ms"}


def draw(label: str, row: ResultRow) -> None:
    """Badges, then figures with their units."""
    with st.container(horizontal=True, gap="small"):
        for words, colour, help_text in trust_badges.badges(row):
            st.badge(words, color=colour, help=help_text)
    batch, shown = row.batch > 1, dict[str, tuple[str, str]]()
    for name, column in COLUMNS.items():
        if not batch or name == "New tokens":
            value = getattr(row, column)
            spread = None if value is None else RunRange(value, value, value, 1)
            shown[name] = answer_part.figure(name, spread).words, FORMULAS[name]
    if batch:
        shown[f"Batch of {row.batch:,}"] = ms(row.batch_ms), BATCH_HELP
    with st.container(horizontal=True, gap="small"):
        for name, (text, formula) in shown.items():
            st.metric(name, text, help=formula, width="content")
    stages = answer_part.stages(row.batch_spans if batch else row.spans) or "no stage was recorded"
    notices.small(f"{'Whole batch: ' if batch else ''}{stages}.", f"result_stages_{label}")
    if row.where is not None and row.where.node:  # a result of a cluster
        host = f"{row.where.host}, " if row.where.host else ""
        where = f"Ran on {host}node {row.where.node}, worker {row.where.actor}: {row.device}."
        notices.small(where, f"result_place_{label}")

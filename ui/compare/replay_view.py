"""The replay of a finished comparison, in HTML without scripts."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.analysis.compared import ComparedModel
from engine.storage.result_rows import ResultRow
from ui.compare import cards

HELP = (
    "Plays the newest run of each model at its recorded times: stages, tokens and totals appear "
    "when they did, at full speed or slower."
)


def section(compared: Sequence[ComparedModel], live: bool) -> None:
    """A switch that opens the replay; nothing while models run or without a result."""
    if not compared:
        cards.place(live=True)
        return
    from engine.report import replay  # reports import much, which the first page does not need

    rows = [(model.label, ResultRow.from_result(model.last)) for model in compared]
    found = [replay.lane(label, row) for label, row in rows]
    lanes = [lane for lane in found if lane is not None]
    with cards.place(live or not lanes):
        if live or not lanes:
            return
        if st.toggle("Replay", key="compare_replay", bind="query-params", help=HELP):
            st.html(replay.section(lanes))

"""The figures of one answer: badges that qualify its times, and the times.

A sample of a batch shows the batch's times, marked as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.analysis.compared import RunRange
from engine.media_options import COUNT_SPLIT
from engine.report import answer_part
from engine.report.answer_part import FORMULAS, STOPS
from engine.storage.result_rows import ResultRow
from engine.storage.schemas import Standing
from engine.verify import certificates
from ui.compare import trust_badges
from ui.compare.trust_badges import Badge
from ui.widgets import notices
from ui.widgets.text import escape, ms

COLUMNS = {"New tokens": "new_tokens", "TTFT": "ttft_ms", "TPOT": "tpot_ms", "Total": "total_ms"}


def draw(label: str, line: Mapping[str, Any], whole: ResultRow | None) -> None:
    """Badges, then figures with their units."""
    with st.container(horizontal=True, gap="small"):
        for words, colour, help_text in badges(line):
            st.badge(words, color=colour, help=help_text)
    batch = line["batch"] > 1
    shown = {name: (answer_part.figure(name, _spread(line[column])).words, FORMULAS[name])
             for name, column in COLUMNS.items() if not batch or name == "New tokens"}  # fmt: skip
    if batch:
        shown[f"Batch of {line['batch']:,}"] = ms(_known(line["batch_ms"])), BATCH_HELP
    with st.container(horizontal=True, gap="small"):
        for name, (value, formula) in shown.items():
            st.metric(name, value, help=formula, width="content")
    spans = (whole.batch_spans if batch else whole.spans) if whole else {}
    stages = answer_part.stages(spans) or "no stage was recorded"
    stop = STOPS.get(str(line["stop"]), "")
    head = "Whole batch: " if batch else ""
    notices.small(f"{head}{stages}. {stop}".strip(), f"result_stages_{label}")
    if line.get("node"):  # a result of a cluster
        host = f"{line['host']}, " if line["host"] else ""
        where = f"Ran on {host}node {line['node']}, worker {line['actor']}: {line['device']}."
        notices.small(where, f"result_place_{label}")
    for number, note in enumerate((whole and whole.notes) or ()):
        notices.small(note, f"result_note_{label}_{number}")


def _known(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _spread(value: Any) -> RunRange | None:
    known = _known(value)
    return None if known is None else RunRange(known, known, known, 1)


def badges(line: Mapping[str, Any]) -> list[Badge]:
    """Certificate, cache, cold, pause, mode: all that affects how to read the times."""
    command = certificates.command(str(line["model"]), str(line["backend"]), str(line["pixels"]))
    window, split, perturb = (
        escape(str(line[name] or "")) for name in ("window", "split", "perturb")
    )
    batch, group = line["batch"], line["group"]
    rules: list[tuple[bool, Badge]] = [
        (line["cached"], ("from cache", "green", trust_badges.CACHE_HELP)),
        (group == "cold", trust_badges.COLD),
        (group == "after a pause", ("after a pause", "orange", PAUSE_HELP)),
        (batch > 1, (f"in a batch of {batch:,}", "gray", BATCH_HELP)),
        (line["mode"] == "hooked", trust_badges.HOOKED),
        (line["backend"] == "compiled", trust_badges.COMPILED),
        (line["pixels"] == "fast", trust_badges.FAST),
        (window != "", (f"window {window}", "gray", WINDOW_HELP)),
        (line["split"] != str(COUNT_SPLIT), (f"split {split}", "gray", SPLIT_HELP)),
        (perturb != "", (f"perturbed by {perturb}", "violet", PERTURB_HELP)),
    ]
    certificate = trust_badges.certificate_badge(standing_of(line), command)
    return [certificate, *(badge for applies, badge in rules if applies)]


def standing_of(line: Mapping[str, Any]) -> Standing:
    """Whether a certificate covers a line of the table."""
    missing = tuple(filter(None, str(line["missing"] or "").split(", ")))
    return Standing(line["standing"], str(line["verified"] or ""), missing)


BATCH_HELP = (
    "Answered in one batch with other samples: the times are those of the whole batch. This sample "
    "was not timed alone."
)
WINDOW_HELP = (
    "START+LENGTH of the part of the recording that was asked for. Event images drawn from raw "
    "events show only its events."
)
SPLIT_HELP = (
    "How event images are drawn from raw events: a rule (count: equal numbers of events, time: "
    "equal times, densest: the densest 25 ms of equal times) and a number. The default is count:5."
)
PERTURB_HELP = (
    "The events or frames were changed before the model saw them: this answer is no measure of the "
    "unchanged sample."
)
PAUSE_HELP = "Another job used the device just before: this result is left out of the figures."

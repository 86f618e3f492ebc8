"""The figures of one answer: badges that qualify its times, and the times.

A sample of a batch shows the batch's times, marked as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.media_options import COUNT_SPLIT
from engine.storage.result_rows import ResultRow
from engine.storage.schemas import Standing
from engine.types import STAGES
from engine.verify import certificates
from ui.compare import card_figures, cards, trust_badges
from ui.compare.trust_badges import Badge
from ui.widgets import notices
from ui.widgets.text import escape, ms


def draw(label: str, line: Mapping[str, Any], whole: ResultRow | None) -> None:
    """Badges, then figures with their units."""
    with st.container(horizontal=True, gap="small"):
        for words, colour, help_text in badges(line):
            st.badge(words, color=colour, help=help_text)
    with st.container(horizontal=True, gap="small"):
        for name, value in figures(line):
            formula = BATCH_HELP if name.startswith("Batch") else card_figures.FORMULAS.get(name)
            st.metric(name, value, help=formula, width="content")
    stages = batch_stages(whole) if line["batch"] > 1 else _stages(line)
    stop = cards.STOPS.get(str(line["stop"]), "")
    notices.small(f"{stages}. {stop}".strip(), f"result_stages_{label}")
    if where := place(line):
        notices.small(where, f"result_place_{label}")
    for number, note in enumerate((whole and whole.notes) or ()):
        notices.small(note, f"result_note_{label}_{number}")


def place(line: Mapping[str, Any]) -> str:
    """Where a result of a cluster was computed; "" for other results."""
    if not line.get("node"):
        return ""
    host = f"{line['host']}, " if line["host"] else ""
    return f"Ran on {host}node {line['node']}, worker {line['actor']}: {line['device']}."


def figures(line: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The large figures: the sample's own, or its tokens and the batch's time."""
    tokens = ("New tokens", f"{_known(line['new_tokens']) or 0:,.0f}")
    if line["batch"] > 1:
        whole = _known(line["batch_ms"])
        return [tokens, (f"Batch of {line['batch']:,}", ms(whole))]
    times = {"TTFT": "ttft_ms", "TPOT": "tpot_ms", "Total": "total_ms"}
    return [tokens, *((name, ms(_known(line[column]))) for name, column in times.items())]


def _stages(line: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {ms(line[f'{name}_ms'])}{_source(line, name)}"
        for name in STAGES
        if _known(line[f"{name}_ms"]) is not None
    )


def batch_stages(whole: ResultRow | None) -> str:
    """The stage times of the whole batch."""
    spans = whole.batch_spans if whole else {}
    times = [f"{name} {ms(span.ms)}" for name in STAGES if (span := spans.get(name))]
    return f"Whole batch: {', '.join(times) or 'no stage was recorded'}"


def _known(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _source(line: Mapping[str, Any], stage: str) -> str:
    source = line[f"{stage}_source"]
    return "" if source == "measured" else f" ({source})"


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

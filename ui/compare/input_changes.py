"""Says that the chosen inputs differ from those of the shown runs, and offers Run beside it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.types import OPTIONS, RunRequest, Sample, value_of
from ui.widgets import contact_sheets
from ui.widgets.text import name_of

RUN = "compare_run_changed"
DIMMED = ".st-key-compare_board { opacity: 0.85; filter: grayscale(1); }"


def changes(
    shown: Sequence[RunRequest], sample: Sample | None, chosen: Sequence[RunRequest]
) -> tuple[str, ...]:
    """What differs between the requests of the shown runs and the chosen ones, in words.

    `chosen` is empty if nothing can be run; then the question and the settings are not compared.
    """
    if not shown:
        return ()
    first, found = shown[0], []
    if sample != first.sample:
        found.append("sample")
    if chosen and chosen[0].prompt != first.prompt:
        found.append("question")
    if {one.model for one in chosen} != {one.model for one in shown}:
        found.append("models")
    by_model = {one.model: one for one in shown}
    pairs = [(by_model[one.model], one) for one in chosen if one.model in by_model]
    names = dict.fromkeys(name for pair in pairs for name in _settings(*pair))
    return (*found, *names)


def _settings(one: RunRequest, other: RunRequest) -> list[str]:
    """The settings in which two requests differ."""
    found = [
        described.title.lower()
        for name, described in OPTIONS.items()
        if value_of(one, name) != value_of(other, name)
    ]
    return [*found, *(["prompt prefix"] if one.prefix != other.prefix else [])]


def banner(found: Sequence[str], sample: Sample | None, ready: bool) -> None:
    """The sentence, a preview of a newly chosen sample, and Run, which the page handles.

    Without changes it takes no room.
    """
    if not found:
        st.empty()
        return
    with st.container(key="notice_changed", horizontal=True, vertical_alignment="center"):
        picture = contact_sheets.preview(sample) if sample and "sample" in found else None
        if picture is not None and sample is not None:
            st.image(picture, width=96, alt=f"Preview of the newly chosen {name_of(sample)}.")
        st.text(sentence(found, sample))
        st.button("Run", key=RUN, type="primary", disabled=not ready)


def sentence(found: Sequence[str], sample: Sample | None) -> str:
    """What was changed, and that the results do not show it."""
    new = f" The new sample is {name_of(sample)}." if sample and "sample" in found else ""
    return f"Changed since these runs: {', '.join(found)}.{new} Press Run to update the answers."

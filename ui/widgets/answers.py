"""One answer in a bordered card, wherever a page shows one.  A model's text is shown literally."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.palette import TONES
from engine.prompts import OFF_SCRIPT
from engine.report.answer_part import STOPS
from ui.widgets import notices


def frame(tone: str, key: str) -> DeltaGenerator:
    """A bordered box with the column's colour at its upper edge; gray for an unknown tone."""
    return st.container(border=True, key=f"card_{tone if tone in TONES else 'other'}_{key}")


def text(words: str, key: str) -> None:
    """The whole answer; a long one scrolls."""
    st.container(key=f"answer_{key}").text(words or " ")


def remarks(stop: str, off_script: bool | None, key: str, more: Iterable[str] = ()) -> None:
    """What has to be known to read the answer: whether it means anything and why it ended."""
    if off_script:
        notices.notice(OFF_SCRIPT, f"off_script_{key}")
    for number, remark in enumerate(filter(None, (STOPS.get(stop, ""), *more))):
        notices.small(remark, f"note_{key}_{number}")

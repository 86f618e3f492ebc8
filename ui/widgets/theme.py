"""The pages' CSS, in one element that is drawn before all others.

Streamlit keeps pure style sheets in the place where it puts dialogs: one that comes later would be
replaced by a dialog, and the page would lose its look.
A model's colour marks its card's edge and always appears beside its name.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from engine.palette import HEAT_COLOURS, NEUTRAL, TONES
from engine.viewing import seen_markup

ICON = Path(__file__).resolve().parents[1] / "icon.png"
LOGO = ICON.with_name("logo.svg")
_STYLE = ICON.with_name("style.css")


def apply() -> None:
    """Put the style sheets on the page; they contain constants only."""
    edges = "".join(
        f'[class*="st-key-card_{tone}_"] {{ border-top: 4px solid {colour}; '
        f"--family: {colour}; }}\n"
        for tone, colour in {**TONES, "other": NEUTRAL}.items()
    )
    heat = "".join(f"--heat-{name}: {colour};" for name, colour in HEAT_COLOURS.items())
    own = _STYLE.read_text(encoding="utf-8")
    st.html(f"<style>.stApp {{{heat}}}\n{own}{seen_markup.STYLE}{edges}</style>")

"""Colours, the fixed order of stages and families, and the little CSS the pages need.

Boundary: constants and one function; the colours themselves are the engine's, which draws reports
with them too.  The model colours mark a card's edge and always stand beside a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from engine.palette import FAMILY_COLOURS, OTHER_FAMILY, STAGE_COLOURS, UNACCOUNTED, family_colour
from engine.types import STAGES

__all__ = [
    "FAMILY_COLOURS",
    "ICON",
    "LOGO",
    "OTHER_FAMILY",
    "PARTS",
    "STAGE_COLOURS",
    "STAGE_MEANING",
    "UNACCOUNTED",
    "apply",
    "family_colour",
]

ICON = Path(__file__).with_name("icon.png")
LOGO = Path(__file__).with_name("logo.svg")
PARTS: tuple[str, ...] = (*STAGES, UNACCOUNTED)
STAGE_MEANING: Mapping[str, str] = {
    "load": "read the files, choose the frames",
    "preprocess": "resize, normalise, tokenise",
    "vision": "encode the pictures, project them for the language model",
    "decode": "embed, prefill and produce the tokens",
    UNACCOUNTED: "what the four stages do not cover",
}
_STYLE = """
.stMainBlockContainer { padding: 4rem 2.5rem 3rem; max-width: 1800px; }
[data-testid="stSidebarHeader"] { height: 3.4rem; margin-bottom: 0; }
/* "Stop" would stop the drawing, not the runs: Cancel does that. */
[data-testid="stStatusWidget"] { display: none; }
[class*="st-key-small"] [data-testid="stText"] { font-size: 0.84rem; opacity: 0.8; }
[class*="st-key-small_subject"] [data-testid="stText"] { max-height: 7em; overflow: auto; }
[class*="st-key-seen"] { min-height: 11rem; }
[class*="st-key-small_seen"] { min-height: 2.6rem; }
[class*="st-key-problem"] { border-left: 4px solid #C8453B; background: #C8453B14;
  padding: 0.5rem 0.75rem; border-radius: 0.25rem; }
[class*="st-key-notice"] { border-left: 4px solid #C9820A; background: #C9820A14;
  padding: 0.5rem 0.75rem; border-radius: 0.25rem; }
[class*="st-key-problem"] [data-testid="stText"], [class*="st-key-notice"] [data-testid="stText"] {
  font-size: 0.9rem; overflow-wrap: anywhere; }
[class*="st-key-hint"] { padding: 1.2rem 1.4rem; max-width: 44rem; }
[class*="st-key-answer"] [data-testid="stText"] { line-height: 1.55; overflow-wrap: anywhere; }
[class*="st-key-card"] [data-testid="stMetric"] label { font-size: 0.8rem; }
"""


def apply() -> None:
    """Put the style sheet on the page; constants only, nothing from outside enters it."""
    edges = "".join(
        f'[class*="st-key-card_{family}_"] {{ border-top: 4px solid {colour}; }}\n'
        for family, colour in {**FAMILY_COLOURS, "other": OTHER_FAMILY}.items()
    )
    st.html(f"<style>{_STYLE}{edges}</style>")

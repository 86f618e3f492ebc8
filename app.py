"""StageScope: page set-up and navigation.  Boundary: the page contents are in pages/.  torch and
transformers are imported by the engine's worker thread, after the first page is drawn."""

from pathlib import Path

import streamlit as st
from streamlit import net_util

from engine.palette import HEAT_COLOURS, NEUTRAL, TONES
from engine.viewing import seen_markup
from ui.widgets import followed_runs, preparation

UI = Path(__file__).resolve().parent / "ui"
# Known, or Streamlit asks a server outside for it when a page of another origin connects.
net_util._external_ip = "127.0.0.1"
st.set_page_config("StageScope", UI / "icon.png", layout="wide", initial_sidebar_state="auto")
st.logo(UI / "logo.svg", size="large")
# A model's colour marks its card's edge and always appears beside its name.
edges = "".join(
    f'[class*="st-key-card_{tone}_"] {{ border-top: 4px solid {colour}; --family: {colour}; }}\n'
    for tone, colour in {**TONES, "other": NEUTRAL}.items()
)
heat = "".join(f"--heat-{name}: {colour};" for name, colour in HEAT_COLOURS.items())
own = (UI / "style.css").read_text(encoding="utf-8")
# One element before all others: Streamlit keeps pure style sheets in the place where it puts
# dialogs, so a later one would be replaced by a dialog, and the page would lose its look.
st.html(f"<style>.stApp {{{heat}}}\n{own}{seen_markup.STYLE}{edges}</style>")
st.session_state[preparation.APP] = True
page = st.navigation(
    [
        st.Page("pages/compare.py", title="Compare", default=True),
        st.Page("pages/verify.py", title="Verify"),
        st.Page("pages/benchmark.py", title="Benchmark"),
        st.Page("pages/results.py", title="Results"),
        st.Page("pages/published.py", title="Published files"),
        st.Page("pages/models.py", title="Models"),
    ],
    position="top",
)
if page.title != "Compare":
    followed_runs.keep_alive()
page.run()
preparation.warm_up()

"""StageScope: page set-up and navigation.

Boundary: the page contents are in pages/.  torch and transformers are imported by the engine's
worker thread, after the first page is drawn.
"""

import streamlit as st
from streamlit import net_util

from ui.widgets import preparation, theme

# Known, or Streamlit asks a server outside for it when a page of another origin connects.
net_util._external_ip = "127.0.0.1"
st.set_page_config("StageScope", theme.ICON, layout="wide", initial_sidebar_state="auto")
st.logo(theme.LOGO, size="large")
theme.apply()
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
page.run()
preparation.warm_up()

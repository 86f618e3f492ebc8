"""Runs app.py first, even if the first visit of a server opens a page's link.

Boundary: one switch of Streamlit.  Until app.py has called st.navigation, Streamlit treats the
folder "pages" as an old-style app and runs a linked page without app.py.
"""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager


def through_app() -> None:
    """Reruns through app.py if it has not run yet: it sets style, navigation and page layout."""
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False  # st.navigation does the same
        st.rerun()

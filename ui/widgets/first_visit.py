"""Every visit goes through app.py, also the first one of a server that starts at a page's link.

Boundary: one switch of Streamlit's.  Until app.py has called st.navigation once, Streamlit takes a
folder named pages for its older kind of app and runs a linked page without app.py around it.
"""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager


def through_app() -> None:
    """Starts over if app.py has not run: it has the style, the navigation and the page's set-up."""
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False  # as st.navigation sets it
        st.rerun()

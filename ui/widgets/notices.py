"""Sentences on a page: a detail, a problem, a notice, a hint.

Boundary: every sentence goes through st.text, which shows each character as it is.
"""

from __future__ import annotations

import streamlit as st


def small(text: str, key: str) -> None:
    """Plain text in small letters."""
    with st.container(key=f"small_{key}"):
        st.text(text)


def problem(text: str, key: str) -> None:
    """A sentence about what went wrong, as plain text."""
    with st.container(key=f"problem_{key}"):
        st.text(text)


def notice(text: str, key: str) -> None:
    """A sentence to keep in mind, as plain text."""
    with st.container(key=f"notice_{key}"):
        st.text(text)


def hint(text: str) -> None:
    """What to do on a page that has nothing to show yet."""
    with st.container(border=True, key="hint"):
        st.text(text)

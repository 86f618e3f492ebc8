"""Messages on a page.  All text goes through st.text, which shows every character literally."""

from __future__ import annotations

import streamlit as st


def small(text: str, key: str) -> None:
    """A detail in small letters."""
    with st.container(key=f"small_{key}"):
        st.text(text)


def problem(text: str, key: str) -> None:
    with st.container(key=f"problem_{key}"):
        st.text(text)


def notice(text: str, key: str) -> None:
    """A warning or note."""
    with st.container(key=f"notice_{key}"):
        st.text(text)


def ended(state: str, text: str, key: str) -> None:
    """Why a job has no result: an error if it failed, otherwise a note."""
    (problem if state == "failed" else notice)(text, key)


def hint(text: str) -> None:
    """What to do on a page that has nothing to show yet."""
    with st.container(border=True, key="hint"):
        st.text(text)

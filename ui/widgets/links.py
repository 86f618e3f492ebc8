"""What a link names: ids that a page keeps; invalid numbers are dropped, unknown names reported.
Streamlit silently drops a value that is not an option, and fails on text in place of a number."""

import re
from collections.abc import Iterable

import streamlit as st
from streamlit.runtime.state import get_session_state

from ui.widgets import notices

_NUMBER = re.compile(r"-?\d{1,10}(\.\d{1,6})?")
_LINK = "named_in_link"  # in the session: names by widget, as the link had them at first


def ids(key: str, most: int) -> list[str]:
    """The first `most` ids of the link, each once, otherwise of the session."""
    linked = list(dict.fromkeys(st.query_params.get_all(key)))[:most]
    kept: list[str] = st.session_state.setdefault(key, linked)
    if kept and not linked:
        st.query_params[key] = kept  # another page has cleared the URL
    elif linked != kept:
        st.session_state[key] = kept = linked  # Back, Forward, a link from another page
    return kept


def put(key: str, chosen: list[str]) -> None:
    st.session_state[key] = st.query_params[key] = chosen


def to_results(label: str, runs: str | list[str], **more: str) -> None:
    query: dict[str, str | list[str]] = {"results_runs": runs, **more}
    st.page_link("pages/results.py", label=label, query_params=query)


def check_number(key: str) -> None:
    """Before a widget for a number is drawn: drop its value in the link if it is none."""
    if not all(map(_NUMBER.fullmatch, st.query_params.get_all(key))):
        with get_session_state().query_params() as parameters:  # only here it can be deleted
            parameters.remove_param(key)
        st.rerun()  # this rerun has already read the link


def _asked(name: str) -> list[str]:
    """The names in the link before the widget was first drawn, which drops unknown ones."""
    link: dict[str, list[str]] = st.session_state.setdefault(_LINK, {})
    return link.setdefault(name, list(st.query_params.get_all(name)))


def say_unknown(name: str, known: Iterable[str], what: str) -> None:
    unknown = [text for text in _asked(name) if text not in set(known)]
    if unknown:
        named = f"The {what} {unknown[0][:80]!r} in the link"
        notices.notice(f"{named} is not available here: check the selection below.", f"link_{what}")


def say_more(name: str, most: int) -> None:
    if len(asked := _asked(name)) > most:
        shown = f"the first {most} are shown: a page has up to {most}."
        notices.notice(f"The link names {len(asked):,} columns; {shown}", f"link_{name}")


def forget() -> None:
    """Stop reporting unknown names: after a Run the visitor has made their own choice."""
    st.session_state[_LINK] = {}

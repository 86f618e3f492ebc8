"""Invalid values in a link: numbers are dropped, unknown names are reported.

Streamlit silently drops a value that is not an option, and fails on text in place of a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import streamlit as st
from streamlit.runtime.state import get_session_state

from engine.types import OFFERED, RunOptions, value_of
from ui.widgets import notices
from ui.widgets.run_settings import link_of

NUMBERS = (
    *(
        link_of(page, name)
        for page in ("compare", "benchmark", "verify")
        for name in OFFERED
        if isinstance(value_of(RunOptions, name), int | float)
    ),
    *("compare_split_parts", "benchmark_split_parts"),
    *("compare_draft_gamma", "compare_draft_runs"),
    *("compare_explain_side", "compare_explain_refined"),
    *("verify_samples", "verify_runs"),
    *("benchmark_samples", "benchmark_repeat", "benchmark_warmup"),
    *("benchmark_batch", "benchmark_workers", "benchmark_cpus", "benchmark_gpus"),
    *("results_gamma", "results_gate_margin"),
)
NAMES = (
    *("compare_root", "compare_sample", "compare_models"),
    *("verify_root", "verify_models", "benchmark_root", "benchmark_models"),
)
_NUMBER = re.compile(r"-?\d{1,10}(\.\d{1,6})?")
_LINK = "compare_link"


def remember() -> None:
    """At the start of a visit: store the names in its link, drop invalid numbers.

    Back and Forward may bring invalid numbers later, for widgets that exist already: their
    parameters can only be deleted in Streamlit's own state, not through st.query_params.
    """
    odd = [name for name in NUMBERS if not all(map(_NUMBER.fullmatch, _asked(name)))]
    for name in odd:
        with get_session_state().query_params() as parameters:
            parameters.remove_param(name)
    if odd:
        st.rerun()  # the widgets of this rerun have already read the link
    if _LINK not in st.session_state:
        st.session_state[_LINK] = {name: _asked(name) for name in NAMES}


def _asked(name: str) -> list[str]:
    return list(st.query_params.get_all(name))


def say_unknown(name: str, known: Iterable[str], what: str) -> None:
    """A notice if the link names something that is not offered."""
    asked = st.session_state.get(_LINK, {}).get(name, [])
    unknown = [text for text in asked if text not in set(known)]
    if unknown:
        notices.notice(
            f"The {what} {unknown[0][:80]!r} in the link is not available here: check the "
            "selection below.",
            f"link_{what}",
        )


def say_more(name: str, most: int) -> None:
    """A notice if the link names more than a page shows."""
    if len(asked := st.session_state.get(_LINK, {}).get(name, [])) > most:
        notices.notice(
            f"The link names {len(asked):,} columns; the first {most} are shown: a page has up to "
            f"{most}.",
            f"link_{name}",
        )


def forget() -> None:
    """Stop reporting unknown names: after a Run the visitor has made their own choice."""
    st.session_state[_LINK] = {}

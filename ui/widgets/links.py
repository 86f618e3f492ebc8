"""What a link asks for, as far as the widgets do not say it themselves.

Boundary: reads the URL.  Streamlit drops a value it cannot use without a word, and stops at a
number that is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import streamlit as st
from streamlit.runtime.state import get_session_state

from ui.widgets import notices

NUMBERS = (
    *("compare_tokens", "compare_seed", "compare_temperature", "compare_top_p"),
    *("compare_draft_gamma", "compare_draft_runs"),
    *("verify_samples", "verify_runs", "verify_tokens"),
    *("benchmark_samples", "benchmark_repeat", "benchmark_warmup", "benchmark_tokens"),
    *("benchmark_batch", "benchmark_workers", "benchmark_cpus", "benchmark_gpus"),
    "results_gamma",
)
NAMES = (
    *("compare_root", "compare_sample", "compare_models"),
    *("verify_root", "verify_models", "benchmark_root", "benchmark_models"),
)
_NUMBER = re.compile(r"-?\d{1,10}(\.\d{1,6})?")
_LINK = "compare_link"


def remember() -> None:
    """At the start of a visit: keep what its link asked for, drop numbers that are none.

    Within a visit Back and Forward may bring such numbers too, for widgets that are there already:
    st.query_params refuses to delete their parameters, Streamlit's own state does not.
    """
    odd = [name for name in NUMBERS if not all(map(_NUMBER.fullmatch, _asked(name)))]
    for name in odd:
        with get_session_state().query_params() as parameters:
            parameters.remove_param(name)
    if odd:
        st.rerun()  # the widgets of this run still know what the link said
    if _LINK not in st.session_state:
        st.session_state[_LINK] = {name: _asked(name) for name in NAMES}


def _asked(name: str) -> list[str]:
    return list(st.query_params.get_all(name))


def say_unknown(name: str, known: Iterable[str], what: str) -> None:
    """One sentence when the link names what is not offered."""
    asked = st.session_state.get(_LINK, {}).get(name, [])
    unknown = [text for text in asked if text not in set(known)]
    if unknown:
        notices.notice(
            f"The link names the {what} {unknown[0][:80]!r}, which is not offered here: "
            "check what is chosen below.",
            f"link_{what}",
        )


def forget() -> None:
    """From the first Run on the visitor has made a choice of his own."""
    st.session_state[_LINK] = {}

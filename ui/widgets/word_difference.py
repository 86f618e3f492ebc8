"""Two answers merged word by word; what only one of them has is marked."""

from __future__ import annotations

from html import escape

import streamlit as st

from engine.analysis import agreement
from ui.widgets import notices


def draw(first: tuple[str, str], second: tuple[str, str], key: str) -> None:
    """The difference of two (label, answer) pairs, what the marks mean, and the overlap."""
    texts = first[1], second[1]
    st.html(difference(*texts))
    shared = agreement.word_f1(*texts)
    alike = "neither answer has a word" if shared is None else f"{agreement.NAME} {shared:.3f}"
    notices.small(
        f"Struck through: only in {first[0]}. Underlined: only in {second[0]}. "
        f"Overlap: {alike}. This does not say which answer is right.",
        key,
    )


@st.cache_data(max_entries=64, show_spinner=False)
def difference(first: str, second: str) -> str:
    """HTML of both texts merged, escaped; what only one of them has is marked."""
    tags = {"both": "span", "first": "del", "second": "ins"}
    pieces = ""
    for piece in agreement.difference(first, second):
        # The start of one text may follow words of the other.
        gap = " " if pieces and not piece.text[:1].isspace() else ""
        tag = tags[piece.kind]
        pieces += f"{gap}<{tag}>{escape(piece.text)}</{tag}>"
    return f'<div class="words-between">{pieces or "Both answers are empty."}</div>'

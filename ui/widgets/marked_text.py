"""Text with marks, as HTML with escaped text: a drafted answer, and two answers merged.

Pieces are accepted, rejected or added; each state has its own underline, so that users need not
see colours.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.analysis import agreement
from engine.pipeline.drafts import AnswerPiece
from engine.quoting import printable
from ui.widgets import notices

# An answer decoded with drafts.
DRAFTED = {
    "accepted": "drafted and accepted",
    "rejected": "drafted and rejected: not part of the answer",
    "own": "the target's own",
}


def drafted_html(marks: Sequence[AnswerPiece]) -> str:
    """Legend and text of a drafted answer; rejected tokens are struck through."""
    tags = {"rejected": "del"}
    legend = "".join(
        f'<span><b class="painted-{state}">{"<del>abc</del>" if state in tags else "abc"}</b> '
        f"{words}</span>"
        for state, words in DRAFTED.items()
    )
    pieces = ""
    for mark in marks:
        tag, title = tags.get(mark.state, "span"), DRAFTED[mark.state]
        text = escape(printable(mark.text))
        pieces += f'<{tag} class="painted-{mark.state}" title="{title}">{text}</{tag}>'
    return f'<div class="painted-legend">{legend}</div><div class="painted">{pieces}</div>'


def drafted_words(marks: Sequence[AnswerPiece]) -> str:
    counts = Counter[str](mark.state for mark in marks)
    return "; ".join(f"{words}: {counts[state]:,}" for state, words in DRAFTED.items())


def difference(first: tuple[str, str], second: tuple[str, str], key: str) -> None:
    """The difference of two (label, answer) pairs, what the marks mean, and the overlap."""
    texts = first[1], second[1]
    st.html(merged(*texts))
    shared = agreement.word_f1(*texts)
    alike = "neither answer has a word" if shared is None else f"{agreement.NAME} {shared:.3f}"
    notices.small(
        f"Struck through: only in {first[0]}. Underlined: only in {second[0]}. "
        f"Overlap: {alike}. This does not say which answer is right.",
        key,
    )


@st.cache_data(max_entries=64, show_spinner=False)
def merged(first: str, second: str) -> str:
    """HTML of both texts merged, escaped; what only one of them has is marked."""
    tags = {"both": "span", "first": "del", "second": "ins"}
    pieces = ""
    for holder, text in agreement.difference(first, second):
        # The start of one text may follow words of the other.
        gap = " " if pieces and not text[:1].isspace() else ""
        pieces += f"{gap}<{tags[holder]}>{escape(text)}</{tags[holder]}>"
    return f'<div class="words-between">{pieces or "Both answers are empty."}</div>'

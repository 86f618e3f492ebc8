"""Text with marks, as HTML with escaped text: tokens of a draft, and two answers merged.

Tokens are accepted, rejected or added; each state has its own underline, so that users need not
see colours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from engine.analysis import agreement
from engine.analysis.acceptance import Painting
from engine.analysis.drafting import AnswerPiece
from engine.quoting import printable
from ui.widgets import notices

# A draft compared with the target's separate answer.
COMPARED = {
    "accepted": "accepted",
    "matched": "same token at the same position, but after a rejected one",
    "rejected": "rejected",
    "beyond": "after the target's end",
}
# An answer decoded with drafts.
DRAFTED = {
    "accepted": "drafted and accepted",
    "rejected": "drafted and rejected: not part of the answer",
    "own": "the target's own",
}


def compared_html(painting: Painting) -> str:
    """Legend and text of a draft that was compared with the target's answer."""
    pieces = ""
    for piece in painting.pieces:
        state = piece.state if piece.state in COMPARED else "rejected"
        tokens = f"token {piece.first + 1}"
        if piece.end > piece.first + 1:
            tokens = f"tokens {piece.first + 1} to {piece.end}"
        pieces += _marked("span", state, f"{tokens}: {COMPARED[state]}", piece.text)
    return _page(COMPARED, pieces)


def compared_words(painting: Painting) -> str:
    """The number of tokens in each state, as text."""
    counts = dict.fromkeys(COMPARED, 0)
    for piece in painting.pieces:
        counts[piece.state] += piece.end - piece.first
    return _words(COMPARED, {state: n for state, n in counts.items() if n})


def drafted_html(marks: Sequence[AnswerPiece]) -> str:
    """Legend and text of a drafted answer; rejected tokens are struck through."""
    tags = {"rejected": "del"}
    pieces = "".join(
        _marked(tags.get(mark.state, "span"), mark.state, DRAFTED[mark.state], mark.text)
        for mark in marks
    )
    return _page(DRAFTED, pieces, {"rejected": "<del>abc</del>"})


def drafted_words(marks: Sequence[AnswerPiece]) -> str:
    """The number of text pieces in each state, as text."""
    return _words(DRAFTED, dict.fromkeys(DRAFTED, 0) | Counter(mark.state for mark in marks))


def _page(meanings: Mapping[str, str], pieces: str, shown: Mapping[str, str] | None = None) -> str:
    legend = "".join(
        f'<span><b class="painted-{state}">{(shown or {}).get(state, "abc")}</b> {words}</span>'
        for state, words in meanings.items()
    )
    return f'<div class="painted-legend">{legend}</div><div class="painted">{pieces}</div>'


def _marked(tag: str, state: str, title: str, text: str) -> str:
    return f'<{tag} class="painted-{state}" title="{title}">{escape(printable(text))}</{tag}>'


def _words(meanings: Mapping[str, str], counts: Mapping[str, int]) -> str:
    return "; ".join(f"{words}: {counts[s]:,}" for s, words in meanings.items() if s in counts)


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
    for piece in agreement.difference(first, second):
        # The start of one text may follow words of the other.
        gap = " " if pieces and not piece.text[:1].isspace() else ""
        tag = tags[piece.kind]
        pieces += f"{gap}<{tag}>{escape(piece.text)}</{tag}>"
    return f'<div class="words-between">{pieces or "Both answers are empty."}</div>'

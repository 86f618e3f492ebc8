"""A drafted answer as HTML: what was drafted and accepted, drafted and rejected, the target's own.

Boundary: the engine's marks in, markup out; every word goes through html.escape.  Each state has
its own underline, so that colour alone says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from engine.pipeline.draft_results import AnswerPiece
from ui.widgets.accepted_text import STYLE, plain

MEANINGS = {
    "accepted": "drafted and accepted",
    "rejected": "drafted and rejected: no part of the answer",
    "own": "the target's own",
}
_TAGS = {"accepted": "span", "rejected": "del", "own": "span"}


def page(marks: Sequence[AnswerPiece]) -> str:
    """Legend and text in one element."""
    legend = "".join(f"<span>{_sample(state)} {words}</span>" for state, words in MEANINGS.items())
    text = "".join(_marked(mark.text, mark.state) for mark in marks)
    return f'{STYLE}<div class="painted-legend">{legend}</div><div class="painted">{text}</div>'


def _sample(state: str) -> str:
    shown = "<del>abc</del>" if _TAGS[state] == "del" else "abc"
    return f'<b class="painted-{state}">{shown}</b>'


def _marked(text: str, state: str) -> str:
    tag = _TAGS[state]
    shown = escape(plain(text))
    return f'<{tag} class="painted-{state}" title="{MEANINGS[state]}">{shown}</{tag}>'


def words(marks: Sequence[AnswerPiece]) -> str:
    """How many tokens of each kind, for those who do not see the colours."""
    counts = {state: sum(mark.state == state for mark in marks) for state in MEANINGS}
    return "; ".join(f"{MEANINGS[state]}: {n:,}" for state, n in counts.items())

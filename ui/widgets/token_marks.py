"""Tokens of a drafted text marked as accepted, rejected or added, as HTML.

Boundary: the engine's token states in, HTML out; all text is escaped.  Each state has its own
underline, so that users need not see colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from engine.analysis.acceptance_marks import MarkedPiece, Painting
from engine.analysis.drafting import AnswerPiece
from engine.quoting import printable

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
STYLE = """<style>
.painted { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 2; max-height: 18rem;
  overflow: auto; border: 1px solid #868D9755; border-radius: 0.3rem; padding: 0.7rem 0.9rem; }
.painted-legend { font-size: var(--small); margin: 0.3rem 0 0.6rem; line-height: 1.9; }
.painted-legend b { font-weight: 400; }
.painted-legend span { margin-right: 1.1rem; white-space: nowrap; }
.painted-accepted { background: #11805A33; border-bottom: 3px solid #11805A; }
.painted-matched { background: #3D93D826; border-bottom: 3px dotted #3D93D8; }
.painted-rejected { background: #C8453B14; border-bottom: 1px dashed #C8453B; }
.painted-beyond { color: var(--muted); border-bottom: 1px solid #868D97; }
</style>"""


def compared_html(painting: Painting) -> str:
    """Legend and text of a draft that was compared with the target's answer."""
    legend = (f'<b class="painted-{state}">abc</b> {words}' for state, words in COMPARED.items())
    return _page(legend, (_compared(piece) for piece in painting.pieces))


def compared_words(painting: Painting) -> str:
    """The number of tokens in each state, as text."""
    counts = dict.fromkeys(COMPARED, 0)
    for piece in painting.pieces:
        counts[piece.state] += piece.end - piece.first
    return _words(COMPARED, {state: n for state, n in counts.items() if n})


def drafted_html(marks: Sequence[AnswerPiece]) -> str:
    """Legend and text of a drafted answer; rejected tokens are struck through."""
    shown = dict.fromkeys(DRAFTED, "abc") | {"rejected": "<del>abc</del>"}
    legend = (f'<b class="painted-{s}">{shown[s]}</b> {words}' for s, words in DRAFTED.items())
    return _page(legend, (_drafted(mark) for mark in marks))


def drafted_words(marks: Sequence[AnswerPiece]) -> str:
    """The number of text pieces in each state, as text."""
    return _words(DRAFTED, {state: sum(m.state == state for m in marks) for state in DRAFTED})


def _page(legend: Iterable[str], pieces: Iterable[str]) -> str:
    shown = "".join(f"<span>{item}</span>" for item in legend)
    text = "".join(pieces)
    return f'{STYLE}<div class="painted-legend">{shown}</div><div class="painted">{text}</div>'


def _compared(piece: MarkedPiece) -> str:
    state = piece.state if piece.state in COMPARED else "rejected"
    first, last = piece.first + 1, piece.end
    where = f"token {first}" if first == last else f"tokens {first} to {last}"
    return _marked("span", state, f"{where}: {COMPARED[state]}", piece.text)


def _drafted(mark: AnswerPiece) -> str:
    tag = "del" if mark.state == "rejected" else "span"
    return _marked(tag, mark.state, DRAFTED[mark.state], mark.text)


def _marked(tag: str, state: str, title: str, text: str) -> str:
    return f'<{tag} class="painted-{state}" title="{title}">{escape(printable(text))}</{tag}>'


def _words(meanings: Mapping[str, str], counts: Mapping[str, int]) -> str:
    return "; ".join(f"{meanings[state]}: {n:,}" for state, n in counts.items())

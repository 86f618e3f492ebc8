"""A draft's text with each token accepted or rejected by the target, as HTML.

Boundary: the engine's painting in, markup out; every word goes through html.escape.  Each state
has its own underline, so that colour alone says nothing.
"""

from __future__ import annotations

from html import escape

from engine.analysis.acceptance_marks import MarkedPiece, Painting

MEANINGS = {
    "accepted": "accepted",
    "matched": "the same in its place, but after a rejected one",
    "rejected": "rejected",
    "beyond": "beyond the target's end",
}
STYLE = """<style>
.painted { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 2; max-height: 18rem;
  overflow: auto; border: 1px solid #868D9755; border-radius: 0.3rem; padding: 0.7rem 0.9rem; }
.painted-legend { font-size: 0.84rem; margin: 0.3rem 0 0.6rem; line-height: 1.9; }
.painted-legend b { font-weight: 400; }
.painted-legend span { margin-right: 1.1rem; white-space: nowrap; }
.painted-accepted { background: #11805A33; border-bottom: 3px solid #11805A; }
.painted-matched { background: #3D93D826; border-bottom: 3px dotted #3D93D8; }
.painted-rejected { background: #C8453B14; border-bottom: 1px dashed #C8453B; }
.painted-beyond { opacity: 0.65; border-bottom: 1px solid #868D97; }
</style>"""


def page(found: Painting) -> str:
    """Legend and text in one element."""
    legend = "".join(
        f'<span><b class="painted-{state}">abc</b> {words}</span>'
        for state, words in MEANINGS.items()
    )
    text = "".join(_piece(piece) for piece in found.pieces)
    return f'{STYLE}<div class="painted-legend">{legend}</div><div class="painted">{text}</div>'


def _piece(piece: MarkedPiece) -> str:
    state = piece.state if piece.state in MEANINGS else "rejected"
    first, last = piece.first + 1, piece.end
    where = f"token {first}" if first == last else f"tokens {first} to {last}"
    return (
        f'<span class="painted-{state}" title="{where}: {MEANINGS[state]}">'
        f"{escape(plain(piece.text))}</span>"
    )


def plain(text: str) -> str:
    """Control characters become visible; line ends stay."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def words(found: Painting) -> str:
    """How many tokens of each state, for those who do not see the colours."""
    counts = dict.fromkeys(MEANINGS, 0)
    for piece in found.pieces:
        counts[piece.state] += piece.end - piece.first
    return "; ".join(f"{MEANINGS[state]}: {n:,}" for state, n in counts.items() if n)

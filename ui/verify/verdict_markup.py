"""Outcome marks, small tables and rows of tokens as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# outcome -> (symbol, word)
MARKS = {
    "passed": ("✓", "passed"),
    "tie": ("≈", "tie"),
    "failed": ("✕", "failed"),
    "unresolved": ("?", "open"),
    "skipped": ("○", "cannot run"),
    "refused": ("∅", "not offered"),
    "": ("–", "not done"),
    "pending": ("·", ""),
}
LONG = 60  # most equal tokens shown before a difference
_BEFORE = 20  # shown if there are more


def mark(outcome: str, help_text: str = "") -> str:
    """An outcome as symbol and word."""
    symbol, word = MARKS[outcome]
    kind = "absent" if outcome in ("", "skipped", "refused") else outcome
    return (
        f'<span class="proof-mark proof-{kind}" title="{escape(help_text)}">'
        f'<span class="proof-symbol" aria-hidden="true">{symbol}</span>{word}</span>'
    )


def cells(contents: Sequence[str]) -> str:
    """HTML pieces side by side, in columns of equal width."""
    inside = "".join(f'<span class="proof-cell">{content}</span>' for content in contents)
    style = f"grid-template-columns: repeat({len(contents)}, minmax(0, 1fr))"
    return f'<div class="proof-cells" style="{style}">{inside}</div>'


def names(words: Iterable[tuple[str, str]]) -> str:
    """Column heads: (short name, whole name)."""
    return cells(
        [
            f'<span class="proof-name" title="{escape(whole)}">{escape(short)}</span>'
            for short, whole in words
        ]
    )


def sentence(state: str, outcome: str, label: str, words: str) -> str:
    """A model's outcome: its state, its name, what was found."""
    return (
        f'<div class="proof-headline"><span class="proof-state proof-{state}">{escape(outcome)}'
        f"</span> {escape(label)}: {escape(words)}</div>"
    )


def about(text: str) -> str:
    return f'<span class="proof-about">{escape(text)}</span>'


def visible(piece: str) -> str:
    """A token's text with visible white space."""
    return piece.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣") or "(empty)"


def tokens(name: str, pieces: Sequence[str], ids: Sequence[int], at: int | None) -> str:
    """An answer token by token.  `at` is the first difference: marked; later tokens are pale."""
    start = at - _BEFORE if at is not None and at > LONG else 0
    found = [_token(pieces[i], ids[i], i, at) for i in range(start, len(pieces))]
    if start:
        found.insert(0, f'<span class="proof-skipped">{start} equal tokens …</span>')
    if at is not None and at >= len(pieces):
        found.append('<span class="proof-first">⟨ends here⟩ ◂ first difference</span>')
    return (
        f'<div class="proof-tokens"><div class="proof-head">{escape(name)} · '
        f"{len(ids)} tokens</div>{''.join(found)}</div>"
    )


def _token(piece: str, token: int, index: int, at: int | None) -> str:
    shown = visible(piece) if not piece.strip() else piece.replace("\n", "⏎")
    hover = escape(f"token {index + 1}, id {token}")
    if index == at:
        note = '<span class="proof-note">◂ first difference</span>'
        return f'<span class="proof-first" title="{hover}">{escape(shown)}{note}</span>'
    pale = at is not None and index > at
    kind = "proof-token proof-pale" if pale else "proof-token"
    return f'<span class="{kind}" title="{hover}">{escape(shown)}</span>'

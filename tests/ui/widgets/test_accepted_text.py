"""Painted drafts: every state has its own mark, and words of a file stay words."""

from __future__ import annotations

from engine.analysis.acceptance_marks import MarkedPiece, Painting
from ui.widgets import accepted_text


def picture(*words: str) -> Painting:
    states = ("accepted", "matched", "rejected", "beyond")
    pieces = [
        MarkedPiece(word, i, i + 1, state)
        for i, (word, state) in enumerate(zip(words, states, strict=False))
    ]
    return Painting(tuple(pieces))


def test_each_state_has_a_class_a_legend_and_a_title() -> None:
    page = accepted_text.page(picture("a", " b", " c", " d"))
    for state, words in accepted_text.MEANINGS.items():
        assert f'<span class="painted-{state}" title="token' in page and f"</b> {words}" in page
    assert accepted_text.STYLE.count("border-bottom") == 4


def test_markup_and_control_characters_are_shown_not_obeyed() -> None:
    page = accepted_text.page(
        picture("<script>alert(1)</script>", '" onmouseover="x', "\x1b[31m\u202e")
    )
    assert "<script" not in page and "&lt;script&gt;" in page
    assert 'onmouseover="x' not in page and "\x1b" not in page and "\u202e" not in page


def test_a_state_that_is_not_known_never_becomes_a_class() -> None:
    page = accepted_text.page(Painting((MarkedPiece("a", 0, 2, '"><img src=x>'),)))
    assert "<img" not in page and 'title="tokens 1 to 2: rejected"' in page


def test_the_words_count_tokens() -> None:
    assert accepted_text.words(picture("a", "b")) == (
        "accepted: 1; the same in its place, but after a rejected one: 1"
    )

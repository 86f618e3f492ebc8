"""Marks as HTML: every state has its own form, and no word becomes markup."""

from __future__ import annotations

from engine.pipeline.draft_results import AnswerPiece
from ui.compare import drafted_text

MARKS = (
    AnswerPiece("A <b>", "own"),
    AnswerPiece(" car", "accepted"),
    AnswerPiece(" &\x07", "rejected"),
)


def test_each_state_has_its_own_form() -> None:
    shown = drafted_text.page(MARKS)
    assert '<span class="painted-own"' in shown
    assert '<span class="painted-accepted"' in shown and '<del class="painted-rejected"' in shown


def test_words_are_never_markup() -> None:
    shown = drafted_text.page(MARKS)
    assert "<b>" not in shown and "A &lt;b&gt;" in shown
    assert " &amp;\N{REPLACEMENT CHARACTER}</del>" in shown


def test_it_is_told_without_colours() -> None:
    assert drafted_text.words(MARKS) == (
        "drafted and accepted: 1; drafted and rejected: no part of the answer: 1; "
        "the target's own: 1"
    )

"""Marked texts as HTML: each state has its own form, and text never becomes markup."""

from __future__ import annotations

from engine.pipeline.drafts import AnswerPiece
from ui.widgets import marked_text

MARKS = (
    AnswerPiece("A <b>", "own"),
    AnswerPiece(" car", "accepted"),
    AnswerPiece(" &\x07", "rejected"),
)


def test_each_state_of_a_drafted_answer_has_its_own_form() -> None:
    shown = marked_text.drafted_html(MARKS)
    assert '<span class="painted-own"' in shown
    assert '<span class="painted-accepted"' in shown and '<del class="painted-rejected"' in shown


def test_drafted_text_is_never_markup() -> None:
    shown = marked_text.drafted_html(MARKS)
    assert "<b>" not in shown and "A &lt;b&gt;" in shown
    assert " &amp;\N{REPLACEMENT CHARACTER}</del>" in shown
    for words in marked_text.DRAFTED.values():
        assert f"</b> {words}</span>" in shown


def test_drafted_pieces_are_counted_in_words() -> None:
    assert marked_text.drafted_words(MARKS) == (
        "drafted and accepted: 1; drafted and rejected: not part of the answer: 1; "
        "the target's own: 1"
    )


def test_what_only_one_answer_says_is_marked() -> None:
    assert "<del> red</del><ins> blue</ins><span> car</span>" in marked_text.merged(
        "a red car", "a blue car"
    )


def test_words_of_both_answers_never_run_together() -> None:
    assert "<ins>So</ins> <span>the road</span>" in marked_text.merged("the road", "So the road")


def test_an_answer_is_no_html() -> None:
    found = marked_text.merged("<script>x</script>", "<img src=y>")
    assert "<script" not in found and "<img" not in found
    assert "Both answers are empty" in marked_text.merged("", "")

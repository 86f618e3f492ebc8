"""Marked texts as HTML: each state has its own form, and text never becomes markup."""

from engine.pipeline.drafts import AnswerPiece
from ui.widgets import marked_text

MARKS = (
    AnswerPiece("A <b>", "own"),
    AnswerPiece(" car", "accepted"),
    AnswerPiece(" &\x07", "rejected"),
)


def test_an_answer_is_no_html() -> None:
    found = marked_text.merged("<script>x</script>", "<img src=y>")
    assert "<script" not in found and "<img" not in found
    assert "Both answers are empty" in marked_text.merged("", "")

"""The difference of two answers: escaped, marked, and never run together."""

from __future__ import annotations

from ui.widgets.word_difference import difference


def test_what_only_one_answer_says_is_marked() -> None:
    assert "<del> red</del><ins> blue</ins><span> car</span>" in difference(
        "a red car", "a blue car"
    )


def test_words_of_both_answers_never_run_together() -> None:
    assert "<ins>So</ins> <span>the road</span>" in difference("the road", "So the road")


def test_an_answer_is_no_html() -> None:
    found = difference("<script>x</script>", "<img src=y>")
    assert "<script" not in found and "<img" not in found
    assert "Both answers are empty" in difference("", "")

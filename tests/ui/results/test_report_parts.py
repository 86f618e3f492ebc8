from __future__ import annotations

from engine.report.document_parts import ReportTable
from ui.results import report_parts
from ui.results.sample_view import difference


def test_cells_are_text_whatever_they_hold() -> None:
    table = ReportTable("<c>", ("model", "n"), (("<b>x</b> & **y**", "1"),))
    found = report_parts.table(table)
    assert "&lt;b&gt;x&lt;/b&gt; &amp; **y**" in found and "<b>" not in found
    assert "<caption>&lt;c&gt;</caption>" in found


def test_words_stand_left_and_figures_right() -> None:
    found = report_parts.table(ReportTable("", ("a", "b", "n"), (("x", "y", "1"),), words=2))
    assert found.count('class="figures-word"') == 4 and found.count("figures-number") == 2


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

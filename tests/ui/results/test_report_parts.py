from __future__ import annotations

from engine.report.document_parts import ReportTable
from ui.results import report_parts


def test_cells_are_text_whatever_they_hold() -> None:
    table = ReportTable("<c>", ("model", "n"), (("<b>x</b> & **y**", "1"),))
    found = report_parts.table(table)
    assert "&lt;b&gt;x&lt;/b&gt; &amp; **y**" in found and "<b>" not in found
    assert "<caption>&lt;c&gt;</caption>" in found


def test_words_stand_left_and_figures_right() -> None:
    found = report_parts.table(ReportTable("", ("a", "b", "n"), (("x", "y", "1"),), words=2))
    assert found.count('class="figures-word"') == 4 and found.count("figures-number") == 2

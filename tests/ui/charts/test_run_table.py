"""The table of stage times names every figure and its source."""

from __future__ import annotations

from engine.analysis.compared import ComparedModel
from engine.palette import FAMILY_COLOURS, UNACCOUNTED
from engine.types import RunResult
from tests.ui.answers import CACHED, result, reused
from ui.charts import run_table


def rows(*results: RunResult) -> list[ComparedModel]:
    return [ComparedModel(f"Model {item.model.name}", "llava", (item,)) for item in results]


def test_a_cold_total_that_nobody_knows_is_said_in_words() -> None:
    cells = run_table.table(rows(reused()))["Model one"]
    assert cells[run_table.ORIGINAL] == "unknown"
    assert "(computing time unknown)" in cells["decode"]
    known = run_table.table(rows(result(vision=CACHED)))["Model one"]
    assert not known.str.contains("unknown").any()


def test_the_table_names_both_totals_and_every_source() -> None:
    table = run_table.table(rows(result(), result("two", CACHED)))
    one, two = (table[name] for name in table.columns)
    assert one["vision"] == "40.0 ms, measured"
    assert two["vision"] == "2.00 ms, read from the cache (computing time 40.0 ms)"
    assert one[run_table.THIS_RUN] == "175 ms" and one[run_table.ORIGINAL] == "no cached stage"
    assert two[run_table.THIS_RUN] == "137 ms" and two[run_table.ORIGINAL] == "175 ms"
    assert one["decode: prefill"] == "30.0 ms, measured"
    assert one[UNACCOUNTED] == "5.00 ms"


def test_a_stage_without_a_span_is_not_zero_but_not_measured() -> None:
    whole = result()
    spans = tuple(span for span in whole.spans if span.name != "vision")
    broken = RunResult(whole.request, whole.model, spans, whole.generation, 175, cold=False)
    assert list(run_table.table(rows(broken)).loc["vision"]) == [run_table.MISSING]


def test_labels_cannot_bring_markdown_into_the_table() -> None:
    table = run_table.table([ComparedModel("a*b*", "llava", (result(),))])
    assert list(table.columns) == ["a\\*b\\*"]


def test_several_runs_are_medians_with_their_range() -> None:
    runs = tuple(result(vision=(ms, "measured", None)) for ms in (40.0, 10.0, 90.0))
    cells = run_table.table([ComparedModel("One", "llava", runs)])["One"]
    assert cells["vision"] == "40.0 ms (10.0 ms to 90.0 ms, n = 3), measured"
    assert cells[run_table.THIS_RUN] == "175 ms (145 ms to 225 ms, n = 3)"


def test_each_column_head_has_its_models_colour() -> None:
    style = run_table.head_style(rows(result(), result("two")), ".place")
    assert style.count(FAMILY_COLOURS["llava"]) == 2
    assert ".place thead th:nth-child(2)" in style and "nth-child(3)" in style

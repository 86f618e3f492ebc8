"""Bars and table say the measured numbers and sources, in a fixed order, and escape all text."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from markupsafe import Markup

from engine.analysis import compared
from engine.analysis.compared import ComparedModel
from engine.palette import FAMILY_COLOURS, UNACCOUNTED
from engine.types import RunResult, Span
from tests.ui.answers import CACHED, result
from tests.ui.widgets.test_theme import config, contrast
from ui.compare import run_bars


def model(*results: RunResult, label: str = "One") -> ComparedModel:
    return ComparedModel(label, "llava", results)


def test_parts_lie_end_to_end_in_the_fixed_order_and_end_at_the_total() -> None:
    bar = run_bars.finished(model(result()))
    assert tuple(part.part for part in bar.parts) == compared.RUN_PARTS
    assert [part.start_ms for part in bar.parts] == [0, 10, 30, 70, 100, 170, 170]
    assert bar.parts[-1].part == UNACCOUNTED and bar.end_ms == pytest.approx(result().total_ms)
    assert bar.total == "175 ms" and bar.detail == "" and not bar.uncached


def test_a_cached_stage_is_as_long_as_its_read_and_a_second_bar_shows_the_run_without_cache() -> (
    None
):
    bar = run_bars.finished(model(result(vision=CACHED)))
    lengths = {part.part: part.ms for part in bar.parts}
    without = {part.part: part.ms for part in bar.uncached}
    assert lengths["vision"] == 2 and without["vision"] == 40
    assert {**lengths, "vision": 0} == {**without, "vision": 0}
    assert bar.cached == {"vision"} and bar.detail == ""
    drawn = run_bars.html([bar])
    assert drawn.count("repeating-linear-gradient") == 1 and drawn.count("run-thin") == 1
    plain = run_bars.html([run_bars.finished(model(result()))])  # control
    assert "repeating-linear-gradient" not in plain and "run-thin" not in plain


def test_several_runs_are_the_median_one_with_the_range_of_the_totals() -> None:
    runs = [result(vision=(ms, "measured", None)) for ms in (40.0, 10.0, 90.0)]
    bar = run_bars.finished(model(*runs))
    assert bar.total == "175 ms" and bar.detail == "median run of 3"
    assert bar.ends == (145, 225) and bar.end_ms == 225
    assert bar.parts[-1].end_ms == 175  # the bar ends where its label says
    drawn = run_bars.html([bar])
    place = "left: 58.000%; width: 32.000%"  # of an axis of 300 ms
    assert f'"run-range" style="{place}" title="total from 145 ms to 225 ms"' in drawn


def test_a_cancelled_run_says_so_beside_its_bar() -> None:
    whole = result()
    cut = replace(whole, generation=replace(whole.generation, stop="cancelled"))
    assert run_bars.finished(model(cut)).detail == "cancelled"


def test_a_growing_bar_shows_the_spans_so_far_and_the_state() -> None:
    spans = (Span("load", 0, 10), Span("decode.prefill", 10, 30.5))
    bar = run_bars.growing("One", "llava", spans, "Running")
    assert bar.total == "40.5 ms" and bar.detail == "Running"
    drawn = run_bars.html([bar, run_bars.growing("Two", "llava", (), "failed")])
    assert "prefill 30.5 ms" in drawn and "failed" in drawn and "Two: failed." in drawn
    assert "run-tick" in drawn
    assert "run-tick" not in run_bars.html([run_bars.growing("One", "llava", (), "Queued")])


def test_text_from_outside_is_escaped() -> None:
    label = '<img src=x onerror="a">'
    drawn = run_bars.html([run_bars.finished(model(result(), label=label))])
    assert "<img" not in drawn and "&lt;img" in drawn
    state = run_bars.html([run_bars.growing("a", "b", (), label)])
    assert "<img" not in state


def test_the_words_name_each_model_and_each_part_that_took_time() -> None:
    words = run_bars.words([run_bars.finished(model(result(vision=CACHED)))])
    for part in ("One:", "load 10.0 ms", "vision 2.00 ms", "prefill 30.0 ms", "token steps 70.0 ms",
                 "total 137 ms"):  # fmt: skip
        assert part in words


def test_the_legend_names_what_is_visible_alone() -> None:
    drawn = run_bars.html([run_bars.finished(model(result()))])
    keys = re.findall(r'class="run-key"><i [^>]*></i>([^<]*)', drawn)
    assert keys == ["load", "preprocess", "vision", "prefill", "token steps", "unaccounted"]


def test_the_legend_names_a_stage_that_only_the_bar_without_cache_shows() -> None:
    quick = (0.01, "cached", 40.0)
    drawn = run_bars.html([run_bars.finished(model(result(vision=quick)))])
    assert "</i>vision</span>" in drawn
    unseen = run_bars.html([run_bars.finished(model(result(vision=(0.01, "measured", None))))])
    assert "</i>vision</span>" not in unseen  # control


@pytest.mark.parametrize("longest", [0.0, 0.3, 1.0, 7.0, 59.9, 99.0, 458.0, 2876.0, 123456.0])
def test_the_axis_ends_at_a_round_number_and_has_few_ticks(longest: float) -> None:
    places = run_bars.ticks(longest)
    assert max(longest, 1) <= places[-1] <= 1.5 * max(longest, 1) and places[0] == 0
    assert 3 <= len(places) <= run_bars.MOST_TICKS
    distances = {f"{after - before:.6g}" for before, after in pairwise(places)}
    assert len(distances) == 1


@pytest.mark.parametrize("part", run_bars.COLOURS)
def test_colours_stand_out_and_their_text_can_be_read(part: str) -> None:
    colour = run_bars.COLOURS[part]
    for base in ("light", "dark"):
        assert contrast(colour, config()["theme"][base]["backgroundColor"]) >= 3
    assert contrast(colour, run_bars.ink(colour)) >= 4.5


def rows(*results: RunResult) -> list[ComparedModel]:
    return [ComparedModel(f"Model {item.model.name}", "llava", (item,)) for item in results]


def cells(*models: ComparedModel) -> list[dict[str, str]]:
    """The table's cells by row, for each model, as a person reads them."""
    rows = [[Markup(cell).striptags() for cell in row] for row in run_bars.table(models).rows]
    names, *columns = zip(*rows, strict=True)
    return [dict(zip(names, column, strict=True)) for column in columns]


def test_the_table_names_both_totals_and_every_source() -> None:
    one, two = cells(*rows(result(), result("two", CACHED)))
    assert one["vision"] == "40.0 ms, measured"
    assert two["vision"] == "2.00 ms, read from the cache (computing time 40.0 ms)"
    assert one[run_bars.THIS_RUN] == "175 ms" and one[run_bars.ORIGINAL] == "no cached stage"
    assert two[run_bars.THIS_RUN] == "137 ms" and two[run_bars.ORIGINAL] == "175 ms"
    assert one["decode: prefill"] == "30.0 ms, measured"
    assert one[UNACCOUNTED] == "5.00 ms"


def test_a_stage_without_a_span_is_not_zero_but_not_measured() -> None:
    whole = result()
    spans = tuple(span for span in whole.spans if span.name != "vision")
    broken = RunResult(whole.request, whole.model, spans, whole.generation, 175, cold=False)
    (one,) = cells(*rows(broken))
    assert one["vision"] == run_bars.MISSING


def test_each_column_head_has_its_models_colour_and_is_no_markup() -> None:
    head = run_bars.table([ComparedModel("a<b>", "llava", (result(),))]).columns[1]
    assert FAMILY_COLOURS["llava"] in head and "a&lt;b&gt;" in head


def test_several_runs_are_medians_with_their_range() -> None:
    runs = tuple(result(vision=(ms, "measured", None)) for ms in (40.0, 10.0, 90.0))
    (one,) = cells(ComparedModel("One", "llava", runs))
    assert one["vision"] == "40.0 ms (10.0 to 90.0), measured"
    assert one[run_bars.THIS_RUN] == "175 ms (145 to 225)"

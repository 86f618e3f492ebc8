"""The stage bars, the table and the words say the same numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.types import STAGES, PrefixUse, RunResult
from tests.ui.answers import CACHED, result
from ui.charts import run_charts
from ui.charts.run_charts import ModelResult
from ui.widgets.theme import PARTS, STAGE_COLOURS, UNACCOUNTED


def rows(*results: RunResult) -> list[ModelResult]:
    return [ModelResult(f"Model {item.model.name}", item) for item in results]


def marks(chart: Any) -> list[dict[str, Any]]:
    return [layer["mark"] for layer in chart.to_dict()["layer"]]


def test_parts_lie_end_to_end_in_the_fixed_order_and_end_at_the_total() -> None:
    frame = run_charts.segments(rows(result()))
    assert list(frame["stage"]) == [*STAGES, UNACCOUNTED]
    assert list(frame["start_ms"]) == [0, 10, 30, 70, 170]
    assert list(frame["start_ms"][1:]) == list(frame["end_ms"][:-1])
    assert frame["end_ms"].max() == pytest.approx(result().total_ms)


def test_a_cached_stage_is_as_long_as_its_read_and_keeps_its_original_time() -> None:
    frame = run_charts.segments(rows(result(vision=CACHED))).set_index("stage")
    assert frame.loc["vision", "ms"] == 2 and frame.loc["vision", "original_ms"] == 40
    assert frame["original_ms"].notna().sum() == 1


def test_the_chart_has_one_order_and_one_colour_per_stage() -> None:
    spec = run_charts.stage_chart(rows(result(), result("two"))).to_dict()
    encoding = spec["layer"][0]["encoding"]
    assert encoding["color"]["scale"]["domain"] == list(PARTS)
    assert encoding["color"]["scale"]["range"] == [STAGE_COLOURS[part] for part in PARTS]
    assert [name.split("\n")[0] for name in encoding["y"]["sort"]] == ["Model one", "Model two"]
    assert "ms" in encoding["x"]["title"]


def test_only_a_cached_stage_is_striped_and_has_a_ghost_behind_it() -> None:
    assert len(marks(run_charts.stage_chart(rows(result())))) == 1
    ghost, plain, striped = marks(run_charts.stage_chart(rows(result(), result("b", CACHED))))
    assert isinstance(ghost["fill"], dict) and isinstance(striped["fill"], dict)
    assert "fill" not in plain
    assert ghost["height"] > striped["height"] == plain["height"]


def reused() -> RunResult:
    """A run that went on from a prefix: preprocess and vision took 20 and 40 ms once."""
    one = result(vision=CACHED)
    told = {"preprocess": 50.0, "vision": 40.0, "decode": None, "decode.prefill": None}
    spans = [replace(span, source="cached", original_ms=told[span.name])
             if span.name in told else span for span in one.spans]  # fmt: skip
    return replace(one, spans=tuple(spans), prefix=PrefixUse("reused", 9))


def test_original_times_lie_end_to_end_and_an_unknown_one_has_no_pale_bar() -> None:
    frame = run_charts.segments(rows(reused()))
    ghosts = run_charts._ghosts(frame)
    assert list(ghosts["stage"]) == ["preprocess", "vision"]
    assert list(ghosts["start_ms"]) == [10, 60] and list(ghosts["end_ms"]) == [60, 100]
    layers = run_charts.stage_chart(rows(reused())).to_dict()["layer"]
    assert len(layers) == 2 + 1 + 3
    titles = [[one["title"] for one in layer["encoding"]["tooltip"]] for layer in layers[3:]]
    assert ["Computed in (ms)" in names for names in titles] == [True, True, False]


def test_a_cold_total_that_nobody_knows_is_said_in_words() -> None:
    cells = run_charts.table(rows(reused()))["Model one"]
    assert cells[run_charts.ORIGINAL] == "unknown"
    assert "(computing time unknown)" in cells["decode"]
    assert run_charts.segments(rows(reused()))["name"][0].endswith("unknown without cache")
    assert "unknown" not in run_charts.segments(rows(result(vision=CACHED)))["name"][0]


def test_the_axis_has_room_for_a_ghost_longer_than_the_run() -> None:
    spec = run_charts.stage_chart(rows(result(vision=(2.0, "cached", 5000.0)))).to_dict()
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"][1] >= 5030


@pytest.mark.parametrize(("width", "height"), [(300, 20), (4, 20), (2000, 40)])
def test_stripes_alternate_and_run_at_45_degrees(width: float, height: float) -> None:
    fill: Any = run_charts.stripes("#112233", width, height, (1.0, 0.25))
    offsets = [stop["offset"] for stop in fill["stops"]]
    assert offsets == sorted(offsets) and offsets[0] == 0 and offsets[-1] == 1
    assert {stop["color"] for stop in fill["stops"]} == {"#112233FF", "#11223340"}
    # In pixels, a step along the bar and the same step across it change the shade alike.
    assert fill["x2"] / width == pytest.approx(fill["y2"] / height)
    # The last corner is reached by the last stop.
    length = fill["x2"] ** 2 + fill["y2"] ** 2
    assert (fill["x2"] + fill["y2"]) / length == pytest.approx(1)


def test_the_table_names_both_totals_and_every_source() -> None:
    table = run_charts.table(rows(result(), result("two", CACHED)))
    one, two = (table[name] for name in table.columns)
    assert one["vision"] == "40.0 ms, measured"
    assert two["vision"] == "2.00 ms, read from the cache (computing time 40.0 ms)"
    assert one[run_charts.THIS_RUN] == "175 ms" and one[run_charts.ORIGINAL] == "no cached stage"
    assert two[run_charts.THIS_RUN] == "137 ms" and two[run_charts.ORIGINAL] == "175 ms"
    assert one["decode: prefill"] == "30.0 ms, measured"
    assert one[UNACCOUNTED] == "5.00 ms"


def test_a_stage_without_a_span_is_not_zero_but_not_measured() -> None:
    whole = result()
    spans = tuple(span for span in whole.spans if span.name != "vision")
    broken = RunResult(whole.request, whole.model, spans, whole.generation, 175, cold=False)
    assert list(run_charts.table(rows(broken)).loc["vision"]) == [run_charts.MISSING]


def test_labels_cannot_bring_markdown_into_the_table() -> None:
    table = run_charts.table([ModelResult("a*b*", result())])
    assert list(table.columns) == ["a\\*b\\*"]


def test_the_words_hold_each_model_and_each_stage() -> None:
    words = run_charts.words(rows(result(), result("two", CACHED)))
    for part in ("Model one", "Model two", *STAGES, "computing time 40.0 ms", "175 ms"):
        assert part in words

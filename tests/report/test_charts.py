"""The charts of pages and reports: order, units, colours, what is left out, and their words."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.analysis import speedup
from engine.analysis.compared import PARTS
from engine.analysis.metrics import BY_NAME
from engine.media_options import window
from engine.palette import HEAT_COLOURS, STAGE_COLOURS, family_colour
from engine.report import charts, drawers
from engine.report.blocks import ChartBlock
from engine.storage.explanations import MomentLoss
from engine.types import STAGES
from engine.viewing.event_times import EventRates

TOTAL = BY_NAME["total"]
TWO = {"A": {"load": 2.0, "decode": 3.0}, "B": {"vision": 4.0}}
LONG = "video-llava-demo · 20261121-164851-da4bb7 · Xeon Platinum 8480C, 16 threads, shared device"


def data(chart: charts.Chart) -> list[dict[str, Any]]:
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def values(n: int = 8) -> pd.DataFrame:
    return pd.DataFrame(
        {"label": ["a", "b"] * n, "sample": [f"s{i}" for i in range(2 * n)],
         "value": [float(i) for i in range(2 * n)]}
    )  # fmt: skip


def answer(**more: object) -> charts.Answer:
    row: dict[str, object] = {"label": "a", "starts": {"vision": 22.0}}
    row |= {f"{name}_ms": 10.0 for name in STAGES}
    row |= {f"{name}_source": "measured" for name in STAGES}
    row |= {"token_ms": np.array([32.0, 35.0, 40.0]), "ttft_ms": 32.0, "total_ms": 40.0}
    row |= {"new_tokens": 3, "server_ms": float("nan")}
    return row | more


def test_stages_lie_end_to_end_in_the_fixed_order() -> None:
    a = [row for row in data(charts.stage_bars(TWO)) if row["label"] == "A"]
    assert [row["part"] for row in a] == list(STAGE_COLOURS)
    assert [row["start_ms"] for row in a] == [0, 2, 2, 2, 5]
    assert [row["ms"] for row in a] == [2, 0, 0, 3, 0]


def test_stage_bars_keep_order_colours_and_units() -> None:
    spec = charts.stage_bars(TWO).to_dict()["encoding"]
    assert spec["y"]["scale"]["domain"] == ["A", "B"]
    assert spec["color"]["scale"]["domain"] == list(STAGE_COLOURS)
    assert spec["color"]["scale"]["range"] == list(STAGE_COLOURS.values())
    served = charts.stage_bars(TWO | {"C": {"server": 9.0}}).to_dict()["encoding"]
    assert served["color"]["scale"]["domain"] == list(PARTS)
    assert "(ms)" in spec["x"]["title"]


def test_what_was_not_measured_is_not_told_as_0() -> None:
    words = charts.stage_words(TWO | {"C": {}})
    assert words.endswith("A: load 2.00 ms, decode 3.00 ms. B: vision 4.00 ms. C: not measured.")


@pytest.mark.loads
def test_no_model_is_an_empty_chart() -> None:
    assert "<svg" in charts.svgs([charts.stage_bars({})])[0]


@pytest.mark.slow
def test_a_chart_that_ends_its_process_is_replaced_by_words() -> None:
    """A non-character and a control character end it."""
    names = ("good", "a\ufffeb", "a\x1bb", "fine")
    made = [charts.stage_bars({name: TWO["A"]}) for name in names]
    assert [bool(drawn) for drawn in charts.svgs(made)] == [True, False, False, True]
    blocks = [ChartBlock(f"Words {number}.", partial(one.copy)) for number, one in enumerate(made)]
    page = drawers.html("t", blocks)
    assert page.count("<svg") == 2 and "<p>Words 1.</p>" in page


@pytest.mark.loads
def test_the_device_at_the_end_of_a_long_name_is_not_cut_off() -> None:
    many = [LONG.replace("da4bb7", str(number)) for number in range(6)]
    drawn = charts.svgs([charts.stage_bars(dict.fromkeys(many, TWO["A"]))])[0]
    assert all(f">20261121-164851-{number}<" in drawn for number in range(6))
    one = answer(label=LONG)
    distribution = charts.distribution(values().assign(label=LONG), {LONG: "llava"}, "total (ms)")
    for text in (drawn, charts.svgs([charts.timeline([one])])[0], charts.svgs([distribution])[0]):
        assert ">Xeon Platinum 8480C, 16 threads, shared device<" in text and "…" not in text


@pytest.mark.loads
def test_a_file_has_the_colour_of_its_page_no_script_and_no_markup_of_others() -> None:
    drawn = charts.svgs([charts.stage_bars({"<script>x</script>": TWO["A"]})])[0]
    assert 'fill="currentColor"' in drawn and f'width="{charts.WIDTH}' in drawn
    assert "<script" not in drawn and "http" not in drawn.replace("http://www.w3.org", "")


def test_a_distribution_has_its_unit_a_dot_per_result_and_a_box() -> None:
    chart = charts.distribution(values(), {"a": "llava", "b": "#123456"}, "total (ms)").to_dict()
    assert {len(rows) for rows in chart["datasets"].values()} == {16, 2}
    dots, box, median = chart["layer"]
    assert dots["encoding"]["x"]["title"] == "total (ms)"
    assert box["encoding"]["x"]["field"] == "first" and median["encoding"]["x"]["field"] == "median"
    assert dots["encoding"]["color"]["scale"]["range"] == [family_colour("llava"), "#123456"]


def test_many_results_are_thinned_and_the_quartiles_are_of_all() -> None:
    many = values(5000)
    chart = charts.distribution(many, {"a": "", "b": ""}, "total (ms)").to_dict()
    assert max(len(rows) for rows in chart["datasets"].values()) <= 2 * charts.DOTS
    assert charts.quartiles(many)["high"].tolist() == [9998.0, 9999.0]


@pytest.mark.loads
def test_dots_of_a_file_are_circles_in_a_group_for_each_colour() -> None:
    chart = charts.distribution(values(), {"a": "llava", "b": "#123456"}, "total (ms)")
    (drawn,) = charts.svgs([chart])
    assert drawn.count("<circle ") == 16 and 'aria-label="total' not in drawn
    groups = re.findall(r'<g fill="(#\w+)" fill-opacity="[\d.]+"><circle', drawn)
    assert groups == [family_colour("llava"), "#123456"]


def test_results_apart_are_in_no_box() -> None:
    apart = pd.DataFrame({"label": ["a"], "sample": ["first run"], "value": [99.0]})
    chart = charts.distribution(values(2), {"a": "", "b": ""}, "vision (ms)", apart, equal=1.0)
    rows = data(chart)
    assert {"label": "a", "sample": "first run", "value": 99.0} in rows and {"equal": 1.0} in rows
    assert max(row["high"] for row in rows if "high" in row) == 3
    words = charts.distribution_words(values(2), "vision (ms)")
    assert "vision (ms)" in words and "a: median 1.00" in words


def test_a_scatter_selects_by_sample_and_both_axes_say_what_they_are() -> None:
    both = pd.DataFrame({"sample": ["s"], "sequence": ["q"], "a": [2.0], "b": [1.0]})
    chart = charts.scatter(both, "x", "y", TOTAL).to_dict()
    assert chart["params"][0]["name"] == charts.POINT
    assert chart["params"][0]["select"]["fields"] == ["sample"]
    points = chart["layer"][1]["encoding"]
    assert points["x"]["title"] == "y: total (ms)" and points["y"]["title"] == "x: total (ms)"
    assert charts.scatter_words(both, "x", "y", TOTAL).endswith(" value: 1.")


STEPS = [("Slow <b>", 1000.0), ("load, timed for one model only", -200.0),
         ("decode: prefill", -20.0), ("time per token", 50.0), ("Fast", 830.0)]  # fmt: skip


def test_a_waterfall_goes_from_one_total_to_the_other_in_the_colours_of_the_stages() -> None:
    lines = charts.falls(STEPS)
    assert [line["end"] for line in lines] == [1000, 800, 780, 830, 830]
    assert [line["start"] for line in lines] == [0, 1000, 800, 780, 0]
    stages = ["total", "load", "decode.prefill", "decode.steps", "total"]
    assert [line["stage"] for line in lines] == stages
    told = ["1,000 ms", "−200 ms", "−20.0 ms", "+50.0 ms", "830 ms"]
    assert [line["words"] for line in lines] == told
    parts = charts.falls([("A", 9.0), ("load", -0.001), ("vision", -0.01), ("B", 8.989)])[1:3]
    assert [line["words"] for line in parts] == ["+0.00 ms", "−0.01 ms"]
    bars, points = charts.waterfall(STEPS).to_dict()["layer"]
    known = bars["encoding"]["color"]["scale"]["domain"]
    assert {line["stage"] for line in lines} <= set(known)
    assert "(ms)" in bars["encoding"]["x"]["title"]
    assert points["encoding"]["y"]["axis"]["orient"] == "right"
    alike = charts.waterfall([("A · eager", 9.0), ("load", -1.0), ("A · compiled", 8.0)]).to_dict()
    axis = alike["layer"][0]["encoding"]["y"]
    assert axis["scale"]["domain"] == ["A · eager", "load", "A · compiled"]
    assert axis["axis"]["labelExpr"].startswith("split(")  # all parts, a line each
    words = charts.waterfall_words(STEPS)
    assert "From Slow <b>, 1,000 ms, to Fast, 830 ms: load" in words


def test_each_factor_of_a_speed_up_belongs_to_a_stage() -> None:
    factors = [10.0, 10.0, 10.0, 10.0, 4.0, 5.0, 1.0, 1.0]
    split = speedup.split_of("a", "b", 8, factors, [2 * factor for factor in factors])
    lines = charts.falls(charts.split_steps(split))
    stages = {line["stage"] for line in lines[1:-1]}
    assert {stage.split(".")[0] for stage in stages} == set(STAGE_COLOURS)
    assert lines[-2]["end"] == pytest.approx(split.b_ms) and lines[-1]["start"] == 0


def test_stages_begin_where_they_began_and_else_where_the_last_one_ended() -> None:
    assert [line["start"] for line in charts.stage_lines(answer())] == [0.0, 10.0, 22.0, 32.0]


def test_a_stage_that_was_not_measured_has_no_bar() -> None:
    unknown = answer(vision_ms=float("nan"))
    assert "vision" not in [line["stage"] for line in charts.stage_lines(unknown)]
    assert "vision" not in charts.timeline_words([unknown])


def test_every_token_has_its_time_and_its_gap() -> None:
    lines = list(charts.token_lines(answer()))
    assert [line["ms"] for line in lines] == [32.0, 35.0, 40.0]
    assert [line["gap"] for line in lines] == [None, 3.0, 5.0]


def test_the_timeline_is_a_chart_and_a_sentence() -> None:
    chart = charts.timeline([answer()]).to_dict()
    assert "(ms)" in chart["layer"][0]["encoding"]["x"]["title"]
    assert "3 tokens, the first after 32.0 ms" in charts.timeline_words([answer()])
    there = {f"{name}_ms": float("nan") for name in ("vision", "decode")}
    served = answer(**there, server_ms=20.0, server_source="measured", new_tokens=float("nan"))
    assert "server 20.0 ms; tokens not told" in charts.timeline_words([served])
    colours = charts.timeline([served]).to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert colours["domain"] == [*STAGES, "server"]


@pytest.mark.loads
def test_intervals_have_a_row_each_marks_and_named_limits() -> None:
    rows = [
        {"name": "\x1fgroup"},
        {"name": "group\x1fone", "value": 1.0, "low": 0.5, "high": 2.0, "colour": "#111111"},
        {"name": "group\x1ftwo", "value": 3.0, "colour": "#222222"},
    ]
    marks = [{"name": "group\x1fone", "at": 1.5}]
    chart = charts.intervals(rows, "ratio", {}, marks=marks, equal=1.0, limits={2.5: "the bound"})
    found = data(chart)
    assert marks[0] in found and {"equal": 1.0} in found and {"at": 2.5} in found
    drawn = charts.svgs([chart])[0]
    assert ">the bound<" in drawn and ">one<" in drawn and ">group<" in drawn
    assert drawn.count("#111111") >= 2 and "#222222" in drawn  # a dot and its interval


LINES = [
    {"name": "ev", "at": 0.0, "value": 0.9, "low": 0.7, "high": 0.97},
    {"name": "ev", "at": 0.3, "value": 0.5, "low": None, "high": None},
]


def test_curves_of_shares_are_from_0_to_1_and_bands_are_the_intervals() -> None:
    spec = charts.curves(LINES, "drop (share)", "share", {"ev": "eventgpt"}).to_dict()
    band, line, points = spec["layer"]
    assert [layer["mark"]["type"] for layer in (band, line, points)] == ["area", "line", "point"]
    for layer in (band, line, points):
        assert layer["encoding"]["y"]["scale"]["domain"] == [0, 1]
        assert layer["encoding"]["x"]["title"] == "drop (share)"
        assert layer["encoding"]["color"]["scale"]["range"] == [family_colour("eventgpt")]
    assert band["encoding"]["y"]["field"] == "low" and band["encoding"]["y2"]["field"] == "high"
    assert points["encoding"]["shape"]["field"] == "name"


def test_frames_have_a_bar_each_and_two_if_they_were_emptied_too() -> None:
    found = [MomentLoss(0, "frame 1", "replaced", 0.5), MomentLoss(0, "frame 1", "emptied", 0.25)]
    spec = charts.moments(found).to_dict()["encoding"]
    assert spec["x"]["sort"] == ["frame 1"] and spec["y"]["title"] == "nats"
    assert spec["x"]["title"] == "frame"
    assert spec["color"]["scale"]["range"][0] == HEAT_COLOURS["carries"]
    assert spec["color"]["legend"] is not None
    assert charts.moments(found[:1]).to_dict()["encoding"]["color"]["legend"] is None
    assert "frame 1" in charts.moments_words(found)


RATES = EventRates(3_999_999, np.array([10, 0, 400, 30]))


def test_bars_are_events_per_second_over_seconds() -> None:
    rows, made = data(charts.event_rates(RATES, None)), charts.event_rates(RATES, None).to_dict()
    assert [row["rate"] for row in rows] == [10, 0, 400, 30]
    assert [row["begin"] for row in rows] == [0, 1, 2, 3] and rows[-1]["end"] == 4
    assert made["encoding"]["x"]["title"] == "Time after the first event (s)"
    assert made["encoding"]["y"]["title"] == "Events per s"
    assert all(row["in_window"] for row in rows)


def test_a_short_recording_is_in_milliseconds() -> None:
    chart = charts.event_rates(EventRates(999_999, np.array([10, 30])), None)
    assert [(row["end"], row["rate"]) for row in data(chart)] == [(500, 20), (1000, 60)]
    assert "(ms)" in chart.to_dict()["encoding"]["x"]["title"]


@pytest.mark.parametrize(
    ("text", "marked"), [("1s+500ms", [1]), ("1.5s+1s", [1, 2]), ("3s+5s", [3]), ("5s+1s", [])]
)
def test_the_bars_of_the_window_are_marked(text: str, marked: list[int]) -> None:
    rows = data(charts.event_rates(RATES, window(text)))
    assert [row["begin"] for row in rows if row["in_window"]] == marked


def test_the_words_say_the_most_and_the_window() -> None:
    said = charts.event_rates_words(RATES, window("1s+500ms"))
    assert "over the 4s of the recording: at most 400, from 2s on" in said
    assert "the window 1s+500ms is marked" in said and "slider" in said
    assert "no window is chosen" in charts.event_rates_words(RATES, None)

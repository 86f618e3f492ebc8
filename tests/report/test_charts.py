"""The charts of pages and reports: order, units, colours, what is left out, and their words."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.palette import HEAT_COLOURS, family_colour
from engine.report import charts, drawers
from engine.report.blocks import ChartBlock
from engine.storage.explanations import MomentLoss
from engine.types import STAGES
from engine.viewing.seen_times import EventRates

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


def test_what_was_not_measured_is_not_told_as_0() -> None:
    words = charts.stage_words(TWO | {"C": {}})
    assert words.endswith("A: load 2.00 ms, decode 3.00 ms. B: vision 4.00 ms. C: not measured.")


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


def test_a_distribution_has_its_unit_a_dot_per_result_and_a_box() -> None:
    chart = charts.distribution(values(), {"a": "llava", "b": "#123456"}, "total (ms)").to_dict()
    assert {len(rows) for rows in chart["datasets"].values()} == {16, 2}
    dots, box, median = chart["layer"]
    assert dots["encoding"]["x"]["title"] == "total (ms)"
    assert box["encoding"]["x"]["field"] == "first" and median["encoding"]["x"]["field"] == "median"
    assert dots["encoding"]["color"]["scale"]["range"] == [family_colour("llava"), "#123456"]


STEPS = [("Slow <b>", 1000.0), ("load, timed for one model only", -200.0),
         ("decode: prefill", -20.0), ("time per token", 50.0), ("Fast", 830.0)]  # fmt: skip


def test_a_stage_that_was_not_measured_has_no_bar() -> None:
    unknown = answer(vision_ms=float("nan"))
    assert "vision" not in [line["stage"] for line in charts.stage_lines(unknown)]
    assert "vision" not in charts.timeline_words([unknown])


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

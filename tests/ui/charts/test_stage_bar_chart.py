from __future__ import annotations

from engine.report.svg_charts import svg
from ui.charts import stage_bar_chart
from ui.widgets.theme import PARTS

TWO = {"A": {"load": 2.0, "decode": 3.0}, "B": {"vision": 4.0}}


def test_stages_lie_end_to_end_in_the_fixed_order() -> None:
    frame = stage_bar_chart.segments(TWO)
    a = frame[frame["model"] == "A"]
    assert a["stage"].tolist() == list(PARTS)
    assert a["start"].tolist() == [0, 2, 2, 2, 5] and a["end"].tolist() == [2, 2, 2, 5, 5]


def test_the_chart_keeps_order_colours_and_units() -> None:
    spec = stage_bar_chart.chart(TWO).to_dict()["encoding"]
    assert spec["y"]["sort"] == ["A", "B"] and spec["color"]["scale"]["domain"] == list(PARTS)
    assert "(ms)" in spec["x"]["title"]


def test_what_was_not_measured_is_not_told_as_0() -> None:
    assert stage_bar_chart.words(TWO).endswith(
        "A: load 2.00 ms, decode 3.00 ms. B: vision 4.00 ms."
    )


def test_no_model_is_an_empty_chart() -> None:
    assert stage_bar_chart.segments({}).empty and stage_bar_chart.chart({}).to_dict()


LONG = "video-llava-demo · 20261121-164851-da4bb7 · Xeon Platinum 8480C, 16 threads, shared device"


def test_the_device_at_the_end_of_a_long_name_is_not_cut_off() -> None:
    many = [LONG.replace("da4bb7", str(number)) for number in range(6)]
    drawn = svg(stage_bar_chart.chart(dict.fromkeys(many, TWO["A"])))
    assert all(f">20261121-164851-{number}<" in drawn for number in range(6))
    assert ">Xeon Platinum 8480C, 16 threads, shared device<" in drawn and "…" not in drawn

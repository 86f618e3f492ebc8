from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from engine.analysis.metrics import BY_NAME
from engine.report.svg_charts import svg
from engine.types import STAGES
from tests.ui.charts.test_stage_bar_chart import LONG
from ui.charts import result_charts

TOTAL = BY_NAME["total"]


def values(n: int = 8) -> pd.DataFrame:
    return pd.DataFrame(
        {"label": ["a", "b"] * n, "sample": [f"s{i}" for i in range(2 * n)],
         "value": [float(i) for i in range(2 * n)]}
    )  # fmt: skip


def answer(**more: object) -> result_charts.AnswerTimes:
    row: dict[str, object] = {f"{name}_ms": 10.0 for name in STAGES}
    row |= {f"{name}_source": "measured" for name in STAGES}
    row |= {"token_ms": np.array([32.0, 35.0, 40.0]), "ttft_ms": 32.0, "total_ms": 40.0}
    return result_charts.AnswerTimes("a", row | more, {"vision": 22.0})


def test_a_distribution_has_its_unit_and_a_dot_per_result() -> None:
    chart = result_charts.distribution(values(), ["a", "b"], {"a": "llava"}, TOTAL).to_dict()
    dots, box, _ = chart["layer"]
    assert dots["encoding"]["x"]["title"] == "total (ms)" == box["encoding"]["x"]["title"]
    data = {len(rows) for rows in chart["datasets"].values()}
    assert data == {16, 2}


def test_many_results_are_thinned_and_the_quarters_are_of_all() -> None:
    many = values(5000)
    chart = result_charts.distribution(many, ["a", "b"], {}, TOTAL).to_dict()
    assert max(len(rows) for rows in chart["datasets"].values()) <= 2 * result_charts.DOTS
    assert result_charts.quarters(many)["high"].tolist() == [9998.0, 9999.0]


def test_the_distribution_in_words() -> None:
    words = result_charts.distribution_words(values(2), TOTAL)
    assert "total (ms)" in words and "a: median 1.00" in words


def test_a_scatter_selects_by_sample_and_both_axes_say_what_they_are() -> None:
    both = pd.DataFrame({"sample": ["s"], "sequence": ["q"], "a": [2.0], "b": [1.0]})
    chart = result_charts.scatter(both, "x", "y", TOTAL).to_dict()
    assert chart["params"][0]["name"] == result_charts.POINT
    assert chart["params"][0]["select"]["fields"] == ["sample"]
    points = chart["layer"][1]["encoding"]
    assert points["x"]["title"] == "y: total (ms)" and points["y"]["title"] == "x: total (ms)"
    assert "1 are above the line" in result_charts.scatter_words(both, "x", "y", TOTAL)


def test_stages_begin_where_they_began_and_else_where_the_last_one_ended() -> None:
    lines = result_charts.stage_lines([answer()])
    assert lines["start"].tolist() == [0.0, 10.0, 22.0, 32.0]


def test_a_stage_that_was_not_measured_has_no_bar() -> None:
    lines = result_charts.stage_lines([answer(vision_ms=float("nan"))])
    assert "vision" not in lines["stage"].tolist() and len(lines) == 3
    assert "vision" not in result_charts.timeline_words([answer(vision_ms=float("nan"))])


def test_every_token_has_its_time_and_its_gap() -> None:
    lines = result_charts.token_lines([answer()])
    assert lines["ms"].tolist() == [32.0, 35.0, 40.0]
    assert lines["gap"].isna().tolist() == [True, False, False]
    assert lines["gap"].tolist()[1:] == [3.0, 5.0]


def test_the_timeline_is_a_chart_and_a_sentence() -> None:
    chart = result_charts.timeline([answer()]).to_dict()
    assert "(ms)" in chart["layer"][0]["encoding"]["x"]["title"]
    assert "3 tokens, the first after 32.0 ms" in result_charts.timeline_words([answer()])


def test_the_device_at_the_end_of_a_long_name_is_not_cut_off() -> None:
    one = dataclasses.replace(answer(), label=LONG)
    lines = values().assign(label=LONG)
    for chart in (
        result_charts.timeline([one]),
        result_charts.distribution(lines, [LONG], {}, TOTAL),
    ):
        drawn = svg(chart)
        assert ">Xeon Platinum 8480C, 16 threads, shared device<" in drawn and "…" not in drawn

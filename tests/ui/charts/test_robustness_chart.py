"""The chart of shares by strength: axes, bands and colours."""

from __future__ import annotations

from ui.charts import robustness_chart
from ui.widgets.theme import family_colour

LINES = [
    {"model": "ev", "strength": 0.0, "share": 0.9, "low": 0.7, "high": 0.97},
    {"model": "ev", "strength": 0.3, "share": 0.5, "low": None, "high": None},
]


def test_shares_are_from_0_to_1_and_bands_are_the_intervals() -> None:
    spec = robustness_chart.chart(LINES, "drop (share)", {"ev": "eventgpt"}).to_dict()
    band, line, points = spec["layer"]
    assert [layer["mark"]["type"] for layer in (band, line, points)] == ["area", "line", "point"]
    for layer in (band, line, points):
        assert layer["encoding"]["y"]["scale"]["domain"] == [0, 1]
        assert layer["encoding"]["x"]["title"] == "drop (share)"
        assert layer["encoding"]["color"]["scale"]["range"] == [family_colour("eventgpt")]
    assert band["encoding"]["y"]["field"] == "low" and band["encoding"]["y2"]["field"] == "high"
    assert points["encoding"]["shape"]["field"] == "model"

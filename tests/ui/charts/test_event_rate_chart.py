"""The event rate chart: its numbers, units, and marked window."""

from __future__ import annotations

import numpy as np
import pytest

from engine.media_options import window
from engine.viewing.event_times import EventRates
from ui.charts.event_rate_chart import chart, words

RATES = EventRates(3_999_999, np.array([10, 0, 400, 30]))


def test_bars_are_events_per_second_over_seconds() -> None:
    made = chart(RATES, None).to_dict()
    (rows,) = made["datasets"].values()
    assert [row["rate"] for row in rows] == [10, 0, 400, 30]
    assert [row["begin"] for row in rows] == [0, 1, 2, 3] and rows[-1]["end"] == 4
    assert made["encoding"]["x"]["title"] == "Time after the first event (s)"
    assert made["encoding"]["y"]["title"] == "Events per s"
    assert "value" not in made["params"][0]


def test_a_short_recording_is_in_milliseconds() -> None:
    made = chart(EventRates(999_999, np.array([10, 30])), None).to_dict()
    (rows,) = made["datasets"].values()
    assert [(row["end"], row["rate"]) for row in rows] == [(500, 20), (1000, 60)]
    assert "(ms)" in made["encoding"]["x"]["title"]


@pytest.mark.parametrize(
    ("text", "ends"), [("1s+500ms", [1, 1.5]), ("3s+5s", [3, 4]), ("5s+1s", None)]
)
def test_the_window_is_marked_as_far_as_it_is_in_the_recording(
    text: str, ends: list[float] | None
) -> None:
    brush = chart(RATES, window(text)).to_dict()["params"][0]
    assert brush.get("value") == (ends and {"x": ends})


def test_the_words_say_the_most_and_the_window() -> None:
    said = words(RATES, window("1s+500ms"))
    assert "over the 4s of the recording: at most 400, from 2s on" in said
    assert "the window 1s+500ms is marked" in said and "field Window" in said
    assert "no window is chosen" in words(RATES, None)

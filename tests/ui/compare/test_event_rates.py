"""What a drag or a click on the event rate chart means."""

from __future__ import annotations

import numpy as np
import pytest

from engine.media_options import Window, window
from engine.viewing.event_times import EventRates
from ui.compare.recording_view import brushed, clicked, rounded, step_us

TEN_S = EventRates(10_000_000, np.ones(100, np.int64))  # the chart is in seconds
ONE_S = EventRates(1_000_000, np.ones(100, np.int64))  # in milliseconds


def test_a_brush_becomes_a_window_in_sensible_steps() -> None:
    assert brushed({"window": {"begin": [2.4187, 3.6913]}}, TEN_S) == window("2.42s+1.28s")
    assert brushed({"window": {"begin": [418.7, 491.3]}}, ONE_S) == window("418ms+72ms")
    assert brushed({"window": {"begin": [2.4, 2.4]}}, TEN_S) is None  # a click
    assert brushed({"window": {}, "at": []}, TEN_S) is None


@pytest.mark.parametrize(
    ("duration_us", "step"),
    [(10, 1), (499, 1), (1_000_000, 2_000), (9_999_999, 10_000), (10_000_000, 20_000)],
)
def test_a_step_is_a_round_number(duration_us: int, step: int) -> None:
    assert step_us(duration_us) == step


def test_a_narrow_brush_is_one_step_and_none_begins_outside() -> None:
    assert rounded(5_000_000, 5_000_001, 10_000_000) == Window(5_000_000, 20_000)
    assert rounded(-50_000, 40_000, 10_000_000) == Window(0, 40_000)
    assert rounded(9_999_999, 10_000_001, 10_000_000) == Window(10_000_000, 20_000)


def test_a_moved_brush_keeps_its_length() -> None:
    found = {rounded(at, at + 64_900, 10_000_000).length_us for at in range(0, 90_000, 1_300)}
    assert found == {60_000}


def test_a_click_moves_the_window_and_keeps_its_length() -> None:
    shown = Window(0, 500_000)
    at = [{"begin": 4.0}]
    assert clicked({"at": at}, TEN_S, shown) == Window(3_800_000, 500_000)
    assert clicked({"at": [{"begin": 0.0}]}, TEN_S, shown) == Window(0, 500_000)
    assert clicked({"at": [{"begin": 9.9}]}, TEN_S, shown) == Window(9_500_000, 500_000)
    assert clicked({"at": at}, TEN_S, None) is None  # the whole recording stays
    assert clicked({}, TEN_S, shown) == shown

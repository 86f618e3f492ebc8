"""Windows, splits and perturbations as texts."""

from __future__ import annotations

import pytest

from engine.errors import BadInput
from engine.media_options import (
    MAX_US,
    Perturbation,
    Split,
    Window,
    microseconds,
    perturbations,
    split,
    time_text,
    window,
)


@pytest.mark.parametrize("us", [0, 1, 999, 50_000, 50_001, 100_000, 1_250_000, 20_000_000, MAX_US])
def test_the_text_of_a_time_is_read_as_the_same_time(us: int) -> None:
    assert microseconds(time_text(us)) == us


def test_the_text_of_a_window_is_read_as_the_same_window() -> None:
    assert str(window("1.25s+50ms")) == "1.25s+50ms"
    assert str(window("50ms")) == "0s+50ms" and window(" ") is None
    assert window("1250 ms + 50000us") == Window(1_250_000, 50_000)


@pytest.mark.parametrize("text", ["50", "1s+", "1s+50", "1s-50ms", "0ms", "1s+0.5us"])
def test_a_text_that_is_no_window_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="write START\\+LENGTH with units"):
        window(text)


def test_splits_and_perturbations_are_read_back() -> None:
    assert split("densest:8") == Split("densest", 8) and str(split("time")) == "time:5"
    found = perturbations("jitter:500us, drop:0.3")
    assert found == (Perturbation("drop", 0.3), Perturbation("jitter", 500.0))
    assert perturbations(",".join(map(str, found))) == found

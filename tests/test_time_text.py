"""Times of windows as text: exact, and the same when they are read again."""

from __future__ import annotations

import pytest

from engine.media_options import MAX_US, Window, microseconds, time_text, window


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0s"),
        (1, "1us"),
        (100, "100us"),
        (1_000, "1ms"),
        (1_500, "1.5ms"),
        (50_000, "50ms"),
        (100_000, "100ms"),
        (1_250_000, "1.25s"),
        (10_000_000, "10s"),
        (3_600_000_000, "3600s"),
    ],
)
def test_times_are_exact(us: int, text: str) -> None:
    assert time_text(us) == text and microseconds(text) == us


def test_no_two_windows_have_one_text() -> None:
    lengths = [digit * 10**zeros for zeros in range(10) for digit in (1, 5, 12)]
    windows = [Window(start, length) for start in (0, 5_000, 50_000) for length in lengths]
    windows += [Window(MAX_US, MAX_US)]
    assert len({str(one) for one in windows}) == len(set(windows))
    assert all(window(str(one)) == one for one in windows)

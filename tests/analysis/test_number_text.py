"""Numbers as they are shown."""

from __future__ import annotations

import pytest

from engine.analysis import number_text
from engine.types import Tower


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0.00 ms"),
        (0.417, "0.42 ms"),
        (48.21, "48.2 ms"),
        (1204.4, "1,204 ms"),
        (-0.5, "-0.50 ms"),
    ],
)
def test_milliseconds_keep_three_digits(value: float | None, shown: str) -> None:
    assert number_text.ms(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (8.04, "8.0 tok/s"), (1218.3, "1,218 tok/s")]
)
def test_rates_have_their_unit(value: float | None, shown: str) -> None:
    assert number_text.rate(value) == shown


def test_counts_are_singular_and_plural() -> None:
    assert [number_text.count(n, "frame") for n in (0, 1, 8)] == ["0 frames", "1 frame", "8 frames"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert number_text.duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0, "0"),
        (0.1234, "0.123"),
        (12.34, "12.3"),
        (1234.5, "1,234"),
    ],
)
def test_numbers_have_three_digits(value: float | None, words: str) -> None:
    assert number_text.number(value) == words


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (float("nan"), "–"), (0, "0"), (0.1234, "0.123"), (1.234, "1.23"),
     (12.34, "12.3"), (1234.5, "1,234"), (-3.456, "-3.46")],
)  # fmt: skip
def test_numbers_and_sizes(value: float | None, shown: str) -> None:
    assert number_text.number(value) == shown
    assert [number_text.size(n) for n in (12, 2048, 3 * 2**20, 2**31)] == [
        "12 B", "2.0 KiB", "3.0 MiB", "2.0 GiB",
    ]  # fmt: skip


def test_ratios_and_shares_have_their_interval() -> None:
    assert number_text.times(1.234, (1.0, 2.0)) == "1.23x (1.00 to 2.00)"
    assert number_text.percent(0.1234) == "12.3%" and number_text.percent(None) == "–"
    assert number_text.percent(0.5, (0.4, 0.6)) == "50.0% (40.0% to 60.0%)"


def test_precise_numbers_have_four_digits() -> None:
    shown = [number_text.precise(value) for value in (None, 0.12345, 12.3456, 12345.6)]
    assert shown == ["–", "0.1235", "12.35", "12,346"]


@pytest.mark.parametrize(
    ("tower", "text"),
    [
        (None, ""),
        (
            Tower(1024, 24, 16, 336, 14),
            "24 layers of 1,024, 16 heads, 336 px in patches of 14 px",
        ),
        (Tower(1280, 32, 16, None, 14), "32 layers of 1,280, 16 heads, patches of 14 px"),
        (Tower(768, None, 12, 512, 16), "layers of 768, 12 heads, 512 px in patches of 16 px"),
        (Tower(None, 1, None, 224, None), "1 layer, 224 px"),
    ],
)
def test_a_tower_says_what_is_known(tower: Tower | None, text: str) -> None:
    assert number_text.tower_text(tower) == text

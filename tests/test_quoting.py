"""Messages repeat at most 80 characters of a value; numbers, plurals and lists are words."""

from __future__ import annotations

import pytest

from engine import quoting
from engine.quoting import MAX_CHARS, cut, quoted, shown

DEEP: list[object] = []
for _ in range(500):
    DEEP = [DEEP]
BOMB: tuple[object, ...] = ()
for _ in range(60):
    BOMB = (BOMB, BOMB)
LONG = (
    "a" * 10**6,
    10**5000,
    -(10**300),
    ["x" * 1000] * 1000,
    {"k" * 999: ["v" * 999]},
    DEEP,
    BOMB,
)


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
def test_no_more_than_80_characters_of_a_value(value: object) -> None:
    assert 0 < len(quoted(value)) <= MAX_CHARS and quoted(value).isprintable()


def test_short_values_are_repeated_as_they_are() -> None:
    for value in ("a", 5, 1.5, None, True, [1, "x"], {"a": 1}, float("nan"), 10**30):
        assert quoted(value) == repr(value)
    assert quoted("\ud800\n") == r"'\ud800\n'"


def test_texts_and_paths_are_cut() -> None:
    assert cut("a" * 80) == "a" * 80 and len(cut("a" * 81)) == 80
    assert shown("/x" * 100 + "/name.json").endswith("/name.json")
    assert len(shown("a" * 5000)) == 80 and "\n" not in shown("a\nb")


def test_lists_end_with_and() -> None:
    assert [quoting.joined("abc"[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0.00 ms"),
        (0.417, "0.42 ms"),
        (48.21, "48.2 ms"),
        (1204.4, "1,204 ms"),
        (-0.5, "−0.50 ms"),
    ],
)
def test_milliseconds_keep_three_digits(value: float | None, shown: str) -> None:
    assert quoting.ms(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (8.04, "8.0 tok/s"), (1218.3, "1,218 tok/s")]
)
def test_rates_have_their_unit(value: float | None, shown: str) -> None:
    assert quoting.rate(value) == shown


def test_counts_are_singular_and_plural() -> None:
    assert [quoting.count(n, "frame") for n in (0, 1, 8)] == ["0 frames", "1 frame", "8 frames"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert quoting.duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (float("nan"), "–"), (0, "0"), (0.1234, "0.123"), (1.234, "1.23"),
     (12.34, "12.3"), (1234.5, "1,234"), (-3.456, "-3.46")],
)  # fmt: skip
def test_numbers_have_three_digits(value: float | None, shown: str) -> None:
    assert quoting.number(value) == shown


def test_sizes_have_their_unit() -> None:
    assert [quoting.gib(n) for n in (12, 2048, 3 * 2**20, 2**31)] == [
        "12 bytes", "2.0 KiB", "3.0 MiB", "2.0 GiB",
    ]  # fmt: skip


def test_ratios_and_shares_have_their_interval() -> None:
    assert quoting.times(1.234, (1.0, 2.0)) == "1.23x (1.00 to 2.00)"
    assert quoting.percent(0.1234) == "12.3%" and quoting.percent(None) == "–"
    assert quoting.percent(0.5, (0.4, 0.6)) == "50.0% (40.0% to 60.0%)"


def test_precise_numbers_have_four_digits() -> None:
    shown = [quoting.precise(value) for value in (None, 0.12345, 12.3456, 12345.6)]
    assert shown == ["–", "0.1235", "12.35", "12,346"]

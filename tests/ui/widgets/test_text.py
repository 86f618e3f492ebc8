"""Numbers and words as they are shown."""

from __future__ import annotations

import pytest

from engine.types import Sample
from ui.widgets import text


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
    assert text.ms(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (8.04, "8.0 tok/s"), (1218.3, "1,218 tok/s")]
)
def test_rates_have_their_unit(value: float | None, shown: str) -> None:
    assert text.rate(value) == shown


def test_counts_are_singular_and_plural() -> None:
    assert [text.count(n, "frame") for n in (0, 1, 8)] == ["0 frames", "1 frame", "8 frames"]


def test_escaped_text_holds_no_live_markdown() -> None:
    shown = text.escape("![x](http://y) $a$ :red[b]\n# c <b>")
    assert "\n" not in shown
    for mark in "![]()$:#<>":
        assert shown.count(mark) == shown.count(f"\\{mark}")


def test_a_uuid_is_named_by_its_start_other_ids_whole() -> None:
    uuid = "357e6028-3d08-583e-9bdf-a85836735b46"
    assert text.name_of(Sample(uuid, "drive")) == "drive · 357e6028"
    assert text.name_of(Sample("clip_0001_long_name", "drive")) == "drive · clip_0001_long_name"
    assert text.name_of(Sample("alone", "")) == "alone"


def test_names_of_samples_are_told_apart() -> None:
    one, two, three = (f"357e6028-3d08-583e-9bdf-a8583673{n}" for n in ("5b46", "5b47", "0000"))
    samples = [Sample(one, "drive"), Sample(two, "drive"), Sample(three, "night")]
    names = text.names_of(samples)
    assert len(set(names.values())) == 3
    assert names[three] == "night · 357e6028" and two in names[two]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert text.duration(seconds) == words


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
def test_figures(value: float | None, words: str) -> None:
    assert text.figure(value) == words


def test_when_a_run_began() -> None:
    assert text.when("2026-01-02T03:04:05+00:00") == "2026-01-02 03:04 UTC"
    assert text.when("long ago") == "long ago"

"""The stages of a running run, from the moments its watcher was called."""

from __future__ import annotations

import pytest

from engine.jobs.stage_progress import GENERATE, progress
from engine.types import Doing, Span

MARKS: list[tuple[Doing, float]] = [
    ("compile", 0.0),
    ("load", 5.0),
    ("preprocess", 5.010),
    ("vision", 5.030),
    ("decode", 5.070),
]


def spans(marks: list[tuple[Doing, float]], tokens: list[float], now: float) -> dict[str, Span]:
    found = progress(marks, tokens, now, "decoupled")
    ends = [span.start_ms + span.ms for span in found[:-1]]
    assert ends == pytest.approx([span.start_ms for span in found[1:]])  # end to end
    return {span.name: span for span in found}


def test_nothing_has_begun_before_the_clock_starts() -> None:
    assert progress([], [], 9.0, "decoupled") == ()
    assert progress(MARKS[:1], [], 9.0, "decoupled") == ()


def test_the_last_stage_lasts_until_now() -> None:
    found = spans(MARKS[:4], [], 5.050)
    assert list(found) == ["load", "preprocess", "vision"]
    assert found["load"].ms == pytest.approx(10) and found["vision"].ms == pytest.approx(20)
    assert spans(MARKS[:4], [], 5.060)["vision"].ms == pytest.approx(30)  # it grows


def test_the_first_token_divides_decode() -> None:
    before = spans(MARKS, [], 5.080)
    assert list(before)[-1] == "decode.prefill"
    after = spans(MARKS, [90.0, 100.0], 5.110)
    assert after["decode.prefill"].ms == pytest.approx(20)
    assert after["decode.steps"].ms == pytest.approx(20)


def test_a_hooked_run_does_not_tell_vision_from_prefill() -> None:
    found = progress(MARKS[:4], [90.0], 5.110, "hooked")
    assert [span.name for span in found[2:]] == [GENERATE, "decode.steps"]
    assert found[2].ms == pytest.approx(60)

"""Two clocks read at one moment, CPU time, and a thread's wait for a core."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.machine import clocks


def ticking(
    monkeypatch: pytest.MonkeyPatch, first: list[float], second: list[float]
) -> Iterator[float]:
    """A first clock with these readings; the second one is put in the module's place."""
    readings = iter(second)
    monkeypatch.setattr(clocks, "second_s", lambda: next(readings))
    return iter(first)


def test_a_moment_is_the_middle_of_a_tight_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ticking(monkeypatch, [10.0, 10.00001], [77.0])
    found = clocks.moment(lambda: next(first))
    assert found.first_s == pytest.approx(10.000005) and found.second_s == 77.0
    assert found.width_s == pytest.approx(1e-5)


def test_a_bracket_with_a_pause_in_it_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread loses its core for 5 s within the first bracket, and not within the second."""
    first = ticking(monkeypatch, [10.0, 15.0, 15.0, 15.00001], [77.0, 82.0])
    found = clocks.moment(lambda: next(first))
    assert found.second_s == 82.0 and found.width_s < 1e-4


def test_the_narrowest_of_many_wide_brackets_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = [3.0, 1.0, *[2.0] * (clocks.TRIES - 2)]
    readings = [reading for width in widths for reading in (0.0, width)]
    first = ticking(monkeypatch, readings, list(range(clocks.TRIES)))
    found = clocks.moment(lambda: next(first))
    assert (found.width_s, found.second_s) == (1.0, 1)


def test_what_is_not_known_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "sunos")
    wait = clocks.ThreadWait()
    assert wait.ms() is None
    assert clocks.since(None, 3.0) is None and clocks.since(1.0, 3.0) == 2.0


def test_a_kernel_without_the_statistics_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clocks, "_SCHEDSTAT", f"{tmp_path}/absent")
    assert clocks.ThreadWait().ms() is None
    (tmp_path / "odd").write_text("0")
    monkeypatch.setattr(clocks, "_SCHEDSTAT", f"{tmp_path}/odd")
    assert clocks.ThreadWait().ms() is None


def test_the_wait_and_the_cpu_time_only_grow() -> None:
    wait, cpu = clocks.ThreadWait(), clocks.cpu_ms()
    first = wait.ms()
    sum(range(100_000))
    assert clocks.cpu_ms() > cpu
    later = clocks.since(first, wait.ms())
    assert later is None or later >= 0
    wait.close()
    assert wait.ms() is None

"""What the system's counters say during a run."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.machine import clocks, load_meter

STAT = """cpu  900 0 100 5000 0 0 0 30 0 0
cpu0 400 10 50 2500 7 1 2 10 0 0
cpu1 500 0 50 2500 0 0 0 20 0 0
procs_running 5
procs_blocked 0
"""


def test_only_the_cores_of_this_process_are_counted() -> None:
    both = load_meter._from_proc(STAT.splitlines(), frozenset({0, 1}))
    tick = 1000 / load_meter._TICK
    assert (both.busy_ms, both.steal_ms, both.runnable) == (1013 * tick, 30 * tick, 5)
    one = load_meter._from_proc(STAT.splitlines(), frozenset({0}))
    assert (one.busy_ms, one.steal_ms) == (463 * tick, 10 * tick)
    with pytest.raises(ValueError, match="lacks cpu7"):
        load_meter._from_proc(STAT.splitlines(), frozenset({0, 7}))


def test_elsewhere_psutil_is_asked_and_the_rest_is_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import psutil

    monkeypatch.setattr(load_meter, "_STAT", tmp_path / "absent")
    monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(user=2.0, system=1.0))
    every = frozenset(range(os.cpu_count() or 1))
    found = load_meter._counters(every)
    assert (found.busy_ms, found.steal_ms, found.runnable) == (3000.0, None, None)
    assert load_meter._counters(frozenset()) == load_meter._Counters()


def test_a_load_that_nobody_tells_is_none_and_never_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load_meter, "_counters", lambda cpus: load_meter._Counters())
    monkeypatch.setattr(clocks.ThreadWait, "ms", lambda self: None)
    found = load_meter.Meter(2).read()
    assert (found.others, found.steal, found.runnable, found.waited_ms) == (None,) * 4
    assert found.threads == 2 and found.wall_ms > 0 and not found.known


def test_others_are_what_this_process_did_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = iter([load_meter._Counters(1000.0, 50.0, 4), load_meter._Counters(2500.0, 150.0, 6)])
    monkeypatch.setattr(load_meter, "_counters", lambda cpus: next(counters))
    monkeypatch.setattr(load_meter, "_own_cpus", lambda: frozenset({0, 1}))
    cpu, wall = iter([0.0, 300.0]), iter([10.0, 11.0])
    monkeypatch.setattr(clocks, "cpu_ms", lambda: next(cpu))
    clock = SimpleNamespace(perf_counter=lambda: next(wall), time=lambda: 5.0)
    monkeypatch.setattr(load_meter, "time", clock)
    found = load_meter.Meter(1).read()
    assert found.wall_ms == pytest.approx(1000) and found.cpu_ms == 300 and found.began_s == 5.0
    assert found.others == pytest.approx(1.2) and found.steal == pytest.approx(0.1)
    assert found.runnable == 4.0  # the mean of 3 and 5, this thread taken off

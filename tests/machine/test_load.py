"""The rule that says when a machine is too busy, and what is never made of an unknown figure."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from engine.machine import load as meter
from engine.machine.load import MachineLoad, together, words


def load(**more: Any) -> MachineLoad:
    """One second on two cores by a run of one thread; quiet if nothing else is said."""
    quiet = {"waited_ms": 1.0, "others": 0.1, "steal": 0.0}
    base = {"began_s": 100.0, "wall_ms": 1000.0, "cpu_ms": 990.0, "cores": 2, "threads": 1}
    return MachineLoad(**(base | quiet | more))


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("waited for a core for 40%", {"waited_ms": 400.0}),
        ("others used 1.6 of 2 cores", {"others": 1.6}),
        ("others used 1.4 of 2 cores", {"others": 1.3, "steal": 0.1}),
        ("others used 0.6 of 2 cores", {"others": 0.6, "threads": 2}),
        ("other guests of the host took 0.3", {"steal": 0.3}),
        ("others used 1.6 of 2 cores", {"others": 1.6, "waited_ms": None}),
        ("waited for a core for 40%", {"waited_ms": 400.0, "others": None}),
    ],
)
def test_a_busy_machine_is_named_with_its_figures(what: str, more: dict[str, Any]) -> None:
    assert what in load(**more).busy


def test_several_runs_together() -> None:
    found = together([load(others=1.0), load(others=0.0, wall_ms=3000.0, began_s=50.0)])
    assert found is not None
    assert (found.began_s, found.wall_ms, found.cpu_ms) == (50.0, 4000.0, 1980.0)
    assert found.others == pytest.approx(0.25) and found.waited_ms == pytest.approx(2.0)
    assert together([]) is None


def test_one_unknown_makes_the_whole_unknown_and_not_zero() -> None:
    found = together([load(), load(others=None, waited_ms=None)])
    assert found is not None and found.others is None and found.waited_ms is None
    assert "others used" not in words(found)
    assert words(load(others=None, waited_ms=None)).endswith("is not known")


def times(**more: float) -> SimpleNamespace:
    return SimpleNamespace(user=4.0, nice=0.5, system=1.0, idle=90.0, **more)


def test_only_the_cores_of_this_process_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    linux = [times(irq=0.25, softirq=0.25, steal=0.125), times(irq=0.0, softirq=0.0, steal=0.25)]
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: linux)
    assert meter._counters(frozenset({0, 1})) == (11_500.0, 375.0)
    assert meter._counters(frozenset({0})) == (6_000.0, 125.0)
    assert meter._counters(frozenset({0, 7})) == meter._counters(frozenset()) == (None, None)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: [times()])  # macOS
    assert meter._counters(frozenset({0})) == (5_500.0, None)


def test_a_load_that_is_not_measured_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "_counters", lambda cpus: (None, None))
    monkeypatch.setattr(meter.ThreadWait, "ms", lambda self: None)
    found = meter.Meter(2).read()
    assert (found.others, found.steal, found.waited_ms) == (None,) * 3
    assert found.threads == 2 and found.wall_ms > 0


def test_what_is_not_known_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "sunos")
    wait = meter.ThreadWait()
    assert wait.ms() is None
    assert meter.since(None, 3.0) is None and meter.since(1.0, 3.0) == 2.0


def test_a_kernel_without_the_statistics_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(meter, "_SCHEDSTAT", f"{tmp_path}/absent")
    assert meter.ThreadWait().ms() is None
    (tmp_path / "odd").write_text("0")
    monkeypatch.setattr(meter, "_SCHEDSTAT", f"{tmp_path}/odd")
    assert meter.ThreadWait().ms() is None

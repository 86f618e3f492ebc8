"""The rule that says when a machine is too busy, and what is never made of an unknown figure."""

from __future__ import annotations

from typing import Any

import pytest

from engine.machine.load import MachineLoad, different, together, words


def load(**more: Any) -> MachineLoad:
    """One second on two cores by a run of one thread; quiet if nothing else is said."""
    quiet = {"waited_ms": 1.0, "others": 0.1, "steal": 0.0, "runnable": 0.0}
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


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"others": 1.0},  # beside the one core that the run needs
        {"others": 0.4, "threads": 2},
        {"waited_ms": 90.0},
        {"others": 2.0, "wall_ms": 14.0},  # two steps of the system's counter
        {"others": None, "waited_ms": None, "steal": None},
    ],
)
def test_what_is_not_measured_as_busy_is_not_called_so(more: dict[str, Any]) -> None:
    assert load(**more).busy == ""


def test_several_runs_together() -> None:
    found = together([load(others=1.0), load(others=0.0, wall_ms=3000.0, began_s=50.0)])
    assert found is not None
    assert (found.began_s, found.wall_ms, found.cpu_ms) == (50.0, 4000.0, 1980.0)
    assert found.others == pytest.approx(0.25) and found.waited_ms == pytest.approx(2.0)
    assert together([]) is None


def test_one_unknown_makes_the_whole_unknown_and_not_zero() -> None:
    found = together([load(), load(others=None, waited_ms=None)])
    assert found is not None and found.others is None and found.waited_ms is None
    assert not found.known and load().known
    assert "others used" not in words(found)
    assert words(load(others=None, waited_ms=None, runnable=None)).endswith("is not known")


def test_loads_differ_by_more_than_the_margin() -> None:
    assert different(load(others=1.4), load(others=0.1))
    assert different(load(waited_ms=400.0), load(waited_ms=20.0))
    assert not different(load(others=0.2), load(others=0.1))
    assert not different(load(others=1.4), load(others=None))

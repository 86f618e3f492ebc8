"""Spans on a run's clock, and the probe that adds up time inside modules."""

import threading
import time

import pytest
import torch

from engine import timing
from engine.timing import UNKNOWN, Timeline, Usage, VisionProbe

CPU = torch.device("cpu")


class Slow(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.01)
        return x


def test_spans_are_consecutive_and_within_the_total() -> None:
    timeline = Timeline(CPU)
    for name in ("one", "two"):
        with timeline.span(name):
            time.sleep(0.005)
    one, two = timeline.spans
    assert one.start_ms + one.ms <= two.start_ms
    assert two.start_ms + two.ms <= timeline.now()
    assert one.ms >= 5 and one.source == "measured"


def test_settled_waits_for_the_device_before_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    wait = lambda: waits.append(time.perf_counter())  # noqa: E731
    monkeypatch.setattr(timing, "synchronizer", lambda *_: wait)
    timeline = Timeline(CPU)
    ms, _ = timeline.settled()
    assert len(waits) == 2 and timeline._start + ms / 1000 >= waits[1]


def test_a_span_that_raises_is_not_recorded() -> None:
    timeline = Timeline(CPU)
    with pytest.raises(ValueError, match="broken"), timeline.span("one"):
        raise ValueError("broken")
    assert timeline.spans == []


def test_the_probe_adds_up_over_calls_and_modules() -> None:
    modules = [Slow(), Slow()]
    with VisionProbe(modules, CPU) as probe:
        for _ in range(3):
            modules[0](torch.ones(1))
        modules[1](torch.ones(1))
    assert probe.calls == [3, 1]
    assert probe.ms >= 40  # four sleeps: a probe that overwrites would keep one


def test_the_probe_does_not_count_another_thread() -> None:
    module = Slow()
    with VisionProbe([module], CPU) as probe:
        thread = threading.Thread(target=module, args=(torch.ones(1),))
        thread.start()
        thread.join()
    assert probe.ms == 0 and probe.calls == [0]


def test_the_probe_removes_its_hooks_even_after_an_error() -> None:
    module = Slow()
    with pytest.raises(ValueError, match="broken"), VisionProbe([module], CPU):
        raise ValueError("broken")
    assert not module._forward_hooks and not module._forward_pre_hooks


def test_a_span_has_its_cpu_time_and_not_that_of_a_sleep() -> None:
    timeline = Timeline(CPU)
    with timeline.span("computed"):
        sum(range(300_000))
    with timeline.span("slept"):
        time.sleep(0.02)
    computed, slept = timeline.spans
    assert computed.cpu_ms is not None and slept.cpu_ms is not None
    assert computed.cpu_ms > 0 and slept.cpu_ms < 20 <= slept.ms
    assert slept.waited_ms is None or slept.waited_ms >= 0


def test_the_probe_reads_usage_once_at_each_end_of_the_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reading costs more than the clock's, so it is not taken between two modules."""
    readings: list[float] = []

    def read(*_: object) -> Usage:
        readings.append(time.perf_counter())
        return Usage(float(len(readings)), 0.0)

    monkeypatch.setattr(timing, "usage", read)
    monkeypatch.setattr(timing.load, "TIGHT_S", 1.0)
    tower, projector = Slow(), Slow()
    with VisionProbe([tower, projector], CPU) as probe:
        for module in (tower, tower, projector):
            module(torch.ones(1))
        assert len(readings) == 2 and probe.used == Usage(1.0, 0.0)
        assert probe.ms <= 1000 * (readings[1] - readings[0]) + 5
        tower(torch.ones(1))
    assert probe.used == UNKNOWN  # where the stage ends is not known

"""Spans on a run's clock, and the probe that adds up time inside modules."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from engine.timing import Timeline, VisionProbe

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

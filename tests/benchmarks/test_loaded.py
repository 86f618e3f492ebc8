"""The conditions of a verification: every clock of the engine is slower, and only inside them."""

from __future__ import annotations

import time

import pytest
import torch

from benchmarks import loaded
from engine.machine.load import Meter
from engine.timing import Timeline

SLEEP_S = 0.02


def took() -> tuple[float, float, float]:
    """What a span, the second clock and the load meter say of one sleep, in ms."""
    meter, timeline = Meter(1), Timeline(torch.device("cpu"))
    with timeline.span("sleep"):
        time.sleep(SLEEP_S)
    timeline.end()
    second = 1000 * (timeline.ended.second_s - timeline.began.second_s)
    return timeline.spans[0].ms, second, meter.read().wall_ms


@pytest.mark.parametrize("slower", [0.2, 5.0])
def test_a_condition_changes_all_clocks_alike_and_ends(slower: float) -> None:
    threads = torch.get_num_threads()
    with loaded._under(loaded.Condition(threads=2, slower=slower)):
        assert torch.get_num_threads() == 2
        found = took()
    assert all(ms == pytest.approx(slower * 1000 * SLEEP_S, rel=0.9) for ms in found)
    assert min(took()) >= 1000 * SLEEP_S - 1 and torch.get_num_threads() == threads

"""The simulated event camera: polarity, order, counts, and noise that keeps the hour to itself."""

from __future__ import annotations

import numpy as np
import pytest

from engine.demo.demo_dataset import SEEDS
from engine.demo.scenes import FPS, render
from engine.demo.simulator import NOISE_HZ, simulate


def grey(levels: list[int], height: int = 40, width: int = 50) -> np.ndarray:
    return np.stack([np.full((height, width, 3), level, np.uint8) for level in levels])


def test_brighter_fires_positive_and_darker_negative() -> None:
    frames = grey([60, 60])
    frames[1, 5, 7] = 200
    frames[1, 9, 3] = 15
    events = simulate(frames, 20, seed=1)
    brighter = (events.y == 5) & (events.x == 7)
    darker = (events.y == 9) & (events.x == 3)
    assert brighter.sum() >= 5 and np.mean(events.p[brighter]) > 0.8
    assert darker.sum() >= 5 and np.mean(events.p[darker]) < 0.2


def test_events_are_sorted_and_typed() -> None:
    events = simulate(render(SEEDS[0]).frames, FPS, SEEDS[0])
    assert np.all(np.diff(events.t) >= 0)
    assert events.t[0] >= 0 and events.t[-1] < 1e6
    assert (events.x.dtype, events.y.dtype) == (np.uint16, np.uint16)
    assert (events.t.dtype, events.p.dtype) == (np.int64, np.uint8)
    assert set(np.unique(events.p)) == {0, 1}
    assert (events.width, events.height) == (160, 120)
    assert events.x.max() == 159 and events.y.max() == 119


def test_a_ramp_fires_evenly_in_time() -> None:
    levels = np.exp(np.linspace(np.log(46), np.log(246), 11)) - 6
    events = simulate(grey([round(level) for level in levels]), 20, seed=3)
    counts = np.histogram(events.t, bins=5, range=(0, 500_000))[0]
    assert counts.min() > 0.7 * counts.max()
    per_pixel = len(events.t) / (40 * 50)
    assert per_pixel == pytest.approx(np.log(246 / 46) / 0.18, rel=0.15)


def test_noise_is_the_same_by_day_and_by_night() -> None:
    counts = [len(simulate(grey([level] * 20, 120, 160), 20, seed=5).t) for level in (8, 180)]
    assert counts[0] == counts[1]
    assert counts[0] == pytest.approx(NOISE_HZ * 120 * 160 * 0.95, rel=0.1)


@pytest.mark.loads
def test_counts_are_those_of_a_real_camera() -> None:
    counts = [len(simulate(render(seed).frames, FPS, seed).t) for seed in SEEDS]
    assert 25_000 < np.median(counts) < 100_000
    assert min(counts) > 15_000 and max(counts) < 130_000

"""The simulated event camera: polarity, order, counts, and noise that keeps the hour to itself."""

import numpy as np
import pytest

from engine.demo.writing import simulate


def grey(levels: list[int], height: int = 40, width: int = 50) -> np.ndarray:
    return np.stack([np.full((height, width, 3), level, np.uint8) for level in levels])


def test_a_ramp_fires_evenly_in_time() -> None:
    levels = np.exp(np.linspace(np.log(46), np.log(246), 11)) - 6
    events = simulate(grey([round(level) for level in levels]), 20, seed=3)
    counts = np.histogram(events.t, bins=5, range=(0, 500_000))[0]
    assert counts.min() > 0.7 * counts.max()
    per_pixel = len(events.t) / (40 * 50)
    assert per_pixel == pytest.approx(np.log(246 / 46) / 0.18, rel=0.15)

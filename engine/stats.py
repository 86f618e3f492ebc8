"""Figures that hold: a median with its spread, an interval by the bootstrap.

Boundary: numbers in, numbers out; numpy alone.  Pairs are made by the caller: a ratio or difference
per sample goes in here, never two means.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

DRAWS = 2000
LEVEL = 0.95
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """n values by their median and their median absolute deviation from it (not scaled)."""

    median: float
    mad: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Interval:
    """A median and the 95 % percentile-bootstrap interval around it."""

    median: float
    low: float
    high: float
    n: int

    @property
    def width(self) -> float:
        return self.high - self.low


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value; ValueError for none."""
    if not len(values):
        raise ValueError("a spread needs at least one value")
    found = np.asarray(values, dtype=np.float64)
    middle = float(np.median(found))
    mad = float(np.median(np.abs(found - middle)))
    return Spread(middle, mad, float(found.min()), float(found.max()), len(found))


def bootstrap(
    values: Sequence[float], groups: Sequence[Hashable] | None = None, seed: int = 0
) -> Interval:
    """The median of n values, resampled; whole groups at a time where values depend on each other.

    Efron's percentile method.  Values of one group (the clips of one sequence) are drawn together.
    """
    found = np.asarray(values, dtype=np.float64)
    if not len(found):
        raise ValueError("an interval needs at least one value")
    generator = np.random.default_rng(seed)
    medians = _by_group(found, groups, generator) if groups else _alone(found, generator)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(float(np.median(found)), float(low), float(high), len(found))


def _alone(values: Floats, generator: np.random.Generator) -> Floats:
    drawn = generator.integers(0, len(values), (DRAWS, len(values)))
    medians: Floats = np.median(values[drawn], axis=1)
    return medians


def _by_group(values: Floats, groups: Sequence[Hashable], generator: np.random.Generator) -> Floats:
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    parts = [values[indices] for indices in members.values()]
    drawn = generator.integers(0, len(parts), (DRAWS, len(parts)))
    return np.array([np.median(np.concatenate([parts[i] for i in one])) for one in drawn])

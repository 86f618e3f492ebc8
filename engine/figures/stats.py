"""Figures that hold: a median with its spread, an interval by the bootstrap.

Boundary: numbers in, numbers out; numpy alone.  Pairs are made by the caller: a ratio or difference
per sample goes in here, never two means.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

DRAWS = 2000
LEVEL = 0.95
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_CELLS = 500_000  # numbers at a time, so that memory does not grow with n


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
    medians = _medians(found, _numbered(groups, len(found)), np.random.default_rng(seed))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(float(np.median(found)), float(low), float(high), len(found))


def _numbered(groups: Sequence[Hashable] | None, n: int) -> Ints:
    """Each value's group as a number; without groups every value is one of its own."""
    if groups is None:
        return np.arange(n)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups])


def _medians(values: Floats, group: Ints, generator: np.random.Generator) -> Floats:
    """DRAWS medians.  A draw says how often each group was drawn; the values stay sorted, and the
    median is where half of the draw's weight is passed: no draw is ever laid out."""
    order = np.argsort(values, kind="stable")
    ordered, belongs = values[order], group[order]
    count = int(group.max()) + 1
    step = max(1, _CELLS // max(len(values), count))
    parts = []
    for start in range(0, DRAWS, step):
        many = min(step, DRAWS - start)
        drawn = generator.multinomial(count, np.full(count, 1 / count), size=many)
        parts.append(_weighted_medians(ordered, drawn.astype(np.int32)[:, belongs]))
    return np.concatenate(parts)


def _weighted_medians(ordered: Floats, weights: npt.NDArray[np.integer[Any]]) -> Floats:
    """ordered [n], weights [draws, n] whole numbers -> medians [draws], as if values repeated."""
    passed = np.cumsum(weights, axis=1, dtype=np.int32)
    total = passed[:, -1]
    lower = (passed >= ((total + 1) // 2)[:, None]).argmax(axis=1)
    upper = (passed >= ((total + 2) // 2)[:, None]).argmax(axis=1)
    medians: Floats = (ordered[lower] + ordered[upper]) / 2
    return medians

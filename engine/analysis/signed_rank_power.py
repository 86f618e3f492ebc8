"""The power of the signed-rank test of a gate, and how many sequences it needs.

The statistic is the sum of the ranks of the values above 0.  Its mean and variance for any
distribution follow from three probabilities (E. L. Lehmann, Nonparametrics, 1975, section 4.2); the
statistic counts as normal.  A test compares this form with simulated tests.

Boundary: numbers in, numbers out; numpy only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from engine.analysis.sign_power import MOST, POWER
from engine.analysis.statistics import LEVEL, MAX_MORE, MIN_CLUSTERS

Floats = npt.NDArray[np.float64]
_NORMAL = NormalDist()
_LEVEL_Z = _NORMAL.inv_cdf((1 + LEVEL) / 2)  # one direction of a gate
_CDF = np.vectorize(_NORMAL.cdf, otypes=[np.float64])


@dataclass(frozen=True)
class RankShape:
    """Of independent values x, y, z: P(x > 0), P(x + y > 0), P(x + y > 0 and x + z > 0)."""

    one: float
    two: float
    three: float


def shape(values: Floats) -> RankShape:
    """The probabilities for values that are drawn from these, [n]; equality counts half."""
    sums = values[:, None] + values[None, :]
    above = (np.sign(sums) + 1) / 2
    each = above.mean(axis=1)
    one = float(((np.sign(values) + 1) / 2).mean())
    return RankShape(one, float(each.mean()), float((each**2).mean()))


def power(sequences: int, found: RankShape) -> float:
    """The probability that the test of so many sequences finds that the centre is above 0; 0 for
    fewer than MIN_CLUSTERS."""
    if sequences < MIN_CLUSTERS:
        return 0.0
    return float(_CDF(_distances(np.array([float(sequences)]), found))[0])


def needed(found: RankShape) -> int | None:
    """The fewest sequences from which on the power is at least POWER; None if no practical number
    is enough."""
    if found.two <= 0.5:
        return None
    counts = np.arange(MIN_CLUSTERS, MOST + 1, dtype=np.float64)
    short = np.flatnonzero(_distances(counts, found) < _NORMAL.inv_cdf(POWER))
    if not len(short):
        return MIN_CLUSTERS
    if short[-1] + 1 < len(counts):
        return int(counts[short[-1] + 1])
    spread = _LEVEL_Z / math.sqrt(3) + _NORMAL.inv_cdf(POWER) * 2 * math.sqrt(
        max(0.0, found.three - found.two**2)
    )
    many = math.ceil((spread / (found.two - 0.5)) ** 2)
    return max(many, MOST + 1) if many <= MAX_MORE else None


def _distances(counts: Floats, found: RankShape) -> Floats:
    """How many standard deviations the mean of the statistic is above the test's limit."""
    one, two, three = found.one, found.two, found.three
    pairs = counts * (counts - 1) / 2
    mean = counts * one + pairs * two
    variance = (
        2 * pairs * (counts - 2) * (three - two**2)
        + pairs * (2 * (one - two) ** 2 + 3 * two * (1 - two))
        + counts * one * (1 - one)
    )
    middle = counts * (counts + 1) / 4
    limit = middle + _LEVEL_Z * np.sqrt(middle * (2 * counts + 1) / 6)
    distances: Floats = (mean - limit) / np.sqrt(np.maximum(variance, 1e-9))
    return distances

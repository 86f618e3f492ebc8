"""The power of the exact sign test, and how many sequences it needs.

A comparison has a conclusion if the exact interval of statistics.median_interval excludes equality.
That depends only on how many sequences are on one side of equality.  So the power follows from one
number: the `share` of sequences that a real difference puts on that side.

Boundary: numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from engine.analysis.statistics import MAX_MORE, MIN_CLUSTERS, interval_rank

POWER = 0.8
MOST = 1000  # numbers of sequences whose power is computed exactly; above, by the normal form
_TWO_SIDED, _POWER_Z = 1.959964, 0.841621  # normal quantiles of statistics.LEVEL and POWER
Floats = npt.NDArray[np.float64]


def power(sequences: int, share: float) -> float:
    """The probability that the interval of so many sequences excludes equality on the right side.

    0 for fewer than MIN_CLUSTERS sequences, which give no interval.
    """
    if sequences < MIN_CLUSTERS:
        return 0.0
    return float(_powers(np.array([sequences]), np.array([_least(sequences)]), share)[0])


def needed(share: float) -> int | None:
    """The fewest sequences from which on the power is at least POWER.

    None if no practical number suffices: the share is one half or less, or too near to it.
    """
    if share <= 0.5:
        return None
    counts, least = _table()
    short = np.flatnonzero(_powers(counts, least, share) < POWER)
    if not len(short):
        return int(counts[0])
    if short[-1] + 1 < len(counts):
        return int(counts[short[-1] + 1])
    spread = _TWO_SIDED / 2 + _POWER_Z * math.sqrt(share * (1 - share))
    many = math.ceil((spread / (share - 0.5)) ** 2)
    return max(many, MOST + 1) if many <= MAX_MORE else None


def _least(sequences: int) -> int:
    """How many sequences must be on one side, so that the interval excludes equality."""
    return sequences - interval_rank(sequences) + 1


@lru_cache(maxsize=1)
def _table() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers of sequences from MIN_CLUSTERS to MOST, and _least() of each."""
    counts = np.arange(MIN_CLUSTERS, MOST + 1)
    return counts, np.array([_least(int(count)) for count in counts])


def _powers(counts: Iterable[int], least: Iterable[int], share: float) -> Floats:
    """P(B >= least) for B binomial (count, share)."""
    from scipy.special import betainc

    several, enough = np.asarray(counts), np.asarray(least)
    found: Floats = betainc(enough, several - enough + 1, share)
    return found

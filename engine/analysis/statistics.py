"""A median with its spread, and the exact interval of a median.

The caller makes the pairs: one ratio or difference per sample, never two means.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
MIN_CLUSTERS = 6  # by chance five signs are equal in 1 of 16 cases, six in 1 of 32
MAX_MORE = 1_000_000
Floats = npt.NDArray[np.float64]
_STEPS = 500  # numbers of clusters tried one by one
_NORMAL = 1.96


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
    """A median over clusters and its 95 % interval.

    n values in `clusters` independent clusters.  With fewer than MIN_CLUSTERS the ends are the
    smallest and the greatest value and cover less than 95 %; no conclusion may use them.
    """

    median: float
    low: float
    high: float
    n: int
    clusters: int = 0

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class WinShare:
    """A share of n independent cases, from 0 to 1, and its 95 % interval."""

    share: float
    low: float
    high: float
    n: int


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value; ValueError for none."""
    if not len(values):
        raise ValueError("a spread needs at least one value")
    found = np.asarray(values, dtype=np.float64)
    middle = float(np.median(found))
    mad = float(np.median(np.abs(found - middle)))
    return Spread(middle, mad, float(found.min()), float(found.max()), len(found))


def median_interval(
    values: Sequence[float], groups: Sequence[Hashable] | None = None, ratios: bool = False
) -> Interval:
    """The median over clusters with the exact interval of the sign test.

    Values of one group (the clips of one sequence) depend on each other: a group counts once, by
    the median of its values.  Without groups each value counts.  The interval is between two order
    statistics, the inversion of the sign test (W. R. Thompson, "On confidence ranges for the
    median", 1936): it leaves the true median out in at most 5 % of cases, whatever the
    distribution is, and equal values only widen it.

    ratios: the middle of two values is their geometric mean, so that a/b and b/a give inverse
    figures; all values must be positive.
    """
    found = cluster_medians(values, groups, ratios)
    count = len(found)
    rank = max(1, interval_rank(count))
    ends = float(found[rank - 1]), float(found[count - rank])
    return Interval(_middle(found, ratios), *ends, len(values), count)


def cluster_medians(
    values: Sequence[float], groups: Sequence[Hashable] | None = None, ratios: bool = False
) -> Floats:
    """The median of each group [clusters], ascending; ValueError for no values."""
    found = np.asarray(values, dtype=np.float64)
    if not len(found):
        raise ValueError("an interval needs at least one value")
    if groups is None:
        return np.sort(found)
    members: dict[Hashable, list[float]] = {}
    for value, group in zip(found.tolist(), groups, strict=True):
        members.setdefault(group, []).append(value)
    medians = [_middle(np.sort(np.array(some)), ratios) for some in members.values()]
    return np.sort(np.array(medians))


def _middle(ordered: Floats, ratios: bool) -> float:
    """The median of values in ascending order [n]."""
    count = len(ordered)
    low, high = float(ordered[(count - 1) // 2]), float(ordered[count // 2])
    if low == high:
        return low
    return math.sqrt(low) * math.sqrt(high) if ratios else (low + high) / 2


@lru_cache(maxsize=4096)
def interval_rank(count: int) -> int:
    """k, such that the kth smallest and the kth greatest of `count` values are the interval's ends.

    The greatest k with 2 P(B < k) <= 0.05 for B binomial (count, 1/2); 0 below MIN_CLUSTERS.
    """
    numbers = np.arange(count + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    logs = factorials[count] - factorials[numbers] - factorials[count - numbers]
    tails = np.cumsum(np.exp(logs - count * math.log(2)))
    return int(np.sum(2 * tails <= 1 - LEVEL))


def share_interval(wins: int, count: int) -> WinShare:
    """`wins` of `count` independent cases, with the exact interval of Clopper and Pearson (1934).

    It excludes one half exactly where the sign test does.  ValueError for no cases.
    """
    if not 0 <= wins <= count or not count:
        raise ValueError("a share needs at least one case")
    return WinShare(wins / count, *exact_share(wins / count, count), count)


def exact_share(share: float, cases: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval; the number of cases need not be whole."""
    from scipy.special import betaincinv  # slow to import

    tail, right = (1 - level) / 2, share * cases
    low = float(betaincinv(right, cases - right + 1, tail)) if share > 0 else 0.0
    high = float(betaincinv(right + 1, cases - right, 1 - tail)) if share < 1 else 1.0
    return low, high


def more_clusters(medians: Floats, equal: float) -> int | None:
    """How many more clusters would leave `equal` out of the interval, as printed.

    Assumes that the share of clusters on the larger side stays the same.  None if neither side has
    more than half of them, or if more than MAX_MORE would be needed.
    """
    shown = np.array([float(printed(value)) for value in medians])
    side, count = max(int((shown > equal).sum()), int((shown < equal).sum())), len(shown)
    if 2 * side <= count:
        return None
    for more in range(1, _STEPS):
        total = count + more
        if total - (side * total) // count < interval_rank(total):
            return more
    # n p - n / 2 = 1.96 sqrt(n) / 2, the normal form of the sign test
    many = math.ceil((_NORMAL / (2 * side / count - 1)) ** 2) - count
    return many if many <= MAX_MORE else None


def printed(value: float) -> str:
    """An end of an interval as reports print it; verdicts use this value."""
    return f"{value:.3g}"

"""A median with its spread and exact interval; p-values against a limit, Holm, and planning.

The caller makes the pairs: one ratio or difference per sample, never two means.

below() and above() are Wilcoxon's signed-rank test (F. Wilcoxon, 1945) of independent values, one
per sequence, which it assumes to be symmetric about their centre.  Ratios of two runs of the same
code are, on a log scale: exchanging the runs changes their sign.

power() and needed() plan with the exact sign test.  A comparison has a conclusion if the interval
of median_interval excludes equality.  That depends only on how many sequences are on one side of
equality, so the power follows from the `share` that a real difference puts there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
MIN_CLUSTERS = 6  # by chance five signs are equal in 1 of 16 cases, six in 1 of 32
MAX_MORE = 1_000_000
Floats = npt.NDArray[np.float64]
_STEPS = 500  # numbers of clusters tried one by one
EXACT = 60  # values; the distribution of more is close to the normal one
POWER = 0.8
MOST = 1000  # numbers of sequences whose power is computed exactly; above, by the normal form
TWO_SIDED, POWER_Z = 1.959964, 0.841621  # normal quantiles of LEVEL and POWER
_HALVINGS = 24  # of the range of the values: finer than any printed figure


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


@dataclass(frozen=True)
class WinShare:
    """A share of n independent cases, from 0 to 1, and its 95 % interval."""

    share: float
    low: float
    high: float
    n: int


def spread(values: Sequence[float] | Floats) -> Spread:
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
    from scipy.special import bdtr  # slow to import

    return int(np.sum(2 * bdtr(np.arange(count + 1), count, 0.5) <= 1 - LEVEL))


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
    many = math.ceil((1.96 / (2 * side / count - 1)) ** 2) - count
    return many if many <= MAX_MORE else None


def printed(value: float) -> str:
    """An end of an interval as reports print it; verdicts use this value."""
    return f"{value:.3g}"


def below(values: Floats) -> float:
    """p of "the centre is 0 or above": small if the values lie below 0.

    Zeros count as if they spoke against it, so that equal values give no false verdict.
    """
    ranks, negative = _ranks(values)
    total, count = float(ranks[~negative].sum()), len(ranks)
    if not count:
        return 1.0
    # P(sum of the ranks with sign + <= total), each sign by a fair coin
    if count <= EXACT:
        doubled = tuple(sorted(int(2 * rank) for rank in ranks))  # mean ranks are halves
        return float(_distribution(doubled)[: round(2 * total) + 1].sum())
    mean, variance = float(ranks.sum()) / 2, float((ranks**2).sum()) / 4
    return NormalDist().cdf((total + 0.5 - mean) / math.sqrt(variance))


def above(values: Floats) -> float:
    """p of "the centre is 0 or below"."""
    return below(-values)


def _ranks(values: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The ranks of the sizes, equal sizes by their mean, and which values are below 0."""
    sizes = np.abs(values)
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place], values < 0


@lru_cache(maxsize=512)
def _distribution(doubled: tuple[int, ...]) -> Floats:
    """P(sum = s) of doubled ranks, s from 0 on."""
    chances = np.zeros(sum(doubled) + 1)
    chances[0] = 1.0
    for rank in doubled:
        with_it = np.zeros_like(chances)
        with_it[rank:] = chances[: len(chances) - rank]
        chances = (chances + with_it) / 2
    return chances


def centre(values: Floats) -> float:
    """Hodges and Lehmann's estimate: where the signed-rank sums are equal."""

    def surplus(shift: float) -> bool:
        ranks, negative = _ranks(values - shift)
        return float(ranks[negative].sum()) < float(ranks.sum()) / 2

    return _crossing(surplus, values)


def interval(values: Floats, tail: float) -> tuple[float, float]:
    """The centres that neither test rejects at `tail`; all values' range if there are too few."""
    low = _crossing(lambda shift: above(values - shift) <= tail, values)
    high = _crossing(lambda shift: below(values - shift) > tail, values)
    return low, high


def _crossing(holds: Callable[[float], bool], values: Floats) -> float:
    """Where `holds` ends to be true, between the least and the greatest value."""
    low, high = float(values.min()), float(values.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def holm(chances: Sequence[float]) -> list[float]:
    """p-values adjusted by Holm (1979): those <= a have an error rate of a for all together."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    found, least = [0.0] * len(chances), 0.0
    for place, index in enumerate(order):
        least = max(least, min(1.0, (len(chances) - place) * chances[index]))
        found[index] = least
    return found


def power(sequences: int, share: float) -> float:
    """The probability that the interval of so many sequences excludes equality on the right side.

    0 for fewer than MIN_CLUSTERS sequences, which give no interval.
    """
    from scipy.special import betainc

    if sequences < MIN_CLUSTERS:
        return 0.0
    rank = interval_rank(sequences)  # so many on the other side give an interval with equality
    return float(betainc(sequences - rank + 1, rank, share))


def needed(share: float) -> int | None:
    """The fewest sequences from which on the power is at least POWER.

    None if no practical number suffices: the share is one half or less, or too near to it.
    """
    from scipy.special import betainc

    if share <= 0.5:
        return None
    counts, ranks = _ranks_of_counts()
    short = np.flatnonzero(betainc(counts - ranks + 1, ranks, share) < POWER)
    if not len(short):
        return int(counts[0])
    if short[-1] + 1 < len(counts):
        return int(counts[short[-1] + 1])
    spread = TWO_SIDED / 2 + POWER_Z * math.sqrt(share * (1 - share))
    many = math.ceil((spread / (share - 0.5)) ** 2)
    return max(many, MOST + 1) if many <= MAX_MORE else None


@lru_cache(maxsize=1)
def _ranks_of_counts() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers of sequences from MIN_CLUSTERS to MOST, and interval_rank() of each."""
    counts = np.arange(MIN_CLUSTERS, MOST + 1)
    return counts, np.array([interval_rank(int(count)) for count in counts])

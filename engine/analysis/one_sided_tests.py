"""Whether a centre lies below or above a limit: exact signed-rank test, interval, Holm.

The values are one per sequence and independent.  Wilcoxon's signed-rank test (F. Wilcoxon, 1945)
assumes in addition that they are symmetric about their centre.  Ratios of two runs of the same code
are, on a log scale: exchanging the runs changes their sign.

power() and needed() plan with the exact sign test.  A comparison has a conclusion if the interval
of statistics.median_interval excludes equality.  That depends only on how many sequences are on one
side of equality, so the power follows from the `share` that a real difference puts there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from engine.analysis.statistics import MAX_MORE, MIN_CLUSTERS, interval_rank

Floats = npt.NDArray[np.float64]
EXACT = 60  # values; the distribution of more is close to the normal one
POWER = 0.8
MOST = 1000  # numbers of sequences whose power is computed exactly; above, by the normal form
_TWO_SIDED, _POWER_Z = 1.959964, 0.841621  # normal quantiles of statistics.LEVEL and POWER
_HALVINGS = 24  # of the range of the values: finer than any printed figure


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

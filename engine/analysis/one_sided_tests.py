"""Whether a centre lies below or above a limit: exact signed-rank test, interval, Holm.

The values are one per sequence and independent.  Wilcoxon's signed-rank test (F. Wilcoxon, 1945)
assumes in addition that they are symmetric about their centre.  Ratios of two runs of the same code
are, on a log scale: exchanging the runs changes their sign.

Boundary: numbers in, numbers out; numpy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
EXACT = 60  # values; the distribution of more is close to the normal one
_HALVINGS = 24  # of the range of the values: finer than any printed figure


def below(values: Floats) -> float:
    """p of "the centre is 0 or above": small if the values lie below 0.

    Zeros count as if they spoke against it, so that equal values give no false verdict.
    """
    ranks, negative = _ranks(values)
    return _tail(ranks, float(ranks[~negative].sum()))


def above(values: Floats) -> float:
    """p of "the centre is 0 or below"."""
    return below(-values)


def _ranks(values: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The ranks of the sizes, equal sizes by their mean, and which values are below 0."""
    sizes = np.abs(values)
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place], values < 0


def _tail(ranks: Floats, total: float) -> float:
    """P(sum of the ranks with sign + <= total), each sign by a fair coin."""
    count = len(ranks)
    if not count:
        return 1.0
    if count <= EXACT:
        doubled = tuple(sorted(int(2 * rank) for rank in ranks))  # mean ranks are halves
        return float(_distribution(doubled)[: round(2 * total) + 1].sum())
    mean, variance = float(ranks.sum()) / 2, float((ranks**2).sum()) / 4
    return NormalDist().cdf((total + 0.5 - mean) / math.sqrt(variance))


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

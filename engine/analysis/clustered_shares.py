"""A share of cases that depend on each other within clusters, and its 95 % interval.

The interval of E. L. Korn and B. I. Graubard (1998): that of Clopper and Pearson on the effective
number of cases, which the design effect of the clusters and the t quantiles reduce.  Two changes
keep its coverage where clusters are few and where a share is near 0 or 1 (docs/intervals.md):
- the correlation within clusters is estimated, and the estimate is moved towards 1 as if PRIOR
  more clusters spoke for 1; if all cases are right, nothing else is known of the correlation, so
  each cluster counts about once;
- the effective number is never above the number of cases, so the interval is never narrower than
  that of independent cases.

A difference of two shares of the same cases is the share that only the first got right minus the
share that only the second got right.  Its interval combines those of the two (MOVER; R. G.
Newcombe, 1998; G. Y. Zou and A. Donner, 2008) with their correlation, which is negative: that of
independent cases, or that between the clusters where it is stronger.

The interval of any other function of sums (jackknife_interval) is the jackknife's over whole
clusters (J. W. Tukey, 1958): the figure is computed again without each cluster, and the spread of
these values gives its standard error.  Student's t with the effective number of clusters minus 1,
(sum of weights)^2 / sum of weights^2 - 1, as degrees of freedom widens the interval if clusters are
few or if a few of them hold most records.

Fewer than MIN_CLUSTERS clusters give no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.analysis.statistics import LEVEL, MIN_CLUSTERS, exact_share

Floats = npt.NDArray[np.float64]
PRIOR = 1.0  # clusters that speak for a correlation of 1
UPPER = 0.98  # not 0.975: skewed figures of few clusters need the margin (docs/intervals.md)
_HALVINGS = 24


@dataclass(frozen=True)
class ClusteredShare:
    """The mean of n values in `clusters` clusters; no ends for fewer than MIN_CLUSTERS.

    Values from 0 to 1 give a share, values from -1 to 1 a difference of shares.
    """

    share: float
    low: float | None
    high: float | None
    n: int
    clusters: int

    @property
    def ends(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def clustered_share(values: Sequence[float], clusters: Sequence[Hashable]) -> ClusteredShare:
    """The mean of values from 0 to 1; ValueError for none."""
    sums, sizes = _by_cluster(values, clusters)
    low, high = _ends(sums, sizes) or (None, None)
    return ClusteredShare(float(sums.sum() / sizes.sum()), low, high, len(values), len(sizes))


def clustered_difference(
    differences: Sequence[float], clusters: Sequence[Hashable], level: float = LEVEL
) -> ClusteredShare:
    """The mean of values from -1 to 1, with an interval of another level than 95 % if it is given;
    ValueError for none."""
    values = np.asarray(differences, dtype=np.float64)
    more, sizes = _by_cluster(values.clip(min=0).tolist(), clusters)
    less, _ = _by_cluster((-values).clip(min=0).tolist(), clusters)
    first, second = (float(sums.sum() / sizes.sum()) for sums in (more, less))
    ends, other = _ends(more, sizes, level), _ends(less, sizes, level)
    if ends is None or other is None:
        return ClusteredShare(first - second, None, None, len(values), len(sizes))
    together = _correlation(more - first * sizes, less - second * sizes, first, second)
    margins = [
        math.sqrt(mine**2 + theirs**2 - 2 * together * mine * theirs)
        for mine, theirs in (
            (first - ends[0], other[1] - second),
            (ends[1] - first, second - other[0]),
        )
    ]
    low, high = first - second - margins[0], first - second + margins[1]
    return ClusteredShare(first - second, max(-1.0, low), min(1.0, high), len(values), len(sizes))


def _correlation(more: Floats, less: Floats, first: float, second: float) -> float:
    """Between two shares of which a case is in one at most, by their residuals per cluster."""
    alone = (
        -math.sqrt(first * second / ((1 - first) * (1 - second))) if first + second < 1 else -1.0
    )
    size = math.sqrt(float((more**2).sum() * (less**2).sum()))
    return min(alone, float((more * less).sum()) / size) if size > 0 else alone


def _by_cluster(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """The sum and the number of values of each cluster."""
    if not len(values):
        raise ValueError("a share needs at least one value")
    places: dict[Hashable, int] = {}
    rows = [places.setdefault(cluster, len(places)) for cluster in clusters]
    sums, sizes = np.zeros(len(places)), np.zeros(len(places))
    np.add.at(sums, rows, np.asarray(values, dtype=np.float64))
    np.add.at(sizes, rows, 1.0)
    return sums, sizes


def _ends(sums: Floats, sizes: Floats, level: float = LEVEL) -> tuple[float, float] | None:
    """Of [clusters] sums of values from 0 to 1."""
    if len(sizes) < MIN_CLUSTERS:
        return None
    cases, share = float(sizes.sum()), float(sums.sum() / sizes.sum())
    effective = cases / _design_effect(sums, sizes, share)
    if 0 < share < 1:  # the variance was estimated
        from scipy.special import stdtrit  # Student's t; slow to import

        freedom = [cases - 1, cases**2 / float((sizes**2).sum()) - 1]
        few, fewer = stdtrit(np.maximum(1.0, freedom), (1 + level) / 2)
        effective *= float(few / fewer) ** 2
    return exact_share(share, min(cases, effective), level)


def _design_effect(sums: Floats, sizes: Floats, share: float) -> float:
    """1 + correlation * (cases that a case shares its cluster with)."""
    cases, count = float(sizes.sum()), len(sizes)
    others = float((sizes**2).sum()) / cases - 1
    if others <= 0:
        return 1.0
    spread, found = share * (1 - share), 0.0
    if spread > 0:
        variance = count / (count - 1) * float(((sums - share * sizes) ** 2).sum()) / cases**2
        found = min(1.0, max(0.0, (variance * cases / spread - 1) / others))
    known = 4 * spread * cases**2 / float((sizes**2).sum())  # clusters that tell of it
    weight = PRIOR / (PRIOR + known)
    return 1 + others * (found * (1 - weight) + weight)


def chance(values: Sequence[float], sequences: Sequence[str], limit: float, upwards: bool) -> float:
    """p of "the difference is at most `limit`" (upwards), or at least: the smallest tail whose
    interval leaves the limit out."""

    def outside(tail: float) -> bool:
        found = clustered_difference(values, sequences, 1 - 2 * tail)
        if found.low is None or found.high is None:
            return False
        return found.low > limit if upwards else found.high < limit

    low, high = math.log(1e-9), math.log(0.499)
    if not outside(math.exp(high)):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if outside(math.exp(middle)) else (middle, high)
    return math.exp(high)


def jackknife_interval(
    columns: Floats, clusters: Sequence[Hashable], figure: Callable[[Floats], Floats]
) -> tuple[float, float] | None:
    """The interval of figure(column sums); None for fewer than MIN_CLUSTERS clusters.

    columns [records, k], the first column being the records' weights; figure takes sums [n, k] and
    returns [n] values on a scale where they are roughly symmetric (log, log odds).
    """
    from scipy.special import stdtrit

    numbers: dict[Hashable, int] = {}
    rows = [numbers.setdefault(name, len(numbers)) for name in clusters]
    count = len(numbers)
    if count < MIN_CLUSTERS:
        return None
    table = np.zeros((count, columns.shape[1]))
    np.add.at(table, rows, columns)
    whole, weights = table.sum(axis=0), table[:, 0]
    value = float(figure(whole[None])[0])
    without = figure(whole - table)
    error = math.sqrt((count - 1) / count * float(((without - value) ** 2).sum()))
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    half = error * float(stdtrit(round(max(1.0, effective - 1), 2), UPPER))
    return (value - half, value + half) if math.isfinite(value + half) else None

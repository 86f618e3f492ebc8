"""A median with its spread and exact interval; the shift between two lists of values; p-values
against a limit, and Holm.

The caller makes the pairs: one ratio or difference per sample, never two means.

below() and above() are Wilcoxon's signed-rank test (F. Wilcoxon, 1945) of independent values, one
per sequence, which it assumes to be symmetric about their centre.  Ratios of two runs of the same
code are, on a log scale: exchanging the runs changes their sign.

A share of cases that depend on each other within clusters has the interval of E. L. Korn and B. I.
Graubard (1998), changed for few clusters and for shares near 0 or 1 as docs/results.md says.  If
all cases are right, nothing is known of their correlation, so each cluster counts about once.
The interval of a difference of two shares of the same cases combines those of "only the first" and
"only the second" (MOVER; R. G. Newcombe, 1998; G. Y. Zou and A. Donner, 2008) with their
correlation, which is negative: that of independent cases, or that between the clusters where it is
stronger.

Fewer than MIN_CLUSTERS clusters give no interval.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
MIN_CLUSTERS = 6  # by chance five signs are equal in 1 of 16 cases, six in 1 of 32
FEWEST_REPEATS = 4  # in each of two lists: three against three are apart by chance in 1 of 10 cases
MAX_MORE = 1_000_000
Floats = npt.NDArray[np.float64]
_STEPS = 500  # numbers of clusters tried one by one
EXACT = 60  # values; the distribution of more is close to the normal one
_HALVINGS = 24  # of the range of a p-value
PRIOR = 1.0  # clusters that speak for a correlation of 1
UPPER = 0.98  # not 0.975: skewed figures of few clusters need the margin (docs/results.md)


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
    """A median over clusters and its 95 % interval.  n values in `clusters` independent clusters.
    With fewer than MIN_CLUSTERS the ends are the smallest and the greatest value and cover less
    than 95 %; no conclusion may use them."""

    median: float
    low: float
    high: float
    n: int
    clusters: int = 0


@dataclass(frozen=True)
class ClusteredShare:
    """The mean of n values in `clusters` clusters; no ends for fewer than MIN_CLUSTERS.  Values
    from 0 to 1 give a share, values from -1 to 1 a difference of shares."""

    share: float
    low: float | None
    high: float | None
    n: int
    clusters: int

    @property
    def ends(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


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


def shift_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of how far the values of b lie above those of a; None for too few.  The
    inversion of the exact rank-sum test, between two of the ordered differences of all pairs (J. L.
    Hodges and E. L. Lehmann, 1963): it leaves 0 out if the test decides."""
    differences = np.sort(np.subtract.outer(b, a), axis=None)
    orders, below, rank = math.comb(len(a) + len(b), len(a)), 0, 0
    while 2 * (below := below + _orders(len(a), len(b), rank)) <= (1 - LEVEL) * orders:
        rank += 1
    return (float(differences[rank - 1]), float(differences[-rank])) if rank else None


@lru_cache(maxsize=4096)
def _orders(m: int, n: int, above: int) -> int:
    """The orders of m and n different values in which `above` of the m n pairs have the one of the
    m above the one of the n (H. B. Mann and D. R. Whitney, 1947)."""
    if above < 0 or not m or not n:
        return int(above == 0)
    return _orders(m - 1, n, above - n) + _orders(m, n - 1, above)


def cluster_of(sequence: str | None, sample: str) -> str:
    """Samples of one cluster depend on each other: those of a sequence.  A sample without one
    is a cluster of its own."""
    return sequence or f"\x1f{sample}"  # pandas ends a text at a zero byte


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
    The greatest k with 2 P(B < k) <= 0.05 for B binomial (count, 1/2); 0 below MIN_CLUSTERS."""
    from scipy.special import bdtr  # slow to import

    return int(np.sum(2 * bdtr(np.arange(count + 1), count, 0.5) <= 1 - LEVEL))


def exact_share(share: float, cases: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval; the number of cases need not be whole."""
    from scipy.special import betaincinv  # slow to import

    tail, right = (1 - level) / 2, share * cases
    low = float(betaincinv(right, cases - right + 1, tail)) if share > 0 else 0.0
    high = float(betaincinv(right + 1, cases - right, 1 - tail)) if share < 1 else 1.0
    return low, high


def more_clusters(medians: Floats, equal: float) -> int | None:
    """How many more clusters would leave `equal` out of the interval, as printed.  Assumes that the
    share of clusters on the larger side stays the same.  None if neither side has more than half of
    them, or if more than MAX_MORE would be needed."""
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
    """p of "the centre is 0 or above": small if the values lie below 0.  Zeros count as if they
    spoke against it, so that equal values give no false verdict."""
    from scipy.stats import rankdata  # slow to import

    ranks = rankdata(np.abs(values))  # equal sizes by their mean
    against, count = float(ranks[values >= 0].sum()), len(ranks)
    if count <= EXACT:
        doubled = tuple(sorted(int(2 * rank) for rank in ranks))  # mean ranks are halves
        return float(_rank_sums(doubled)[: round(2 * against) + 1].sum())
    mean, variance = float(ranks.sum()) / 2, float((ranks**2).sum()) / 4
    return NormalDist().cdf((against + 0.5 - mean) / math.sqrt(variance))


def above(values: Floats) -> float:
    """p of "the centre is 0 or below"."""
    return below(-values)


@lru_cache(maxsize=512)
def _rank_sums(doubled: tuple[int, ...]) -> Floats:
    """P(sum = s) of doubled ranks, each taken by a fair coin, s from 0 on."""
    chances = np.ones(1)
    for rank in doubled:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    return chances


def centre(values: Floats) -> float:
    """Hodges and Lehmann's estimate: where the signed-rank sums are equal."""
    return float(np.median(_walsh(values)))


def interval(values: Floats, tail: float) -> tuple[float, float]:
    """The centres that neither test rejects at `tail`; all values' range if there are too few."""
    count, means = len(values), _walsh(values)
    if count <= EXACT:
        sums = _rank_sums(tuple(range(2, 2 * count + 1, 2)))[::2]
        rank = int((np.cumsum(sums) <= tail).sum())
    else:
        mean, variance = len(means) / 2, count * (count + 1) * (2 * count + 1) / 24
        rank = math.floor(mean + NormalDist().inv_cdf(tail) * math.sqrt(variance) + 0.5)
    rank = max(1, rank)
    return float(means[rank - 1]), float(means[-rank])


def _walsh(values: Floats) -> Floats:
    """The mean of every two values, and each value itself, ascending."""
    first, second = np.triu_indices(len(values))
    return np.sort((values[first] + values[second]) / 2)


def holm(chances: Sequence[float]) -> list[float]:
    """p-values adjusted by Holm (1979): those <= a have an error rate of a for all together."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    found, least = [0.0] * len(chances), 0.0
    for place, index in enumerate(order):
        least = max(least, min(1.0, (len(chances) - place) * chances[index]))
        found[index] = least
    return found


def clustered_share(values: Sequence[float], clusters: Sequence[Hashable]) -> ClusteredShare:
    """The mean of values from 0 to 1; ValueError for none."""
    columns = np.column_stack([values, np.ones(len(values))])
    sums, sizes = _by_cluster(columns, clusters)
    low, high = _ends(sums, sizes) or (None, None)
    return ClusteredShare(float(sums.sum() / sizes.sum()), low, high, len(values), len(sizes))


def clustered_difference(
    differences: Sequence[float], clusters: Sequence[Hashable], level: float = LEVEL
) -> ClusteredShare:
    """The mean of values from -1 to 1, with an interval of another level than 95 % if it is given;
    ValueError for none."""
    values = np.asarray(differences, dtype=np.float64)
    columns = np.column_stack([values.clip(min=0), (-values).clip(min=0), np.ones(len(values))])
    more, less, sizes = _by_cluster(columns, clusters)
    first, second = (float(sums.sum() / sizes.sum()) for sums in (more, less))
    ends, other = _ends(more, sizes, level), _ends(less, sizes, level)
    if ends is None or other is None:
        return ClusteredShare(first - second, None, None, len(values), len(sizes))
    together = _correlation(more - first * sizes, less - second * sizes, first, second)
    sides = ((first - ends[0], other[1] - second), (ends[1] - first, second - other[0]))
    margins = [
        math.sqrt(mine**2 + theirs**2 - 2 * together * mine * theirs) for mine, theirs in sides
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


def _by_cluster(columns: Floats, clusters: Sequence[Hashable]) -> Floats:
    """The sums [k, clusters] of columns [records, k]; ValueError without records."""
    if not len(columns):
        raise ValueError("a share needs at least one value")
    places: dict[Hashable, int] = {}
    rows = [places.setdefault(cluster, len(places)) for cluster in clusters]
    sums = np.zeros((columns.shape[1], len(places)))
    np.add.at(sums.T, rows, columns)
    return sums


def _ends(sums: Floats, sizes: Floats, level: float = LEVEL) -> tuple[float, float] | None:
    """Of [clusters] sums of values from 0 to 1."""
    if len(sizes) < MIN_CLUSTERS:
        return None
    cases, share = float(sizes.sum()), float(sums.sum() / sizes.sum())
    effective = cases / _design_effect(sums, sizes, share)
    if 0 < share < 1:  # the variance was estimated
        from scipy.special import stdtrit  # Student's t

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
    """The interval of figure(column sums); None for fewer than MIN_CLUSTERS clusters.  columns
    [records, k], the first column being the records' weights; figure takes sums [n, k] and returns
    [n] values on a scale where they are roughly symmetric (log, log odds)."""
    from scipy.special import stdtrit

    table = np.ascontiguousarray(_by_cluster(columns, clusters).T)
    count = len(table)
    if count < MIN_CLUSTERS:
        return None
    whole, weights = table.sum(axis=0), table[:, 0]
    value = float(figure(whole[None])[0])
    without = figure(whole - table)
    error = math.sqrt((count - 1) / count * float(((without - value) ** 2).sum()))
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    half = error * float(stdtrit(round(max(1.0, effective - 1), 2), UPPER))
    return (value - half, value + half) if math.isfinite(value + half) else None

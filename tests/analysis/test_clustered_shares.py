"""The interval of a share: exact without clusters, wider with them, honest in simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchmarks import intervals
from benchmarks.intervals import accuracy_misses, difference_misses
from engine.analysis import statistics
from engine.analysis.statistics import (
    clustered_difference,
    clustered_share,
    exact_share,
    jackknife_interval,
)


@pytest.mark.parametrize(("right", "count"), [(0, 6), (3, 6), (9, 40), (40, 40), (199, 200)])
def test_without_clusters_it_is_the_exact_interval(right: int, count: int) -> None:
    found = clustered_share([1.0] * right + [0.0] * (count - right), range(count))
    known = exact_share(right / count, count)
    assert (found.share, found.n, found.clusters) == (right / count, count, count)
    assert (found.low, found.high) == pytest.approx(known)


def test_it_is_never_narrower_than_the_simple_one() -> None:
    generator = np.random.default_rng(0)
    for _ in range(300):
        sizes = generator.integers(1, 6, size=int(generator.integers(6, 30)))
        values = generator.integers(0, 2, size=int(sizes.sum())).astype(float)
        groups = np.repeat(np.arange(len(sizes)), sizes).tolist()
        found, known = (
            clustered_share(values, groups),
            exact_share(float(values.mean()), len(values)),
        )
        assert found.low is not None and found.high is not None
        assert found.low <= known[0] + 1e-9 and found.high >= known[1] - 1e-9
        assert 0 <= found.low <= found.share <= found.high <= 1


def test_answers_that_agree_within_clusters_count_once() -> None:
    groups = [number // 10 for number in range(200)]
    whole = clustered_share([float(group % 2) for group in groups], groups)
    apart = clustered_share([float(number % 2) for number in range(200)], groups)
    assert whole.share == apart.share == 0.5
    assert whole.high is not None and whole.low is not None and apart.high and apart.low
    assert whole.high - whole.low > 2 * (apart.high - apart.low)
    perfect = clustered_share([1.0] * 200, groups)
    assert perfect.low == pytest.approx(exact_share(1.0, 20)[0]) and perfect.high == 1.0


def test_fewer_than_six_clusters_give_no_interval() -> None:
    five = clustered_share([1.0, 0.0] * 5, [n // 2 for n in range(10)])
    assert (five.low, five.high, five.clusters, five.share) == (None, None, 5, 0.5)
    assert clustered_share([1.0, 0.0] * 6, [n // 2 for n in range(12)]).low is not None
    assert clustered_difference([1.0, 0.0] * 5, [n // 2 for n in range(10)]).low is None
    with pytest.raises(ValueError, match="at least one"):
        clustered_share([], [])


def test_a_difference_has_the_sign_of_the_better_one() -> None:
    groups = [n // 4 for n in range(80)]
    better = clustered_difference([1.0, 1.0, 1.0, 0.0] * 20, groups)
    worse = clustered_difference([-1.0, -1.0, -1.0, 0.0] * 20, groups)
    none = clustered_difference([1.0, -1.0, 0.0, 0.0] * 20, groups)
    same = clustered_difference([0.0] * 80, groups)
    assert better.low is not None and better.low > 0 and worse.high is not None and worse.high < 0
    assert (better.low, better.high) == pytest.approx((-worse.high, -(worse.low or 0)))
    assert none.low is not None and none.high is not None and none.low < 0 < none.high
    assert same.low is not None and same.high is not None and same.low < 0 < same.high
    assert clustered_difference([1.0] * 80, groups).high == 1.0


def test_a_model_that_wins_where_the_other_loses_has_a_wider_interval() -> None:
    """The correlation of the two shares is a part of it: without it, 0.083 to 0.533 would be a
    conclusion."""
    values = [1.0] * 20 + [-1.0] * 4 + [0.0] * 24
    found = clustered_difference(values, [number % 12 for number in range(48)])
    assert (found.low, found.high) == pytest.approx((-0.021, 0.592), abs=5e-4)


def test_few_clusters_vary_more_than_their_sums_show() -> None:
    """By the factor count / (count - 1); without it, the interval is 0.205 to 0.862."""
    found = clustered_share([1.0] * 22 + [0.0] * 18, [number // 4 for number in range(40)])
    assert (found.low, found.high) == pytest.approx((0.190, 0.874), abs=5e-4)


@pytest.mark.loads
@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_coverage(share: float, correlation: float) -> None:
    """At most 5 % and three standard errors; the plain interval fails this (the next test)."""
    assert accuracy_misses(20, share, correlation, 400)["misses"] <= 0.05 + 3 * 0.011


@pytest.mark.loads
def test_control_an_interval_that_ignores_clusters_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = lambda right, groups: clustered_share(right, range(len(groups)))  # noqa: E731
    monkeypatch.setattr(intervals, "clustered_share", alone)
    assert accuracy_misses(20, 0.5, 1.0, 400)["misses"] > 0.2


@pytest.mark.loads
def test_coverage_of_differences() -> None:
    assert difference_misses(20, 0.3, 0.1, 0.3, 300)["misses"] <= 0.05 + 3 * 0.0126


def mean(sums: statistics.Floats) -> statistics.Floats:
    found: statistics.Floats = sums[:, 1] / sums[:, 0]
    return found


def test_of_single_records_it_is_the_t_interval_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=12)
    columns = np.column_stack([np.ones(12), values])
    found = jackknife_interval(columns, range(12), mean)
    half = scipy_stats.t.ppf(statistics.UPPER, 11) * values.std(ddof=1) / math.sqrt(12)
    assert found == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-4)


def test_records_of_one_cluster_are_one_piece_of_evidence() -> None:
    values = np.random.default_rng(1).normal(size=8)
    once = jackknife_interval(np.column_stack([np.ones(8), values]), range(8), mean)
    five = np.column_stack([np.ones(40), np.repeat(values, 5)])
    assert jackknife_interval(five, np.repeat(np.arange(8), 5).tolist(), mean) == pytest.approx(
        once
    )


def test_one_large_cluster_widens_the_interval() -> None:
    values = np.random.default_rng(2).normal(size=8)
    weights = np.array([50.0, *[1.0] * 7])
    even = jackknife_interval(np.column_stack([np.ones(8), values]), range(8), mean)
    heavy = jackknife_interval(np.column_stack([weights, weights * values]), range(8), mean)
    assert even is not None and heavy is not None
    assert heavy[1] - heavy[0] > even[1] - even[0]


def test_fewer_than_six_clusters_give_none() -> None:
    columns = np.ones((5, 2))
    assert jackknife_interval(columns, range(5), mean) is None
    assert jackknife_interval(np.ones((6, 2)), range(6), mean) == (1.0, 1.0)


@pytest.mark.loads
@pytest.mark.parametrize("count", [6, 10])
def test_the_true_rate_is_seldom_left_out(count: int) -> None:
    assert intervals.share_misses(count, trials=150) <= 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5

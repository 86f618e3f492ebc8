"""Medians, shares and intervals against values worked out by hand, scipy and simulation."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.stats import wilcoxon

from benchmarks import intervals
from benchmarks.intervals import difference_misses
from engine.analysis import statistics
from engine.analysis.statistics import (
    above,
    below,
    centre,
    clustered_difference,
    clustered_share,
    exact_share,
    holm,
    interval,
    jackknife_interval,
)  # fmt: skip


def test_spread_by_hand() -> None:
    found = statistics.spread([5.0, 1.0, 2.0, 100.0, 3.0])
    assert (found.median, found.mad, found.low, found.high, found.n) == (3.0, 2.0, 1.0, 100.0, 5)


def test_nothing_has_no_spread_and_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one"):
        statistics.spread([])
    with pytest.raises(ValueError, match="at least one"):
        statistics.median_interval([])


def test_the_interval_by_hand() -> None:
    """Six values: 2 / 2^6 outside the whole range. Nine: 2 (1 + 9) / 2^9 outside the second."""
    found = statistics.median_interval([3.0, 1.0, 9.0, 4.0, 7.0, 2.0])
    assert found == statistics.Interval(3.5, 1.0, 9.0, 6, 6)
    found = statistics.median_interval([float(n) for n in range(9)])
    assert (found.low, found.median, found.high) == (1.0, 4.0, 7.0)


def test_five_values_carry_no_interval_of_95_percent() -> None:
    assert [statistics.interval_rank(count) for count in range(1, 6)] == [0] * 5
    found = statistics.median_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.high, found.clusters) == (1.0, 5.0, 5)


def test_equal_values_leave_no_doubt_and_widen_no_conclusion() -> None:
    equal = statistics.median_interval([2.0] * 9)
    assert equal.low == equal.high
    ties = statistics.median_interval([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert ties.low == 0.0  # two of nine at the tested value: not excluded


def test_a_group_counts_once_by_its_median() -> None:
    values = [1.0, 2.0, 3.0, 50.0, 60.0, *range(4, 9)]
    groups = ["a", "a", "a", "b", "b", *range(5)]
    found = statistics.median_interval(values, groups)
    assert found == statistics.Interval(6.0, 2.0, 55.0, 10, 7)


def test_a_ratio_and_its_inverse_have_inverse_intervals() -> None:
    values = [0.5, 2.0, 3.0, 0.25, 8.0, 1.5, 4.0, 0.8]
    groups = [0, 0, 1, 1, 2, 3, 4, 5]
    one = statistics.median_interval(values, groups, ratios=True)
    other = statistics.median_interval([1 / value for value in values], groups, ratios=True)
    assert one.median == pytest.approx(1 / other.median)
    assert (one.low, one.high) == (pytest.approx(1 / other.high), pytest.approx(1 / other.low))


@pytest.mark.loads
def test_what_no_number_of_clusters_decides() -> None:
    assert statistics.more_clusters(np.array([0.5, 0.5, 2.0, 2.0]), 1.0) is None
    assert statistics.more_clusters(np.array([1.0001] * 9), 1.0) is None  # printed as 1
    close = np.array([2.0] * 1_001 + [0.5] * 999)
    assert statistics.more_clusters(close, 1.0) is None
    some = statistics.more_clusters(np.array([2.0] * 505 + [0.5] * 495), 1.0)
    assert some is not None and 30_000 < some < 45_000


@pytest.mark.loads
@pytest.mark.parametrize("kind", intervals.KINDS)
@pytest.mark.parametrize("count", [6, 9, 14])
def test_at_most_five_percent_of_no_effects_are_decided(kind: str, count: int) -> None:
    """Three standard errors of the simulation are allowed: 5 % of 1,000 is up to 7.1 %."""
    share = intervals.false_verdicts(kind, count, trials=1_000, seed=3)
    assert share <= 0.05 + 3 * (0.05 * 0.95 / 1_000) ** 0.5


@pytest.mark.parametrize("count", [6, 14, 60, 61, 200])
def test_the_test_is_wilcoxons(count: int) -> None:
    values = np.random.default_rng(count).normal(-0.3, size=count)
    method = "exact" if count <= 60 else "asymptotic"
    expected = wilcoxon(values, alternative="less", method=method, correction=count > 60)
    assert below(values) == pytest.approx(expected.pvalue, rel=1e-6)
    assert above(-values) == below(values)


def test_equal_sizes_are_exact_and_zeros_speak_against_a_verdict() -> None:
    assert below(np.full(5, -0.1)) == 1 / 32
    assert above(np.full(5, -0.1)) == 1.0
    assert below(np.zeros(9)) == 1.0 and above(np.zeros(9)) == 1.0
    assert below(np.array([-1.0, -1.0, 1.0])) == 0.5  # 4 of the 8 signs have at most one +


def test_the_interval_holds_what_the_tests_do_not_reject() -> None:
    values = np.random.default_rng(1).normal(0.2, 0.1, size=20)
    low, high = interval(values, 0.025)
    assert low < centre(values) < high
    assert centre(-values) == pytest.approx(-centre(values))
    assert above(values - (low - 1e-4)) <= 0.025 < above(values - (low + 1e-4))
    assert below(values - (high + 1e-4)) <= 0.025 < below(values - (high - 1e-4))
    assert interval(np.ones(9), 0.025) == (1.0, 1.0)
    assert interval(np.array([1.0, 2.0, 4.0]), 0.025) == pytest.approx((1.0, 4.0))  # too few
    assert centre(np.array([0.0, 1.0, 4.0])) == 1.5  # of 0, 0.5, 1, 2, 2.5, 4


def test_holm_is_the_step_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == [] and holm([0.6, 0.9]) == [1.0, 1.0]


@pytest.mark.parametrize(("right", "count"), [(0, 6), (9, 40), (40, 40)])
def test_a_share_without_clusters_has_the_exact_interval(right: int, count: int) -> None:
    found = clustered_share([1.0] * right + [0.0] * (count - right), range(count))
    known = exact_share(right / count, count)
    assert (found.share, found.n, found.clusters) == (right / count, count, count)
    assert (found.low, found.high) == pytest.approx(known)


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
    assert jackknife_interval(np.ones((5, 2)), range(5), mean) is None
    assert jackknife_interval(np.ones((6, 2)), range(6), mean) == (1.0, 1.0)
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
def test_coverage_of_differences() -> None:
    assert difference_misses(20, 0.3, 0.1, 0.3, 300)["misses"] <= 0.05 + 3 * 0.0126


def mean(sums: statistics.Floats) -> statistics.Floats:
    found: statistics.Floats = sums[:, 1] / sums[:, 0]
    return found


def test_of_single_records_the_jackknife_has_the_t_interval_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=12)
    columns = np.column_stack([np.ones(12), values])
    found = jackknife_interval(columns, range(12), mean)
    half = scipy_stats.t.ppf(statistics.UPPER, 11) * values.std(ddof=1) / math.sqrt(12)
    assert found == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-4)


@pytest.mark.loads
@pytest.mark.parametrize("count", [6, 10])
def test_the_true_rate_is_seldom_left_out(count: int) -> None:
    assert intervals.share_misses(count, trials=150) <= 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5

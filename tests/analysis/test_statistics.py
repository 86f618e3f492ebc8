"""Medians, spreads and intervals against values worked out by hand, scipy and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.stats import mannwhitneyu

from benchmarks import intervals
from engine.analysis import statistics
from engine.analysis.statistics import above, below, centre, holm, interval

COUNTS = (*range(6, 41), 99, 100, 200, 1_000, 5_000)


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


@pytest.mark.parametrize("count", COUNTS)
def test_an_end_excludes_a_value_where_the_exact_sign_test_does(count: int) -> None:
    """The interval's rank is the greatest at which binomtest rejects; one more would not."""
    rank = statistics.interval_rank(count)
    assert scipy_stats.binomtest(rank - 1, count).pvalue <= 0.05
    assert scipy_stats.binomtest(rank, count).pvalue > 0.05


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
    assert found == statistics.median_interval([2.0, 55.0, 4.0, 5.0, 6.0, 7.0, 8.0]).__class__(
        6.0, 2.0, 55.0, 10, 7
    )


def test_a_ratio_and_its_inverse_have_inverse_intervals() -> None:
    values = [0.5, 2.0, 3.0, 0.25, 8.0, 1.5, 4.0, 0.8]
    groups = [0, 0, 1, 1, 2, 3, 4, 5]
    one = statistics.median_interval(values, groups, ratios=True)
    other = statistics.median_interval([1 / value for value in values], groups, ratios=True)
    assert one.median == pytest.approx(1 / other.median)
    assert (one.low, one.high) == (pytest.approx(1 / other.high), pytest.approx(1 / other.low))


@pytest.mark.parametrize(("side", "count"), [(5, 6), (6, 7), (12, 20), (60, 100)])
def test_so_many_more_clusters_decide_and_one_fewer_does_not(side: int, count: int) -> None:
    medians = np.array([2.0] * side + [0.5] * (count - side))
    assert statistics.median_interval(list(medians)).low < 1
    more = statistics.more_clusters(medians, 1.0)
    assert more is not None

    def decided(more: int) -> bool:
        beyond = side * (count + more) // count
        values = [2.0] * beyond + [0.5] * (count + more - beyond)
        return statistics.median_interval(values).low > 1

    assert decided(more) and not any(decided(fewer) for fewer in range(1, more))


@pytest.mark.loads
def test_what_no_number_of_clusters_decides() -> None:
    assert statistics.more_clusters(np.array([0.5, 0.5, 2.0, 2.0]), 1.0) is None
    assert statistics.more_clusters(np.array([1.0001] * 9), 1.0) is None  # printed as 1
    close = np.array([2.0] * 10_001 + [0.5] * 9_999)
    assert statistics.more_clusters(close, 1.0) is None
    some = statistics.more_clusters(np.array([2.0] * 505 + [0.5] * 495), 1.0)
    assert some is not None and 30_000 < some < 45_000


@pytest.mark.loads
@pytest.mark.parametrize("kind", intervals.KINDS)
@pytest.mark.parametrize("count", [6, 7, 8, 9, 14])
def test_at_most_five_percent_of_no_effects_are_decided(kind: str, count: int) -> None:
    """Three standard errors of the simulation are allowed: 5 % of 1,000 is up to 7.1 %."""
    share = intervals.false_verdicts(kind, count, trials=1_000, seed=3)
    assert share <= 0.05 + 3 * (0.05 * 0.95 / 1_000) ** 0.5


@pytest.mark.loads
def test_control_a_narrower_interval_decides_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    rank = statistics.interval_rank
    monkeypatch.setattr(statistics, "interval_rank", lambda count: rank(count) + 1)
    assert intervals.false_verdicts("normal", 7, trials=1_000, seed=3) > 0.08


@pytest.mark.parametrize("seed", range(20))
def test_a_shift_is_decided_as_by_scipys_exact_rank_sum_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, shift = rng.integers(2, 9, 2), rng.uniform(-2, 2)
    a, b = rng.normal(size=sizes[0]), rng.normal(size=sizes[1]) + shift
    found = statistics.shift_interval(a, b)
    decided = found is not None and not found[0] <= 0 <= found[1]
    assert decided == (mannwhitneyu(a, b, method="exact").pvalue <= 0.05)


def test_three_values_against_three_have_no_interval() -> None:
    assert statistics.shift_interval([1, 2, 3], [7, 8, 9]) is None
    fewest = [*range(statistics.FEWEST_REPEATS)]
    assert statistics.shift_interval(fewest, [n + 10 for n in fewest]) == (7, 13)


def test_many_values_are_no_burden() -> None:
    found = statistics.median_interval(list(np.random.default_rng(4).normal(size=100_000)))
    assert found.low < found.median < found.high and found.high - found.low < 0.02


@pytest.mark.parametrize(("wins", "count"), [(0, 1), (1, 1), (7, 9), (5, 10), (60, 100), (0, 40)])
def test_the_interval_of_a_share_is_the_exact_one(wins: int, count: int) -> None:
    exact = scipy_stats.binomtest(wins, count).proportion_ci(0.95, "exact")
    found = statistics.exact_share(wins / count, count)
    assert found == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize("count", [6, 14, 60, 61, 200])
def test_the_test_is_wilcoxons(count: int) -> None:
    from scipy.stats import wilcoxon

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


def test_the_centre_of_an_even_number_of_pairs_is_between_the_middle_two() -> None:
    assert centre(np.array([0.0, 1.0, 4.0])) == 1.5  # of 0, 0.5, 1, 2, 2.5, 4


def test_too_few_values_give_their_range() -> None:
    low, high = interval(np.array([1.0, 2.0, 4.0]), 0.025)
    assert low == pytest.approx(1.0) and high == pytest.approx(4.0)


def test_holm_is_the_step_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == [] and holm([0.6, 0.9]) == [1.0, 1.0]

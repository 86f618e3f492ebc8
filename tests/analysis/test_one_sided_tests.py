"""The signed-rank test against scipy, its interval, Holm's adjustment, and planning."""

from __future__ import annotations

import numpy as np
import pytest

from engine.analysis import one_sided_tests, statistics
from engine.analysis.one_sided_tests import above, below, centre, holm, interval


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
    assert above(values - (low - 1e-4)) <= 0.025 < above(values - (low + 1e-4))
    assert below(values - (high + 1e-4)) <= 0.025 < below(values - (high - 1e-4))
    assert interval(np.ones(9), 0.025) == (1.0, 1.0)


def test_too_few_values_give_their_range() -> None:
    low, high = interval(np.array([1.0, 2.0, 4.0]), 0.025)
    assert low == pytest.approx(1.0) and high == pytest.approx(4.0)


def test_holm_is_the_step_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == [] and holm([0.6, 0.9]) == [1.0, 1.0]


@pytest.mark.parametrize(("sequences", "shift"), [(14, 1.0), (40, 0.4)])
def test_the_closed_form_is_the_share_of_simulated_conclusions(
    sequences: int, shift: float
) -> None:
    generator = np.random.default_rng(1)
    drawn = generator.normal(shift, 1, size=(1500, sequences))
    decided = np.mean([statistics.median_interval(list(values)).low > 0 for values in drawn])
    share = float((generator.normal(shift, 1, size=200_000) > 0).mean())
    assert abs(one_sided_tests.power(sequences, share) - decided) < 0.04
    assert abs(one_sided_tests.power(sequences, share - 0.1) - decided) > 0.1  # control


@pytest.mark.parametrize("share", [0.6, 0.8, 0.95, 1.0])
def test_the_needed_number_has_the_power_and_one_less_does_not(share: float) -> None:
    found = one_sided_tests.needed(share)
    assert found is not None
    later = [one_sided_tests.power(found + more, share) for more in range(20)]
    assert min(later) >= one_sided_tests.POWER
    assert found == 6 or one_sided_tests.power(found - 1, share) < one_sided_tests.POWER


def test_large_numbers_are_by_the_normal_form() -> None:
    found = one_sided_tests.needed(0.53)
    assert found is not None and found > one_sided_tests.MOST
    assert abs(one_sided_tests.power(found, 0.53) - one_sided_tests.POWER) < 0.02


def test_no_number_is_enough_without_a_larger_side() -> None:
    assert one_sided_tests.needed(0.5) is None and one_sided_tests.needed(0.3) is None
    assert one_sided_tests.needed(0.5001) is None  # more than a million
    assert one_sided_tests.power(5, 1.0) == 0.0  # no interval

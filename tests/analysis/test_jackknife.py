"""Intervals of figures made of sums: against formulas, scipy and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchmarks import intervals
from engine.analysis import jackknife


def mean(sums: jackknife.Floats) -> jackknife.Floats:
    found: jackknife.Floats = sums[:, 1] / sums[:, 0]
    return found


@pytest.mark.parametrize("freedom", [1.0, 1.5, 4.0, 29.0, 999.0])
def test_the_quantile_is_that_of_student(freedom: float) -> None:
    wanted = scipy_stats.t.ppf(jackknife.UPPER, freedom)
    assert jackknife.t_quantile(freedom) == pytest.approx(wanted, rel=1e-5)


def test_of_single_records_it_is_the_t_interval_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=12)
    columns = np.column_stack([np.ones(12), values])
    found = jackknife.ends(columns, range(12), mean)
    half = scipy_stats.t.ppf(jackknife.UPPER, 11) * values.std(ddof=1) / math.sqrt(12)
    assert found == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-4)


def test_records_of_one_cluster_are_one_piece_of_evidence() -> None:
    values = np.random.default_rng(1).normal(size=8)
    once = jackknife.ends(np.column_stack([np.ones(8), values]), range(8), mean)
    five = np.column_stack([np.ones(40), np.repeat(values, 5)])
    assert jackknife.ends(five, np.repeat(np.arange(8), 5).tolist(), mean) == pytest.approx(once)


def test_one_large_cluster_widens_the_interval() -> None:
    values = np.random.default_rng(2).normal(size=8)
    weights = np.array([50.0, *[1.0] * 7])
    even = jackknife.ends(np.column_stack([np.ones(8), values]), range(8), mean)
    heavy = jackknife.ends(np.column_stack([weights, weights * values]), range(8), mean)
    assert even is not None and heavy is not None
    assert heavy[1] - heavy[0] > even[1] - even[0]


def test_fewer_than_six_clusters_give_none() -> None:
    columns = np.ones((5, 2))
    assert jackknife.ends(columns, range(5), mean) is None
    assert jackknife.ends(np.ones((6, 2)), range(6), mean) == (1.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, 10])
def test_the_true_rate_is_seldom_left_out(count: int) -> None:
    assert intervals.share_misses(count, trials=150) <= 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5

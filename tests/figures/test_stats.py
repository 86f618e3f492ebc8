"""Medians, spreads and intervals against values worked out by hand or by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from engine.figures import stats


def test_spread_by_hand() -> None:
    found = stats.spread([5.0, 1.0, 2.0, 100.0, 3.0])
    assert (found.median, found.mad, found.low, found.high, found.n) == (3.0, 2.0, 1.0, 100.0, 5)


def test_nothing_has_no_spread_and_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one"):
        stats.spread([])
    with pytest.raises(ValueError, match="at least one"):
        stats.bootstrap([])


def test_equal_values_leave_no_doubt_and_the_same_seed_gives_the_same() -> None:
    assert stats.bootstrap([2.0] * 9).width == 0
    values = list(np.random.default_rng(1).normal(size=30))
    assert stats.bootstrap(values) == stats.bootstrap(values)


@pytest.mark.slow
def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    found = [stats.bootstrap(list(generator.normal(size=25))) for _ in range(200)]
    covered = sum(one.low <= 0 <= one.high for one in found)
    assert 180 <= covered <= 199


def test_values_that_depend_on_each_other_widen_the_interval() -> None:
    generator = np.random.default_rng(2)
    centres = generator.normal(size=8)
    values = [float(c + 0.01 * generator.normal()) for c in centres for _ in range(20)]
    groups = [g for g in range(8) for _ in range(20)]
    assert stats.bootstrap(values, groups).width > 2 * stats.bootstrap(values).width


def laid_out(values: list[float], weights: list[int]) -> float:
    return float(np.median(np.repeat(values, weights)))


def test_a_weighted_median_is_that_of_the_values_laid_out() -> None:
    generator = np.random.default_rng(3)
    for n in (1, 2, 5, 8):
        values = np.sort(generator.normal(size=n))
        weights = generator.integers(0, 4, (20, n)) + np.eye(1, n, dtype=int)
        found = stats._weighted_medians(values, weights)
        wanted = [laid_out(list(values), list(row)) for row in weights]
        assert found == pytest.approx(wanted)


def test_drawing_by_group_is_as_drawing_whole_groups() -> None:
    """The same multinomial draws, laid out by hand, give the same medians."""
    values, groups = [1.0, 5.0, 2.0, 8.0, 3.0], ["a", "a", "b", "c", "c"]
    numbers = stats._numbered(groups, 5)
    assert list(numbers) == [0, 0, 1, 2, 2]
    found = stats._medians(np.array(values), numbers, np.random.default_rng(0))
    drawn = np.random.default_rng(0).multinomial(3, [1 / 3] * 3, size=stats.DRAWS)
    order = [values.index(v) for v in sorted(values)]
    wanted = [laid_out(sorted(values), [row[numbers[i]] for i in order]) for row in drawn[:50]]
    assert list(found[:50]) == pytest.approx(wanted)


@pytest.mark.slow
def test_many_values_need_no_more_memory_at_a_time() -> None:
    found = stats.bootstrap(list(np.random.default_rng(4).normal(size=5_000)))
    assert found.low < found.median < found.high and found.width < 0.2

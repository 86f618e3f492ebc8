"""Lines of growth: a curve is seen to be one."""

from __future__ import annotations

import pytest

from benchmarks import growth


def test_a_straight_line_is_found_and_a_curve_departs_from_it() -> None:
    amounts = (10, 100, 1_000)
    straight = growth.line("a", "b", [(n, 5 + 0.25 * n) for n in amounts])
    assert straight["start_ms"] == pytest.approx(5) and straight["per_1000_ms"] == 250
    assert straight["departure_share"] < 1e-3
    square = growth.line("a", "b", [(n, n * n / 1000) for n in (250, 500, 1_000)])
    assert square["departure_share"] > 0.02
    assert square["departure_ms"] == pytest.approx(1000 * square["departure_share"], rel=0.01)

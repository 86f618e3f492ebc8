"""The steps of the slider below the chart of events."""

from __future__ import annotations

import pytest

from ui.compare.recording_view import step_us


@pytest.mark.parametrize(
    ("duration_us", "step"),
    [(10, 1), (499, 1), (1_000_000, 2_000), (9_999_999, 10_000), (10_000_000, 20_000)],
)
def test_a_step_is_a_round_number(duration_us: int, step: int) -> None:
    assert step_us(duration_us) == step

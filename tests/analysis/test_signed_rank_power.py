"""The power of a gate's signed-rank test: the closed form beside simulated tests."""

from __future__ import annotations

import numpy as np
import pytest

from engine.analysis import one_sided_tests, signed_rank_power
from engine.analysis.gate import TAIL


@pytest.mark.parametrize(("sequences", "shift"), [(14, 0.8), (36, 0.5)])
def test_the_closed_form_is_the_share_of_simulated_verdicts(sequences: int, shift: float) -> None:
    generator = np.random.default_rng(2)
    drawn = generator.normal(shift, 1, size=(1000, sequences))
    decided = np.mean([one_sided_tests.above(values) <= TAIL for values in drawn])
    values = np.quantile(generator.normal(size=100_000), (np.arange(300) + 0.5) / 300)
    found = signed_rank_power.shape(values + shift)
    assert abs(signed_rank_power.power(sequences, found) - decided) < 0.05
    half = signed_rank_power.shape(values + shift / 2)  # control
    assert abs(signed_rank_power.power(sequences, half) - decided) > 0.2


def test_the_needed_number_has_the_power() -> None:
    values = np.linspace(-1, 1, 101)
    for shift in (0.05, 0.2, 0.9):
        found = signed_rank_power.shape(values + shift)
        many = signed_rank_power.needed(found)
        assert many is not None
        assert signed_rank_power.power(many, found) >= 0.799
        assert many == 6 or signed_rank_power.power(many - 1, found) < 0.8
    small = signed_rank_power.shape(values + 0.01)
    many = signed_rank_power.needed(small)
    assert many is not None and many > 1000
    assert abs(signed_rank_power.power(many, small) - 0.8) < 0.02
    assert signed_rank_power.needed(signed_rank_power.shape(values)) is None
    assert signed_rank_power.power(5, signed_rank_power.shape(values + 2)) == 0.0


def test_equal_values_are_above_zero_by_half() -> None:
    found = signed_rank_power.shape(np.zeros(4))
    assert (found.one, found.two, found.three) == (0.5, 0.5, 0.25)

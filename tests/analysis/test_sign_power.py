"""The power of the sign test: the closed form beside simulated comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from engine.analysis import sign_power, statistics


@pytest.mark.parametrize(("sequences", "shift"), [(14, 1.0), (40, 0.4)])
def test_the_closed_form_is_the_share_of_simulated_conclusions(
    sequences: int, shift: float
) -> None:
    generator = np.random.default_rng(1)
    drawn = generator.normal(shift, 1, size=(1500, sequences))
    decided = np.mean([statistics.median_interval(list(values)).low > 0 for values in drawn])
    share = float((generator.normal(shift, 1, size=200_000) > 0).mean())
    assert abs(sign_power.power(sequences, share) - decided) < 0.04
    assert abs(sign_power.power(sequences, share - 0.1) - decided) > 0.1  # control


@pytest.mark.parametrize("share", [0.6, 0.8, 0.95, 1.0])
def test_the_needed_number_has_the_power_and_one_less_does_not(share: float) -> None:
    found = sign_power.needed(share)
    assert found is not None
    later = [sign_power.power(found + more, share) for more in range(20)]
    assert min(later) >= sign_power.POWER
    assert found == 6 or sign_power.power(found - 1, share) < sign_power.POWER


def test_large_numbers_are_by_the_normal_form() -> None:
    found = sign_power.needed(0.53)
    assert found is not None and found > sign_power.MOST
    assert abs(sign_power.power(found, 0.53) - sign_power.POWER) < 0.02


def test_no_number_is_enough_without_a_larger_side() -> None:
    assert sign_power.needed(0.5) is None and sign_power.needed(0.3) is None
    assert sign_power.needed(0.5001) is None  # more than a million
    assert sign_power.power(5, 1.0) == 0.0  # no interval

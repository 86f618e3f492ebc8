"""Does any part matter more than chance: few alarms on maps of nothing, and none missed."""

import numpy as np
import pytest

from engine.attribution import explain
from engine.attribution.wording import BY_CHANCE

CELLS, RANDOM = 32, 199


def maps(generator: np.random.Generator) -> explain.Floats:
    """Losses of the words and of random ones that answer to nothing but to each picture's noise."""
    shared = generator.normal(size=(CELLS, 1))
    return generator.normal(size=(CELLS, 1 + RANDOM)) + shared


def test_maps_of_nothing_are_by_chance_in_all_but_a_twentieth() -> None:
    generator = np.random.default_rng(1)
    alarms = [explain.permutation_test(maps(generator), 1.0).p <= BY_CHANCE for _ in range(400)]
    assert 0 < sum(alarms) <= 0.05 * len(alarms) + 9  # two standard errors


@pytest.mark.parametrize(
    ("probability", "named"),
    [(1.0, True), (0.01, True), (0.0094, False), (1e-5, False), (0.0, False)],
)
def test_a_strong_place_is_named_only_for_words_that_the_model_considers(
    probability: float, named: bool
) -> None:
    sums = maps(np.random.default_rng(2))
    sums[7, 0] += 12
    found = explain.permutation_test(sums, probability)
    assert (found.p, found.permutations) == (1 / (1 + RANDOM), RANDOM)
    assert found.probability == probability
    told = f"a probability of {probability:.2g}, below 0.01: no place is named."
    assert ("A part of the picture matters" in found.sentence) is named
    assert found.sentence.endswith(told) is not named


def test_a_map_without_any_loss_is_by_chance() -> None:
    assert explain.permutation_test(np.zeros((CELLS, 1 + RANDOM)), 1.0).p == 1.0

"""Does any part matter more than chance: few alarms on maps of nothing, and none missed."""

from __future__ import annotations

import numpy as np
import pytest

from engine.attribution import chance
from engine.attribution.wording import BY_CHANCE

CELLS, RANDOM = 32, 199


def maps(generator: np.random.Generator) -> chance.Floats:
    """Losses of the words and of random ones that answer to nothing but to each picture's noise."""
    shared = generator.normal(size=(CELLS, 1))
    return generator.normal(size=(CELLS, 1 + RANDOM)) + shared


def test_maps_of_nothing_are_by_chance_in_all_but_a_twentieth() -> None:
    generator = np.random.default_rng(1)
    alarms = [chance.permutation_test(maps(generator), 1.0).p <= BY_CHANCE for _ in range(400)]
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
    found = chance.permutation_test(sums, probability)
    assert (found.p, found.permutations) == (1 / (1 + RANDOM), RANDOM)
    assert found.probability == probability
    told = f"a probability of {probability:.2g}, below 0.01: no place is named."
    assert ("A part of the picture matters" in found.sentence) is named
    assert found.sentence.endswith(told) is not named


def test_words_that_lose_as_much_everywhere_have_no_place() -> None:
    sums = maps(np.random.default_rng(3))
    sums[:, 0] += 12  # the largest of all losses, but in every cell
    found = chance.permutation_test(sums, 1.0)
    assert found.p > BY_CHANCE and "No part of the picture" in found.sentence


def test_a_map_without_any_loss_is_by_chance() -> None:
    assert chance.permutation_test(np.zeros((CELLS, 1 + RANDOM)), 1.0).p == 1.0


def test_the_weight_of_a_token_is_the_least_probability_before_it() -> None:
    plain = np.log([[0.9, 0.5], [0.1, 0.5], [0.8, 0.5]])
    assert chance.weights(plain[:, 0]) == pytest.approx([1.0, 0.9, 0.1])
    changed = plain - np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    assert chance.weighted(plain, changed) == pytest.approx([2.0, 0.2])


def test_an_excluded_random_token_loses_nothing() -> None:
    plain = np.array([[-1.0, -np.inf]])
    assert chance.weighted(plain, np.array([[-3.0, -np.inf]])).tolist() == [2.0, 0.0]


def test_random_tokens_are_ordinary_and_the_same_each_time() -> None:
    found = chance.random_tokens(50, [0, 1, 2], 3)
    assert found.shape == (3, chance.RANDOM) and found.min() > 2 and found.max() < 50
    assert (found == chance.random_tokens(50, [0, 1, 2], 3)).all()
    assert len(set(found.ravel().tolist())) == 47

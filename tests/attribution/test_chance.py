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
    alarms = [chance.permutation_test(maps(generator)).p <= BY_CHANCE for _ in range(400)]
    assert 0 < sum(alarms) <= 0.05 * len(alarms) + 9  # two standard errors


def test_one_strong_place_is_found_and_said() -> None:
    sums = maps(np.random.default_rng(2))
    sums[7, 0] += 12
    found = chance.permutation_test(sums)
    assert found.p == 1 / (1 + RANDOM) and found.permutations == RANDOM
    assert "A part of the picture matters" in found.sentence


def test_words_that_lose_as_much_everywhere_have_no_place() -> None:
    sums = maps(np.random.default_rng(3))
    sums[:, 0] += 12  # the largest of all losses, but in every cell
    found = chance.permutation_test(sums)
    assert found.p > BY_CHANCE and "No part of the picture" in found.sentence


def test_a_map_without_any_loss_is_by_chance() -> None:
    assert chance.permutation_test(np.zeros((CELLS, 1 + RANDOM))).p == 1.0


def test_a_token_counts_as_much_as_the_words_before_it_were_believed() -> None:
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

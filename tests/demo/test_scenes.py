"""Scenes: a seed is a scene, truth and pixels agree."""

from collections import defaultdict

import numpy as np
import pytest

from engine.analysis.answer_reading import ATTRIBUTES
from engine.demo.camera import KIND
from engine.demo.demo_dataset import SEEDS
from engine.demo.scenes import Scene, render

pytestmark = pytest.mark.loads  # all scenes of the demo are drawn


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return [render(seed) for seed in SEEDS]


def test_demo_scenes_show_every_value(scenes: list[Scene]) -> None:
    seen = defaultdict(set)
    for scene in scenes:
        for name, value in scene.truth.items():
            seen[name].add(value)
    assert {name: set(values) for name, values in ATTRIBUTES.items()} == dict(seen)
    assert len(scenes) >= 12


def test_labels_show_what_the_truth_says(scenes: list[Scene]) -> None:
    for scene in scenes:
        middle = scene.labels[10]
        lead, roadside = scene.truth["lead vehicle"], scene.truth["roadside"]
        assert (np.sum(middle == KIND["car"]) > 60) == (lead == "car")
        assert (np.sum(middle == KIND["truck"]) > 150) == (lead == "truck")
        assert (np.sum(middle == KIND["tree"]) > 300) == (roadside == "trees")
        assert (np.sum(middle == KIND["building"]) > 1000) == (roadside == "buildings")
        assert (np.sum(middle == KIND["rail"]) > 30) == (roadside == "guardrail")

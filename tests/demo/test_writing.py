"""Boxes enclose what the renderer drew, and a mirrored scene has mirrored boxes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.demo.camera import KIND
from engine.demo.scenes import Scene, render
from engine.demo.writing import boxes
from engine.types import Box

SEEDS = (777_000, 777_002)  # a truck between trees; a car beside a guardrail; both with a person


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return [render(seed) for seed in SEEDS]


@pytest.mark.loads
def test_boxes_follow_the_truth(scenes: list[Scene]) -> None:
    for scene in scenes:
        found = boxes(scene.labels)
        assert ("lead vehicle" in found) == (scene.truth["lead vehicle"] != "none")
        assert ("pedestrian" in found) == (scene.truth["pedestrian"] != "none")
        assert ("guardrail" in found) == (scene.truth["roadside"] == "guardrail")
        (left, _, right, _), side = found["pedestrian"][0], scene.truth["pedestrian"]
        assert (left + right < 1) == (side == "left")


@pytest.mark.loads
def test_a_mirrored_scene_has_mirrored_boxes(scenes: list[Scene]) -> None:
    def mirrored(box: Box) -> Box:
        left, top, right, bottom = box
        return (pytest.approx(1 - right), top, pytest.approx(1 - left), bottom)

    for scene in scenes:
        plain, other = boxes(scene.labels), boxes(scene.labels[:, :, ::-1])
        assert other == {name: tuple(map(mirrored, plain[name][::-1])) for name in plain}
        assert other["pedestrian"] != plain["pedestrian"]  # the control: a mirror moves it


def test_the_box_is_the_smallest_of_the_middle_frame() -> None:
    labels = np.zeros((5, 120, 160), np.uint8)
    labels[2, 30:60, 40:80] = KIND["person"]
    labels[3, :, 120:] = KIND["person"]  # another frame
    assert boxes(labels) == {"pedestrian": ((0.25, 0.25, 0.5, 0.5),)}


def test_roadside_has_a_box_for_each_half() -> None:
    labels = np.zeros((1, 120, 160), np.uint8)
    labels[0, :60, 40:120] = KIND["tree"]
    wanted = ((0.25, 0, 0.5, 0.5), (0.5, 0, 0.75, 0.5))
    assert boxes(labels) == {"roadside": wanted}
    labels[0, :, 80:] = 0
    assert boxes(labels) == {"roadside": wanted[:1]}

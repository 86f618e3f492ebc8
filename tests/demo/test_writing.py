"""Boxes enclose what the renderer drew, and a mirrored scene has mirrored boxes."""

from __future__ import annotations

import pytest

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

"""Frames computed and read a second time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.media import video
from engine.types import FRAME_RULES, Sample
from engine.verify import pictures


@pytest.mark.parametrize("rule", FRAME_RULES)
def test_the_rules_computed_with_integers_are_those_of_the_engine(rule: str) -> None:
    for count in range(8, 700):
        assert pictures.named(count, rule) == video.choose(count, rule)
    assert pictures.named(9, "middle") == video.middle(9)


@pytest.mark.parametrize("kind", ["video", "image", "events"])
def test_a_clean_sample_passes_for_every_kind(kind: Any, sample: Sample) -> None:
    found = pictures.frames(SimpleNamespace(kind=kind), sample)  # type: ignore[arg-type]
    assert found.outcome == "passed", found.sentence
    assert found.evidence["rules"] == (list(FRAME_RULES) if kind == "video" else [])


def test_other_frames_fail_and_pictures_that_are_no_frame_stay_open() -> None:
    frames = [np.full((2, 2, 3), value, np.uint8) for value in range(10)]
    right = [frames[place] for place in pictures.named(10, "arange")]
    assert pictures._compare(right, frames, "arange") == ([], [])
    wrong, unlike = pictures._compare([frames[1], *right[1:]], frames, "arange")
    assert wrong == ["arange: picture 1 is frame 1, but the rule names 0."] and not unlike
    wrong, unlike = pictures._compare([frames[0] + 99, *right[1:]], frames, "arange")
    assert not wrong and "equals no frame" in unlike[0]
    assert "3 pictures are shown" in pictures._compare(frames[:3], frames, "arange")[0][0]


def test_a_clip_of_many_frames_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "_decoded", lambda path: None)
    clip = Sample("s", "q", mp4=tmp_path / "clip.mp4")
    picture = np.zeros((2, 2, 3), np.uint8)
    media = SimpleNamespace(images=(picture,) * 8, source="MP4: frames 0 of 9", kind="video")
    monkeypatch.setattr(pictures.media, "load", lambda *_: media)
    found = pictures.frames(SimpleNamespace(kind="video"), clip)  # type: ignore[arg-type]
    assert found.outcome == "unresolved" and "not read a second time" in found.sentence

"""Clips for a browser: their own bytes if it plays them, otherwise encoded again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import MediaError
from engine.types import Sample
from engine.viewing import playing
from tests.media import clips

pytestmark = pytest.mark.loads


def clip(path: Path, data: bytes) -> Sample:
    path.write_bytes(data)
    return Sample("s", "q", mp4=path)


def shown(sample: Sample) -> playing.PlayableClip:
    found = playing.playable(sample)
    assert found is not None
    return found


def test_an_mp4_that_browsers_play_is_unchanged(tmp_path: Path) -> None:
    data = clips.mp4(20)
    assert shown(clip(tmp_path / "a.mp4", data)) == playing.PlayableClip(data)


@pytest.mark.parametrize(
    ("kind", "rate"), [("matroska", "20 "), ("mpegts", "20 "), ("avi", "10 frames per second; the")]
)
def test_other_clips_are_encoded_again(tmp_path: Path, kind: str, rate: str) -> None:
    found = shown(clip(tmp_path / "a.bin", clips.encoded(kind)))
    assert "Encoded again" in found.words and f", {rate}" in found.words
    frames = np.stack(clips.decoded(found.data))
    assert frames.shape == (60, 48, 64, 3)
    away = np.abs(frames.astype(int) - np.stack(clips.moving(60))).mean()
    assert away < 12  # lossy; other frames are further away
    assert np.abs(frames[::-1].astype(int) - np.stack(clips.moving(60))).mean() > 1.3 * away


def test_a_long_clip_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "MAX_FRAMES", 7)
    monkeypatch.setattr(playing, "MAX_BYTES", 1000)
    found = shown(clip(tmp_path / "a.mp4", clips.mp4(20)))
    assert len(clips.decoded(found.data)) == 7 and "at most 7 frames" in found.words


def test_a_folder_of_pictures_becomes_a_clip(sample: Sample) -> None:
    found = shown(sample)
    assert np.shape(clips.decoded(found.data)) == (10, 24, 32, 3)
    assert "10 pictures, which have no times" in found.words


def test_frames_of_odd_and_different_sizes_get_one_even_size() -> None:
    frames = [np.full(shape, 90, np.uint8) for shape in ((7, 9, 3), (11, 5, 3), (6, 8, 3))]
    made = playing.encode_mp4(frames, 10, {"preset": "ultrafast"})
    assert clips.decoded(made)[0].shape == (6, 8, 3)


def test_a_broken_clip_is_replaced_by_its_frames_or_reported(
    tmp_path: Path, sample: Sample
) -> None:
    broken = clip(tmp_path / "odd.mp4", b"odd" * 1000)
    with pytest.raises(MediaError, match=r"odd\.mp4"):
        playing.playable(broken)
    assert "pictures" in shown(replace(sample, mp4=broken.mp4)).words


@pytest.mark.parametrize("name", ["drop", "road"])
def test_real_clips_play_as_they_are(real_root: Path, name: str) -> None:
    path = real_root / "mp4" / name / "000000.mp4"
    assert shown(Sample("s", "q", mp4=path)).data == path.read_bytes()

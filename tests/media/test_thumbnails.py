"""Thumbnails: kept in a folder, made again when the files change, bounded."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.media import media_sources, thumbnails
from engine.media_options import window
from engine.types import Sample
from tests.conftest import picture
from tests.media.test_events import saved


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return Sample("s", "q", images=(picture(tmp_path / "one.png", 1),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "thumbnails"


def shown(sample: Sample, folder: Path | None) -> bytes | None:
    return thumbnails.picture(sample, thumbnails.stamp_of(sample), folder)


def test_a_picture_is_decoded_once(
    sample: Sample, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = shown(sample, folder)
    assert made is not None and made[:4] == b"RIFF" and len(list(folder.iterdir())) == 1
    monkeypatch.setattr(media_sources, "previews", lambda sample: iter(()))
    assert shown(sample, folder) == made and shown(sample, None) is None  # control


def test_another_content_gives_another_picture(sample: Sample, folder: Path) -> None:
    made = shown(sample, folder)
    picture(sample.images[0], 2)
    os.utime(sample.images[0], ns=(5, 5))
    assert shown(sample, folder) not in (None, made)


def test_a_damaged_file_is_made_again(sample: Sample, folder: Path) -> None:
    made = shown(sample, folder)
    (file,) = folder.iterdir()
    for data in (b"", b"RIFF", file.read_bytes()[:-3], b"other"):
        file.write_bytes(data)
        assert shown(sample, folder) == made


def test_the_oldest_files_are_removed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thumbnails, "MAX_FILES", 3)
    monkeypatch.setattr(thumbnails, "_EVERY", 1)
    samples = [Sample(str(n), "q", images=(picture(tmp_path / f"{n}.png", n),)) for n in range(6)]
    for number, sample in enumerate(samples):
        shown(sample, folder)
        for file in folder.iterdir():  # file systems' clocks are coarse
            age = file.stat().st_mtime_ns
            os.utime(file, ns=(age, age - (6 - number) * 10**9))
    assert len(list(folder.iterdir())) == 3


def test_a_folder_that_cannot_be_written_costs_only_time(sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert shown(sample, tmp_path / "file" / "below") == shown(sample, None) is not None


def test_a_sample_without_a_picture_has_none(folder: Path) -> None:
    assert shown(Sample("s", "q"), folder) is None
    assert not folder.exists()


def test_of_a_long_recording_the_beginning_is_drawn_or_that_of_the_samples_window(
    tmp_path: Path,
) -> None:
    """An event per ms for 2 s, each at a place of its own: a picture shows which were drawn."""
    order = np.arange(2_000)
    columns = {"x": order % 100, "y": order // 100, "t": order * 1_000, "p": order % 2}
    path = saved(tmp_path, **columns, width=100, height=20)
    whole = Sample("s", "q", events=path)
    for sample, first, last in (
        (whole, 0, 500),
        (replace(whole, window=window("1s+200ms")), 1_000, 1_200),
        (replace(whole, window=window("1s+1s")), 1_000, 1_500),
    ):
        found = next(media_sources.previews(sample))
        drawn = np.flatnonzero((found != 255).any(2))
        assert (drawn.min(), drawn.max()) == (first, last - 1)


def test_samples_of_one_file_with_other_windows_have_pictures_of_their_own(tmp_path: Path) -> None:
    whole = Sample("s", "q", events=saved(tmp_path, x=[1], y=[1], t=[1], p=[1]))
    parts = [whole, *(replace(whole, window=window(text)) for text in ("1s", "1s+1s"))]
    assert len({thumbnails.stamp_of(sample) for sample in parts}) == 3
    assert thumbnails.stamp_of(replace(whole, id="other")) == thumbnails.stamp_of(whole)

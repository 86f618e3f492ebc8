"""Thumbnails: kept in a folder, made again when the files change, bounded."""

import os
from dataclasses import replace
from pathlib import Path

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


def test_samples_of_one_file_with_other_windows_have_pictures_of_their_own(tmp_path: Path) -> None:
    whole = Sample("s", "q", events=saved(tmp_path, x=[1], y=[1], t=[1], p=[1]))
    parts = [whole, *(replace(whole, window=window(text)) for text in ("1s", "1s+1s"))]
    assert len({thumbnails.stamp_of(sample) for sample in parts}) == 3
    assert thumbnails.stamp_of(replace(whole, id="other")) == thumbnails.stamp_of(whole)

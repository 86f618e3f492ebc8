"""The demo dataset has the layout of a real one, is the same each time, and is made once."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.demo import demo_dataset
from engine.demo.boxes import boxes
from engine.demo.recorder import decode_mp4
from engine.demo.scene_answers import read_attributes
from engine.demo.scenes import render
from engine.media import dataset as readers
from engine.media import events as event_files

FEW = demo_dataset.SEEDS[:2]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_dataset.write_dataset(tmp_path_factory.mktemp("demo") / "root", FEW)


@pytest.fixture(scope="module")
def records(root: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(
        (root / demo_dataset.INDEX).read_text(encoding="utf-8")
    )
    return loaded


def test_every_file_of_a_record_exists(root: Path, records: list[dict[str, Any]]) -> None:
    assert len(records) == len(FEW)
    for record in records:
        assert (root / "event_npy" / record["event_data"]).is_file()
        assert (root / "mp4" / record["mp4_data"]).stat().st_size > 1_000
        assert len(record["event_image"]) == 5
        assert all((root / "event_image" / name).is_file() for name in record["event_image"])
        frames = sorted((root / "video" / record["video_data"]).glob("*.png"))
        assert len(frames) == 20 and frames[0].name == "000027.png"


def test_record_carries_truth_question_and_reference(records: list[dict[str, Any]]) -> None:
    for seed, record in zip(FEW, records, strict=True):
        human, gpt = record["conversations"]
        assert human["value"] == "<event>\nWhat are the key elements in this scene?"
        assert record["truth"] == render(seed).truth == read_attributes(gpt["value"])


def test_the_engine_reads_the_boxes(root: Path) -> None:
    wanted = [boxes(render(seed).labels) for seed in FEW]
    assert [sample.boxes for sample in readers.read(root).samples] == wanted
    assert any("pedestrian" in one for one in wanted)


def test_event_images_are_drawn_from_the_raw_events(
    root: Path, records: list[dict[str, Any]]
) -> None:
    record = records[0]
    drawn = event_files.render(
        event_files.read(root / "event_npy" / record["event_data"]), extent="stream"
    )
    kept = [np.asarray(Image.open(root / "event_image" / n)) for n in record["event_image"]]
    assert np.array_equal(drawn, np.stack(kept))


def test_mp4_shows_the_frames(root: Path, records: list[dict[str, Any]]) -> None:
    frames = decode_mp4((root / "mp4" / records[0]["mp4_data"]).read_bytes())
    wanted = render(FEW[0]).frames
    assert frames.shape == wanted.shape
    assert np.abs(frames.astype(int) - wanted).mean() < 8


def test_the_engine_reads_it_without_a_complaint(root: Path) -> None:
    found = readers.read(root)
    assert len(found.samples) == len(FEW) and not found.problems
    for sample in found.samples:
        assert not sample.problems and not sample.missing
        assert sample.truth


@pytest.mark.slow
def test_bytes_are_the_same_each_time(root: Path, tmp_path: Path) -> None:
    again = demo_dataset.write_dataset(tmp_path / "again", FEW)

    def digests(folder: Path) -> dict[str, str]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }

    assert digests(again) == digests(root)


@pytest.mark.slow
def test_made_once_and_remade_for_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_dataset, "SEEDS", FEW[:1])
    place = tmp_path / "data" / "demo"
    assert demo_dataset.ensure_dataset(place) == place
    stamp = (place / demo_dataset.INDEX).stat().st_mtime_ns
    demo_dataset.ensure_dataset(place)
    assert (place / demo_dataset.INDEX).stat().st_mtime_ns == stamp
    monkeypatch.setattr(demo_dataset, "VERSION", "another")
    demo_dataset.ensure_dataset(place)
    assert (place / demo_dataset.INDEX).stat().st_mtime_ns != stamp
    assert [path.name for path in place.parent.iterdir()] == ["demo"]


@pytest.mark.slow
def test_two_at_once_leave_one_whole_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_dataset, "SEEDS", FEW[:1])
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(demo_dataset.ensure_dataset, [tmp_path / "demo"] * 2))
    assert len(readers.read(made[0]).samples) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_demo_training_and_held_out_scenes_are_apart() -> None:
    assert not set(demo_dataset.SEEDS) & set(demo_dataset.TRAINING)
    assert not set(demo_dataset.SEEDS) & set(demo_dataset.HELD_OUT)
    assert not set(demo_dataset.TRAINING) & set(demo_dataset.HELD_OUT)
    assert len(demo_dataset.HELD_OUT) == 400

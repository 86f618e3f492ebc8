"""One scene in every format: the same pictures, under the same key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.event_readers import WRITERS
from engine import media
from engine.demo.scenes import render
from engine.demo.writing import write_scene
from engine.media import events
from engine.media_options import Window
from engine.types import MediaOptions, Sample

pytestmark = pytest.mark.loads
pytest.importorskip("faery", reason="faery writes most of the formats")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The raw events of a demo scene, without its prepared event images."""
    root = tmp_path_factory.mktemp("demo")
    record = write_scene(root, render(200_002))
    return Sample("scene", "demo", events=root / "event_npy" / record["event_data"])


def written(scene: Sample, name: str, folder: Path) -> Sample:
    assert scene.events is not None
    stream = events.read(scene.events)
    path = folder / f"one.{name}"
    WRITERS[name](path, {key: getattr(stream, key) for key in "xytp"})
    return replace(scene, events=path)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_pictures_of_the_npy(
    name: str, scene: Sample, tmp_path: Path
) -> None:
    other = written(scene, name, tmp_path)
    for how in (MediaOptions(), MediaOptions(window=Window(200_000, 300_000))):
        wanted, found = media.load(scene, "events", how), media.load(other, "events", how)
        assert len(found.images) == 5
        assert all(np.array_equal(*pair) for pair in zip(wanted.images, found.images, strict=True))
        assert found.digest == wanted.digest


def test_control_other_events_give_other_pictures(scene: Sample, tmp_path: Path) -> None:
    other = written(scene, "dat", tmp_path)
    assert other.events is not None
    data = other.events.read_bytes()
    other.events.write_bytes(data[: len(data) // 16 * 8])
    assert media.load(other, "events").digest != media.load(scene, "events").digest

"""The demo dataset has the layout of a real one, is the same each time, and is made once."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.__main__ import main
from engine.demo import demo_dataset
from engine.demo.scenes import render
from engine.media import dataset as readers
from engine.media import events as event_files
from tests.media import clips

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


@pytest.mark.loads
def test_event_images_are_drawn_from_the_raw_events(
    root: Path, records: list[dict[str, Any]]
) -> None:
    record = records[0]
    drawn = event_files.render(
        event_files.read(root / "event_npy" / record["event_data"]), extent="stream"
    )
    kept = [np.asarray(Image.open(root / "event_image" / n)) for n in record["event_image"]]
    assert np.array_equal(drawn, np.stack(kept))


@pytest.mark.loads
def test_mp4_shows_the_frames(root: Path, records: list[dict[str, Any]]) -> None:
    frames = np.stack(clips.decoded((root / "mp4" / records[0]["mp4_data"]).read_bytes()))
    wanted = render(FEW[0]).frames
    assert frames.shape == wanted.shape
    assert np.abs(frames.astype(int) - wanted).mean() < 8


@pytest.mark.loads
def test_the_engine_reads_it_without_a_complaint(root: Path) -> None:
    found = readers.read(root)
    assert len(found.samples) == len(FEW) and not found.problems
    for sample in found.samples:
        assert not sample.problems and not sample.missing
        assert sample.truth and len(sample.event_images) == 5 and len(sample.frames) == 20
        assert sample.events and sample.mp4


def assert_alike(folder: Path, other: Path) -> None:
    """The same files with the same bytes; of recordings nearly all times, because processors round
    a logarithm differently."""
    ours, theirs = (
        {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
        for root in (folder, other)
    )
    assert ours - {Path(demo_dataset.MARKER)} == theirs
    for name in theirs:
        if name.suffix == ".npy":
            times = [event_files.read(root / name).t for root in (folder, other)]
            assert len(times[0]) == len(times[1]) and (times[0] == times[1]).mean() > 0.98
        else:
            assert (folder / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.loads
def test_the_scenes_that_ship_are_those_that_would_be_made(root: Path, tmp_path: Path) -> None:
    assert_alike(demo_dataset.first_scenes(tmp_path / "demo"), root)
    assert demo_dataset.FIRST.stat().st_size < 3e6


@pytest.mark.loads
def test_the_first_scenes_stay_as_they_are_while_the_others_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_dataset, "SEEDS", (*FEW, 200_015))
    place = demo_dataset.first_scenes(tmp_path / "demo")
    seen = [len(readers.read(place).samples)]
    before = {path: path.stat().st_mtime_ns for path in place.glob("*/scene*/**/*.*")}
    assert before and demo_dataset.version(place) == demo_dataset.BEGUN
    demo_dataset.ensure_dataset(place, lambda: seen.append(len(readers.read(place).samples)))
    assert seen == [2, 2] and len(readers.read(place).samples) == 3  # one was made
    assert before.items() <= {path: path.stat().st_mtime_ns for path in before}.items()
    assert demo_dataset.version(place) == demo_dataset.VERSION
    assert_alike(place, demo_dataset.write_dataset(tmp_path / "whole", demo_dataset.SEEDS))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.loads
def test_made_once_and_remade_for_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_dataset, "SEEDS", FEW)
    place = tmp_path / "data" / "demo"
    assert demo_dataset.ensure_dataset(place) == place
    stamp = (place / demo_dataset.INDEX).stat().st_mtime_ns
    demo_dataset.ensure_dataset(place)
    assert (place / demo_dataset.INDEX).stat().st_mtime_ns == stamp
    monkeypatch.setattr(demo_dataset, "VERSION", "another")
    demo_dataset.ensure_dataset(place)
    assert (place / demo_dataset.INDEX).stat().st_mtime_ns != stamp
    assert [path.name for path in place.parent.iterdir()] == ["demo"]


@pytest.mark.loads
def test_two_at_once_leave_one_whole_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_dataset, "SEEDS", (*FEW, 200_015))
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(demo_dataset.ensure_dataset, [tmp_path / "demo"] * 2))
    assert len(readers.read(made[0]).samples) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


# the multiple-choice set: trained questions, known answers, letters that say nothing

SCENES = 2


@pytest.fixture(scope="module")
def choices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices") / "set"
    demo_dataset.write_choices(folder, demo_dataset.HELD_OUT[:SCENES])
    return folder


@pytest.mark.loads
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "set"
    assert main(["demo", "--choices", str(folder), "--scenes", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["questions"] == len(readers.read(folder).samples) and found["scenes"] == 1
    assert main(["demo", "--choices", str(folder), "--scenes", "1"]) == 2
    assert "is not empty: name a new folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scenes", "3"], "--scenes belongs to --choices"),
        (["--choices", "x", "--scenes", "0"], "choose a number from 1 to 400"),
        (["--choices", "x", "--scenes", "401"], "choose a number from 1 to 400"),
        (["--choices", "x", "--evaluate"], "--evaluate does not go with --choices"),
        (["--choices", "x", "--seeds", "1:2"], "--seeds does not go with --choices"),
    ],
)
def test_options_that_do_not_fit(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert not Path("x").exists()

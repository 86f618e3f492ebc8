"""The time line of what models receive: it shows the pictures of `media.load`, at their times."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine import media
from engine.demo.scenes import render
from engine.demo.writing import write_scene
from engine.errors import MediaError
from engine.media import dataset, events, images, video
from engine.media_options import perturbations, split
from engine.types import FRAME_RULES, MediaKind, MediaOptions, Sample
from engine.viewing import seen_times
from engine.viewing.seen_times import SeenPicture, SeenRow, SeenTimeline, SliceSpan
from tests.media import clips
from tests.media.test_events import saved

ALL: tuple[MediaKind, ...] = ("events", "video", "image")
pytestmark = pytest.mark.loads


def row(found: SeenTimeline, kind: MediaKind) -> SeenRow:
    return next(one for one in found.rows if one.kind == kind)


def recording(root: Path, name: str) -> Sample:
    return next(
        sample
        for sample in dataset.read(root).samples
        if any(name in str(path) for path in (sample.events, sample.mp4))
    )


def covered(pictures: Sequence[SeenPicture | SliceSpan]) -> list[tuple[object, ...]]:
    return [(one.begin_us, one.end_us, one.events) for one in pictures]


def check_pictures(sample: Sample, found: SeenTimeline, rule: str) -> None:
    """Every row has the pictures that `media.load` gives, those repeated once."""
    for one in found.rows:
        loaded = media.load(sample, one.kind, MediaOptions(frames=rule))
        small = {images.shrink(image, seen_times.WIDTH).tobytes() for image in loaded.images}
        assert {shown.picture.tobytes() for shown in one.pictures} == small
        assert max(shown.picture.shape[1] for shown in one.pictures) <= seen_times.WIDTH


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A demo scene: raw events, the event images drawn from them, a clip and its frames."""
    root = tmp_path_factory.mktemp("scene")
    record = write_scene(root, render(200_052))
    (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps([record]))
    return dataset.read(root).samples[0]


def test_event_images_that_equal_the_slices_have_their_times(scene: Sample) -> None:
    found = seen_times.timeline(scene, ALL)
    assert scene.events is not None
    stream = events.read(scene.events)
    pictures = row(found, "events").pictures
    assert covered(pictures) == covered(seen_times.slice_spans(stream))
    assert all(picture.known for picture in pictures)
    assert seen_times.SAME_IMAGES in found.notes and seen_times.BOTH in found.notes
    assert found.window_us == max(950_000, seen_times.duration_us(stream))


def test_control_another_event_image_has_no_known_time(scene: Sample, tmp_path: Path) -> None:
    other = tmp_path / "odd_0.png"
    other.write_bytes(scene.event_images[1].read_bytes())
    changed = replace(scene, event_images=(other, *scene.event_images[1:]))
    found = seen_times.timeline(changed, ["events"])
    assert not any(picture.known for picture in row(found, "events").pictures)
    assert seen_times.UNKNOWN_IMAGES in found.notes
    assert seen_times.SAME_IMAGES not in found.notes


def test_raw_events_of_a_recording(real_root: Path) -> None:
    sample = recording(real_root, "fish")
    found = seen_times.timeline(sample, ["events"])
    check_pictures(sample, found, "arange")
    pictures = row(found, "events").pictures
    assert found.density is not None and int(found.density.total.sum()) == 132_268
    assert sum(picture.events or 0 for picture in pictures) == 132_268
    assert pictures[0].begin_us == 0 and pictures[-1].end_us == found.window_us
    assert found.window_us == pytest.approx(49_600, abs=100)


def test_a_recording_without_raw_events_says_that_times_are_unknown(real_root: Path) -> None:
    sample = recording(real_root, "drop")
    found = seen_times.timeline(sample, ALL, MediaOptions(frames="linspace"))
    check_pictures(sample, found, "linspace")
    assert found.density is None
    assert not any(picture.known for picture in row(found, "events").pictures)
    assert all(tick.known for tick in row(found, "video").pictures)
    assert seen_times.UNKNOWN_IMAGES in found.notes


@pytest.mark.parametrize("rule", FRAME_RULES)
def test_a_clip_of_a_recording(real_root: Path, rule: str) -> None:
    sample = recording(real_root, "road")
    found = seen_times.timeline(sample, ALL, MediaOptions(frames=rule))
    check_pictures(sample, found, rule)
    assert [one.kind for one in found.rows] == ["video", "image"]
    assert any("event" in note for note in found.notes)  # an event model cannot run
    assert found.window_us == pytest.approx(220 * 40_000, abs=1)
    ticks = row(found, "video").pictures
    assert [tick.begin_us for tick in ticks] == pytest.approx(
        [index * 40_000 for index in video.choose(221, rule)], abs=1
    )


def test_a_folder_of_frames_has_assumed_times(sample: Sample) -> None:
    found = seen_times.timeline(sample, ["video", "image"], MediaOptions(frames="linspace"))
    ticks = row(found, "video").pictures
    assert found.window_us == 0 and found.density is None
    assert not any(tick.known for tick in ticks)
    assert ticks[0].begin_us == 0 and ticks[-1].begin_us == 10
    assert seen_times.UNKNOWN_FRAMES in found.notes


def test_a_frame_that_is_shown_twice_is_one_tick(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(clips.mp4(3))
    found = seen_times.timeline(Sample("s", "q", mp4=path), ["video"])
    assert [tick.name for tick in row(found, "video").pictures] == [
        f"Frame {index} of 3" for index in range(3)
    ]


def test_a_clip_without_display_times_has_assumed_ones(tmp_path: Path) -> None:
    path = tmp_path / "clip.avi"
    path.write_bytes(clips.encoded("avi"))  # its packets have decoding times only
    assert video.times(path) == ()
    found = seen_times.timeline(Sample("s", "q", mp4=path), ["video"])
    assert not any(tick.known for tick in row(found, "video").pictures)


def test_broken_files_are_sentences(tmp_path: Path) -> None:
    odd = tmp_path / "odd.npy"
    odd.write_bytes(b"odd")
    clip = tmp_path / "odd.mp4"
    clip.write_bytes(b"odd")
    found = seen_times.timeline(Sample("s", "q", events=odd, mp4=clip), ALL)
    assert found.rows == () and found.density is None and found.window_us == 0
    assert len(found.notes) == 2  # once each, although two kinds of models need the clip
    assert all("odd" in note for note in found.notes)


def test_a_stream_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    assert len(seen_times.read_events(path)) == 4
    monkeypatch.setattr(seen_times, "MAX_EVENTS", 3)
    with pytest.raises(MediaError, match="too many"):
        seen_times.read_events(path)


def test_perturbed_events_have_their_own_times(scene: Sample) -> None:
    plain = seen_times.timeline(scene, ("events",), MediaOptions(split=split("time:4")))
    how = MediaOptions(split=split("time:4"), perturb=perturbations("drop:0.5"), perturb_seed=3)
    found = seen_times.timeline(scene, ("events",), how)
    assert found.density is not None and plain.density is not None
    assert found.density.total.sum() < 0.7 * plain.density.total.sum()
    shown, usual = (row(one, "events").pictures for one in (found, plain))
    assert sum(p.events or 0 for p in shown) == found.density.total.sum()
    assert sum(p.events or 0 for p in usual) == plain.density.total.sum()  # control
    assert "The events are perturbed by drop:0.5 seed 3." in found.notes

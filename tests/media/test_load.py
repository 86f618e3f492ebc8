"""Stage 1 as a whole: which source is used, what is said about it, and what the digest is of."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from engine import media
from engine.errors import MediaError
from engine.media import media_sources, video
from engine.media_options import Window, perturbations, split
from engine.types import EXTENTS, FRAME_RULES, Image, MediaKind, MediaOptions, Sample
from tests.media import clips


def pictures(folder: Path, count: int, start: int = 27) -> tuple[Path, ...]:
    """Frames whose grey level is their position."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = tuple(folder / f"{start + i:06d}.png" for i in range(count))
    for i, path in enumerate(paths):
        Pillow.new("RGB", (8, 6), (i, i, i)).save(path)
    return paths


def greys(images: tuple[Image, ...]) -> list[int]:
    return [int(image[0, 0, 0]) for image in images]


def clip(path: Path, count: int = 20) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(clips.mp4(count))
    return path


def raw(path: Path, n: int = 10, **columns: Any) -> Path:
    table = {key: np.arange(n) % 2 for key in "xyp"} | {"t": np.arange(n)} | columns
    np.save(path, np.array(table, dtype=object), allow_pickle=True)
    return path


def broken(path: Path) -> Path:
    path.write_bytes(b"broken " * 300)
    return path


def test_warnings_about_the_stream_are_notes(tmp_path: Path) -> None:
    sample = Sample("a", "s", events=raw(tmp_path / "a.npy", 9, t=np.arange(9) * 20_000))
    assert "160.0 ms of" in media.load(sample, "events").notes[0]


def test_the_extent_of_event_pictures_is_chosen_and_said(tmp_path: Path) -> None:
    """Raw events on a diagonal: each slice reaches further than the one before."""
    line = np.arange(20)
    sample = Sample("a", "s", events=raw(tmp_path / "a.npy", 20, x=line * 3, y=line))
    own, common = (media.load(sample, "events", MediaOptions(extent=how)) for how in EXTENTS)
    sizes = [(4, 10), (8, 22), (12, 34), (16, 46), (20, 58)]
    assert [image.shape[:2] for image in own.images] == sizes
    assert {image.shape[:2] for image in common.images} == {(20, 58)}
    assert (own.rule, own.extent, common.rule, common.extent) == ("slice",) * 2 + ("stream",) * 2
    assert own.shown.endswith("5 slices (sized by slice)")
    assert common.shown.endswith("5 slices (sized by stream)")
    assert "differ in size (10 x 4, 22 x 8," in own.notes[0] and not common.notes
    assert own.digest != common.digest


@pytest.mark.parametrize("count", [1, 5, 7])
def test_short_clips_and_folders_repeat_frames_and_say_so(tmp_path: Path, count: int) -> None:
    frames = pictures(tmp_path / "f", count)
    wanted = video.choose(count, "arange")
    for sample, what in (
        (Sample("a", "s", mp4=clip(tmp_path / "a.mp4", count), frames=frames), "clip"),
        (Sample("a", "s", frames=frames), "folder"),
    ):
        found = media.load(sample, "video")
        assert len(found.images) == 8
        assert f"{', '.join(map(str, wanted))} of {count}" in found.source
        said = f"The {what} has {count} frame"
        assert [note for note in found.notes if note.startswith(said) and "repeat" in note]
    assert greys(found.images) == wanted


@pytest.mark.parametrize("rule", ["arange", "spread", "linspace"])
def test_video_comes_from_the_mp4(tmp_path: Path, rule: str) -> None:
    path = clip(tmp_path / "a.mp4")
    sample = Sample("a", "s", mp4=path, frames=pictures(tmp_path / "f", 12))
    found = media.load(sample, "video", MediaOptions(frames=rule))
    np.testing.assert_array_equal(
        found.images,
        video.decode(path.read_bytes(), "a.mp4", partial(video.choose, rule=rule)).images,
    )
    assert (found.kind, found.rule, found.notes) == ("video", rule, ())
    assert found.source.endswith("of 20")


def test_only_the_chosen_frames_are_read(tmp_path: Path) -> None:
    frames = pictures(tmp_path, 20)
    sample = Sample("a", "s", frames=frames)
    before = digest(sample)
    broken(frames[1])
    assert digest(sample) == before
    Pillow.new("RGB", (8, 6), (200, 0, 0)).save(frames[2])
    assert digest(sample) != before
    broken(frames[2])
    with pytest.raises(MediaError, match=r"000029\.png is not a complete PNG"):
        media.load(sample, "video")


def test_still_gifs_are_pictures_and_moving_ones_are_not(tmp_path: Path) -> None:
    still, moving = tmp_path / "1.gif", tmp_path / "2.gif"
    still.write_bytes(clips.encoded("gif", "gif", [0]))
    moving.write_bytes(clips.encoded("gif", "gif", [0, 50]))
    (picture,) = media.load(Sample("a", "s", images=(still,)), "image").images
    np.testing.assert_array_equal(picture, clips.decoded(still.read_bytes())[0])
    with pytest.raises(MediaError, match=r"2\.gif is an animated GIF, not a picture: give it as a"):
        media.load(Sample("a", "s", images=(moving,)), "image")
    with pytest.raises(MediaError, match=r"1\.gif is a GIF, not a PNG or JPEG picture: save it as"):
        media.load(Sample("a", "s", event_images=(still,)), "events")


@pytest.mark.parametrize(
    ("kind", "codec", "called"),
    [("mov", "libx264", "MOV"), ("webm", "libvpx", "WebM"), ("gif", "gif", "GIF")],
)
def test_the_source_names_the_kind_of_clip(
    tmp_path: Path, kind: str, codec: str, called: str
) -> None:
    (tmp_path / "a").write_bytes(clips.encoded(kind, codec, range(0, 1000, 50)))
    found = media.load(Sample("a", "s", mp4=tmp_path / "a"), "video")
    assert found.source == f"{called}: frames 0, 2, 5, 7, 10, 12, 15, 17 of 20"


@pytest.mark.parametrize("field", ["event_images", "images"])
def test_the_pictures_of_a_sample_share_a_limit(
    tmp_path: Path, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = pictures(tmp_path, 5)
    kind = "events" if field == "event_images" else "video"
    sample = Sample("a", "s", **{field: paths})
    used = sum(path.stat().st_size + 8 * 6 * 3 for path in paths)
    monkeypatch.setattr(media_sources, "MAX_ROOM", used)
    assert len(set(greys(media.load(sample, kind).images))) == 5
    monkeypatch.setattr(media_sources, "MAX_ROOM", used - 1)
    with pytest.raises(MediaError, match=rf"^5 pictures take over {used - 1:,} bytes"):
        media.load(sample, kind)


@pytest.mark.parametrize("kind", ["events", "video", "image"])
def test_nothing_usable(tmp_path: Path, kind: str) -> None:
    why = {kind: f"No {kind} here: pick another."}
    with pytest.raises(MediaError, match=f"^No {kind} here: pick another.$"):
        media.load(Sample("a", "s", missing=why), kind)  # type: ignore[arg-type]
    with pytest.raises(MediaError, match=f"Sample a has no file for {kind}"):
        media.load(Sample("a", "s"), kind)  # type: ignore[arg-type]
    path = broken(tmp_path / "a")
    sample = Sample("a", "s", mp4=path, frames=(path,), events=path, event_images=(path,))
    with pytest.raises(MediaError, match=r"; .*a ") as caught:
        media.load(sample, kind)  # type: ignore[arg-type]
    assert str(caught.value).count(".") <= 4


def test_prepare_imports_the_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(media, "media_sources")
    monkeypatch.delitem(sys.modules, "engine.media.media_sources")
    media.prepare()
    assert "engine.media.media_sources" in sys.modules


def test_short_streams_are_named(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"a\.npy is too short: 4 events"):
        media.load(Sample("a", "s", events=raw(tmp_path / "a.npy", 4)), "events")


def digest(sample: Sample, kind: str = "video", rule: str = "arange") -> str:
    return media.load(sample, kind, MediaOptions(frames=rule)).digest  # type: ignore[arg-type]


def test_equal_content_has_an_equal_digest_under_any_name(tmp_path: Path) -> None:
    here = Sample("a", "s", mp4=clip(tmp_path / "a/000000.mp4"))
    there = Sample("b", "t", question="?", mp4=clip(tmp_path / "b/other.mp4"))
    assert digest(here) == digest(there)
    assert len(digest(here)) == 64
    frames = Sample("a", "s", frames=pictures(tmp_path / "f", 20))
    renamed = Sample("b", "s", frames=pictures(tmp_path / "g", 20, start=100))
    assert digest(frames) == digest(renamed)


def scattered(path: Path) -> Path:
    """Raw events, of which every split, window and change draws other pictures."""
    draw, count = np.random.default_rng(0), 100
    table = {key: draw.integers(0, 64, count) for key in "xy"}
    times = np.sort(draw.integers(0, 99_000, count))
    return raw(path, count, **table, p=draw.integers(0, 2, count), t=times)


TEXTS = ("", "drop:0.3", "drop:0.31", "jitter:500us", "hot:0.05", "window:0.5", "rate:0.5")
CHANGED = [
    MediaOptions(perturb=perturbations(text), perturb_seed=seed)
    for text in TEXTS
    for seed in range(3)
]
DRAWN = [
    MediaOptions(split=split(cut), extent=extent, window=part)
    for cut in ("count:5", "count:4", "time:5", "time:4", "densest:5", "densest:4")
    for extent in EXTENTS
    for part in (None, Window(0, 99_000), Window(0, 50_000), Window(20_000, 50_000))
]
CHOSEN = [MediaOptions(frames=rule) for rule in FRAME_RULES]


SOURCES: list[tuple[MediaKind, str]] = [
    ("events", "recording"),
    *((kind, source) for kind in ("video", "image") for source in ("clip", "folder", "images")),
]


@pytest.mark.parametrize(("kind", "source"), SOURCES)
def test_the_digest_differs_wherever_the_pictures_differ(
    tmp_path: Path, kind: MediaKind, source: str
) -> None:
    """Pictures of the same options from the same bytes have the same digest."""
    digests, counts = dict[str, bytes](), []
    for number in range(2):  # two names, one content
        folder = tmp_path / str(number)
        files = pictures(folder, 20)
        sample = {
            "recording": Sample("a", "s", events=scattered(folder / "a.npy")),
            "clip": Sample("a", "s", mp4=clip(folder / "a.mp4")),
            "folder": Sample("a", "s", frames=files),
            "images": Sample("a", "s", images=files),
        }[source]
        for how in (*CHANGED, *DRAWN) if kind == "events" else CHOSEN:
            found = media.load(sample, kind, how)
            shown = b"".join(repr(one.shape).encode() + one.tobytes() for one in found.images)
            assert digests.setdefault(found.digest, shown) == shown, how
        counts.append(len(digests))
    assert counts[0] == counts[1]
    assert len(set(digests.values())) > {"events": 30, "video": 1, "image": 0}[kind]


def test_one_changed_byte_changes_the_digest(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mp4")
    before = media.load(Sample("a", "s", mp4=path), "video")
    path.write_bytes(path.read_bytes() + b"\0")
    after = media.load(Sample("a", "s", mp4=path), "video")
    assert before.digest != after.digest
    np.testing.assert_array_equal(before.images, after.images)

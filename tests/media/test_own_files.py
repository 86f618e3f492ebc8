"""A user's own files: each is read when it is added, and a sentence says what is wrong with it."""

from pathlib import Path

import numpy as np
import pytest

from engine.media.media_sources import CHECKED, own_fault, own_sample
from engine.media.recording import Whole
from engine.media_options import Window
from engine.types import Events, Sample
from tests.conftest import picture
from tests.media import clips, test_events

pytestmark = pytest.mark.loads


def saved(folder: Path, name: str, data: bytes) -> tuple[str, Path]:
    """A file under a number, as a visitor's files are."""
    path = folder / str(len(list(folder.iterdir())) + 1)
    path.write_bytes(data)
    return name, path


def png(folder: Path, name: str = "good.png") -> tuple[str, Path]:
    made = picture(folder / "made.png", 1)
    return saved(folder, name, made.read_bytes())


def npy(folder: Path, count: int, step_us: int = 10) -> bytes:
    order = np.arange(count)
    columns = {"x": order % 8, "y": order % 6, "t": order * step_us, "p": order % 2}
    return test_events.saved(folder, **columns).read_bytes()


def test_good_files_have_no_fault(tmp_path: Path) -> None:
    """Control for all faults below."""
    files = [
        png(tmp_path),
        saved(tmp_path, "good.mp4", clips.encoded("mp4", "libx264", range(0, 300, 50))),
        saved(tmp_path, "good.npy", npy(tmp_path, 500)),
        png(tmp_path, "a picture in truth.mp4"),  # the content decides
    ]
    assert [own_fault(*file) for file in files] == [""] * 4
    sample = own(files)
    assert not sample.missing and (sample.mp4, len(sample.images)) == (files[1][1], 2)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("empty.png", b"", "'empty.png' is empty (0 bytes): export it again."),
        ("notes.png", b"hello, no picture", "'notes.png' is not a complete PNG or JPEG"),
        ("mp4", b"something else", "The kind of 'mp4' is not known: give MP4"),
        ("a.aedat", b"x", "'a.aedat' is an AEDAT recording older than version 4"),
        ("a.mp4", b"#ROSBAG V2.0\n", "'a.mp4' is a ROS bag, not a supported file (MP4, "),
        ("old.mp4", b"FLV\x01" + bytes(2000), "'old.mp4' is an FLV clip"),
        ("cut.mp4", b"\0\0\0\x18ftypmp42" + bytes(500), "'cut.mp4'"),
        ("few.npy", b"\x93NUMPY" + bytes(9), "'few.npy'"),
        ("page.png", b"<svg onload=alert(1)>", "'page.png' is an SVG drawing"),
        ("a\n\x1b[31m\u202e.png", b"", r"'a\n\x1b[31m\u202e.png' is empty"),
        ("n" * 300 + ".png", b"", "nnn... is empty"),
    ],
)
def test_a_fault_names_the_file_and_what_to_do(
    tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    sentence = own_fault(*saved(tmp_path, name, data))
    assert words in sentence and sentence.endswith(".") and "\n" not in sentence
    assert str(tmp_path) not in sentence


def test_a_clip_that_breaks_off_and_events_that_are_too_few_are_found(tmp_path: Path) -> None:
    clip = clips.encoded("mp4", "libx264", range(0, 3000, 50))
    assert "'cut.mp4'" in own_fault(*saved(tmp_path, "cut.mp4", clip[: len(clip) // 2]))
    few = own_fault(*saved(tmp_path, "few.npy", npy(tmp_path, 3)))
    assert few.startswith("'few.npy' is too short: 3 events cannot be cut into 5 slices")


def test_of_a_long_recording_only_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, events = list[Window | None](), Whole.events

    def noted(self: Whole, window: Window | None) -> Events:
        read.append(window)
        return events(self, window)

    monkeypatch.setattr(Whole, "events", noted)
    for step_us in (10, 10_000):  # 4 ms and 4 s
        assert own_fault(*saved(tmp_path, "a.npy", npy(tmp_path, 400, step_us))) == ""
    assert read == [None, CHECKED]


def test_a_still_gif_is_a_picture_but_no_event_image(tmp_path: Path) -> None:
    file = saved(tmp_path, "one.gif", clips.encoded("gif", "gif", [0]))
    assert own_fault(*file) == ""
    assert (own([file]).mp4, own([file]).images) == (None, (file[1],))
    assert "is a GIF, not a PNG or JPEG picture" in own_fault(*file, event_images=True)


def test_a_file_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    assert "'gone.png' could not be read" in own_fault("gone.png", tmp_path / "1")


def test_good_files_are_used_beside_bad_ones(tmp_path: Path) -> None:
    files = [png(tmp_path, "a.png"), saved(tmp_path, "b.png", b""), png(tmp_path, "c.png")]
    sample, rejected = own_sample(files, [own_fault(*file) for file in files])
    assert sample is not None and sample.id == "a.png, c.png"
    assert rejected == ("'b.png' is empty (0 bytes): export it again.",)
    assert own_sample(files[1:2], rejected) == (None, rejected)


def own(files: list[tuple[str, Path]], event_images: bool = False) -> Sample:
    """The sample of files of which none has a fault."""
    sample, rejected = own_sample(files, [""] * len(files), event_images)
    assert sample is not None and rejected == ()
    return sample


@pytest.mark.parametrize("names", ["a.npy b.bin event file", "a.gif b.mp4 clip"])
def test_a_second_file_of_one_kind_is_not_used(tmp_path: Path, names: str) -> None:
    one, other, kind = names.split(" ", 2)
    files = [(name, tmp_path / name) for name in (one, other)]
    sample, rejected = own_sample(files, ["", ""])
    assert sample is not None and sample.id == one
    assert tmp_path / one in (sample.mp4, sample.events)
    assert rejected == (f"{other!r} is a second {kind}, and {one!r} is used: remove one of them.",)
    assert own_sample([], []) == (None, ())

"""Which clips are opened: five formats by content, and nothing that leads to other files."""

from pathlib import Path

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import decoding, video
from tests.conftest import slow_unless
from tests.media import clips

pytestmark = pytest.mark.loads


@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        *(("mp4", "libx264"), ("matroska", "libx264"), ("mpegts", "libx264")),
        *(("mov", "libx264"), ("mov", "mpeg4"), ("gif", "gif")),
        *(("webm", "libvpx"), ("webm", "libvpx-vp9"), ("webm", "libsvtav1")),
        *(("avi", "mpeg4"), ("avi", "libx264"), ("avi", "mjpeg")),
    ],
)
@pytest.mark.parametrize("rule", slow_unless(["arange"], ["arange", "spread"]))
def test_every_kind_gives_the_frames_of_a_plain_decoding(kind: str, codec: str, rule: str) -> None:
    data = clips.encoded(kind, codec)
    everything = clips.decoded(data)
    if codec == "libx264" and kind not in ("mov", "avi"):
        assert decoding.reader_of(data[:1000]) == kind
    found = video.decode(data, "a", lambda n: video.choose(n, rule))
    assert found.count == len(everything) == 60 and len(found.images) == 8
    np.testing.assert_array_equal(found.images, [everything[i] for i in found.indices])
    np.testing.assert_array_equal(next(decoding.pictures(data, "a")), everything[0])


@pytest.mark.parametrize(
    ("kind", "called"),
    [("nut", "a NUT clip"), ("asf", r"a WMV \(ASF\) clip"), ("flv", "an FLV clip")],
)
def test_other_formats_are_refused_by_name(kind: str, called: str) -> None:
    data = clips.encoded(kind, "flv" if kind == "flv" else "mpeg4")
    assert clips.decoded(data)  # FFmpeg itself would
    with pytest.raises(MediaError, match=rf"^a is {called}, .*: convert it with `ffmpeg -i FILE"):
        video.decode(data, "a", video.middle)


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts", "avi", "gif"])
def test_a_reader_may_not_call_on_another_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg itself compares the name of each reader it opens with the one that is allowed."""
    data = clips.encoded(kind, {"gif": "gif"}.get(kind, "mpeg4"))
    assert next(decoding.pictures(data, "a")).shape == (48, 64, 3)
    other = "gif" if kind != "gif" else "avi"
    monkeypatch.setattr(decoding, "_FORMATS", {kind: other})
    with pytest.raises(MediaError, match="could not be decoded"):
        next(decoding.pictures(data, "a"))


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts", "avi"])
def test_a_frame_is_no_larger_than_the_limit_whatever_the_header_says(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = clips.encoded(kind, "libx264")
    monkeypatch.setattr(decoding, "MAX_PIXELS", 64 * 48)
    assert len(video.decode(data, "a", video.middle).images) == 1
    monkeypatch.setattr(decoding, "MAX_PIXELS", 64 * 48 - 1)
    monkeypatch.setattr(decoding, "_check", lambda clip, name: None)  # the header says less
    with pytest.raises(MediaError, match=r"could not be decoded|holds no frames"):
        video.decode(data, "a", video.middle)


@pytest.mark.parametrize(("kind", "codec"), [("mp4", "libx264"), ("gif", "gif")])
def test_a_small_file_of_very_many_pixels(
    kind: str, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = clips.encoded(kind, codec)
    monkeypatch.setattr(decoding, "MAX_DECODED", 10_000)
    everything = clips.decoded(data)
    found = video.decode(data, "a", video.middle)  # not more than the file has bytes for
    np.testing.assert_array_equal(found.images[0], everything[30])
    monkeypatch.setattr(decoding, "PIXELS_PER_BYTE", 1)
    with pytest.raises(MediaError, match=r"a has over [0-9,]+ pixels in [0-9,]+ bytes: cut it"):
        video.decode(data, "a", video.middle)


def test_a_clip_of_too_many_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    data = clips.encoded("matroska", "mpeg4")
    monkeypatch.setattr(decoding, "MAX_FRAMES", 59)
    with pytest.raises(MediaError, match=r"a has over 59 frames: cut it shorter\."):
        video.decode(data, "a", video.middle)
    with pytest.raises(MediaError, match=r"a has over 59 frames: cut it shorter\."):
        decoding.all_frames(data, "a", [0])


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts", "avi", "gif"])
def test_a_playlist_in_disguise_opens_no_other_file(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where its beginning is read as that of a clip."""
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(clips.mp4(20))
    monkeypatch.setattr(decoding, "reader_of", lambda head, name: kind)
    hls = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXTINF:1,", str(secret), "#EXT-X-ENDLIST", "#"]
    concat = ["ffconcat version 1.0", f"file {secret}", "#"]
    for lines in (hls, concat):
        playlist = ("\n".join(lines) + " " * 1000).encode()
        with pytest.raises(MediaError, match=r"could not be decoded|no video track"):
            video.decode(playlist, "a.mp4", lambda n: [0])

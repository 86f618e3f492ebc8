"""Which clips are opened: three formats by content, and nothing that leads to other files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import containers, video
from tests.media import clips


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts"])
def test_the_content_decides_whatever_the_name_says(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.mp4"
    data = clips.encoded(kind, g="12")
    path.write_bytes(data)
    assert containers.reader_of(data[:1000]) == kind
    found = video.read(path, "arange")
    everything = clips.decoded(data)
    np.testing.assert_array_equal(found.images, [everything[i] for i in found.indices])
    np.testing.assert_array_equal(video.first(data, "a"), everything[0])


@pytest.mark.parametrize("kind", ["avi", "nut", "asf"])
def test_other_formats_are_not_opened(kind: str) -> None:
    data = clips.encoded(kind, "mpeg4")
    assert clips.decoded(data)  # FFmpeg itself would
    with pytest.raises(MediaError, match="could not be decoded"):
        video.decode(data, "a", video.middle)


@pytest.mark.parametrize("head", [b"", b"G", b"G" + bytes(187) + b"G", b"RIFF", b"#EXTM3U"])
def test_what_is_no_other_format_is_left_to_the_reader_of_mp4(head: bytes) -> None:
    assert containers.reader_of(head) == "mp4"


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts"])
def test_a_playlist_in_disguise_opens_no_other_file(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where its beginning is read as that of a clip."""
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(clips.mp4(20))
    monkeypatch.setattr(containers, "reader_of", lambda head: kind)
    hls = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXTINF:1,", str(secret), "#EXT-X-ENDLIST", "#"]
    concat = ["ffconcat version 1.0", f"file {secret}", "#"]
    for lines in (hls, concat):
        playlist = ("\n".join(lines) + " " * 1000).encode()
        with pytest.raises(MediaError, match=r"could not be decoded|no video track"):
            video.decode(playlist, "a.mp4", lambda n: [0])


def test_a_clip_that_changes_while_it_is_read(tmp_path: Path) -> None:
    from engine.media.files import large

    path = tmp_path / "a.mp4"
    path.write_bytes(clips.mp4(20))
    found = large(path)
    path.write_bytes(clips.mp4(21))
    with pytest.raises(MediaError, match=r"a\.mp4 changed while it was read"):
        video.decode(found, "a.mp4", video.middle)

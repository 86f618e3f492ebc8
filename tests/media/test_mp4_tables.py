"""Tables of an MP4 that declare too much are refused before FFmpeg takes memory for them."""

import io
import struct

import pytest

from engine.media import decoding
from tests.media import clips

FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}


def patched(data: bytes, kind: bytes, place: int, *numbers: int) -> bytes:
    """The clip with numbers of 32 bits written behind a box's kind."""
    at = data.index(kind) + 4 + place
    new = struct.pack(f">{len(numbers)}I", *numbers)
    return data[:at] + new + data[at + len(new) :]


def check(data: bytes) -> None:
    decoding.check_tables(io.BytesIO(data), len(data))


BOMBS = {
    "samples of one size": (b"stsz", 4, (1, 30_000_000)),
    "many samples": (b"stsz", 8, (0xFFFFFFFF,)),
    "times": (b"stts", 8, (0x7FFFFFFF,)),
    "shown times": (b"ctts", 8, (0x7FFFFFFF,)),
}


def test_a_fragment_of_too_many_frames() -> None:
    data = clips.encoded("mp4", "libx264", container=FRAGMENTS, bf="0")
    with pytest.raises(ValueError, match="over 1,000,000 frames"):
        check(patched(data, b"trun", 0, 1, 50_000_000))


def test_sound_by_the_sample_is_no_table_of_frames() -> None:
    """An hour of uncompressed sound has 172 million samples and one entry."""
    hour = 172_800_000
    handler = struct.pack(">I4sII4s", 20, b"hdlr", 0, 0, b"soun")
    sizes = struct.pack(">I4sIII", 20, b"stsz", 0, 4, hour)
    times = struct.pack(">I4sIIII", 24, b"stts", 0, 1, hour, 1)
    content = handler + sizes + times
    check(struct.pack(">I4s", 8 + len(content), b"trak") + content)
    seen = content.replace(b"soun", b"vide")
    with pytest.raises(ValueError, match="over 1,000,000 frames"):
        check(struct.pack(">I4s", 8 + len(seen), b"trak") + seen)


def test_headers_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = struct.pack(">I4sI4s", 16, b"moov", 8, b"cmov")
    with pytest.raises(ValueError, match="a compressed header"):
        check(packed)
    edits = struct.pack(">I4sII", 12_016, b"elst", 0, 1000) + bytes(12_000)
    times = struct.pack(">I4sIIII", 24, b"stts", 0, 1, 900_000, 1)
    with pytest.raises(ValueError, match="an edit list of 1,000 entries"):
        check(struct.pack(">I4s", 8 + 12_040, b"moov") + edits + times)
    monkeypatch.setattr(decoding, "MAX_BOXES", 100)
    with pytest.raises(ValueError, match="over 100 boxes"):
        check(struct.pack(">I4s", 8, b"free") * 101)
    monkeypatch.setattr(decoding, "MAX_TABLES", 100)
    with pytest.raises(ValueError, match=r"a header of [0-9,]+ bytes"):
        check(clips.mp4(20))


@pytest.mark.parametrize("data", [b"", b"abc", b"\0\0\0\1moov", b"\0\0\0\7moov", b"\0\0\0\0moov"])
def test_boxes_that_end_early_are_left_to_ffmpeg(data: bytes) -> None:
    check(data)
    check(data + bytes(20))

"""Decoding some packets equals decoding all: every kind of clip, and what is left to the latter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import av
import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import decoding, frame_groups, video
from engine.media.frame_groups import CodedPicture, Unsure
from tests.media import clips

pytestmark = pytest.mark.slow

KINDS = ("mp4", "matroska", "mpegts")
CHOICES = [partial(video.choose, rule=rule) for rule in ("arange", "spread", "linspace")]
CHOICES.append(video.middle)
X264 = {
    "closed groups": {"g": "12"},
    "open groups": {"g": "12", "x264-params": "asm=0:open-gop=1"},
    "one group": {"g": "250"},
    "no B-frames": {"g": "12", "bf": "0"},
    "few B-frames": {"g": "30", "bf": "3"},
    "16 B-frames": {"g": "50", "x264-params": "asm=0:bframes=16:b-adapt=0:b-pyramid=2"},
    "strict pyramid": {"x264-params": "asm=0:bframes=5:b-adapt=0:b-pyramid=1"},
    "intra-refresh": {"g": "12", "intra-refresh": "1"},
    "intra-only": {"g": "1"},
    "zero latency": {"g": "12", "tune": "zerolatency"},
    "slices": {"g": "12", "slices": "4"},
    "repeated headers": {"g": "12", "x264-params": "asm=0:repeat-headers=1:aud=1"},
    "timing messages": {
        "g": "12",
        "x264-params": "asm=0:nal-hrd=vbr:vbv-maxrate=100:vbv-bufsize=100",
    },
}
OTHERS = {
    "libx265": {"x265-params": "log-level=none"},
    "libvpx-vp9": {"cpu-used": "8"},
    "mpeg4": {},
    "mpeg2video": {},
}


def some(data: bytes, choice: video.Choice) -> tuple[list[np.ndarray], Sequence[int], int]:
    """The frames by the quick way alone."""
    found, cut = frame_groups.frames(data, "a", choice)
    return [found[i] for i in cut.indices], cut.indices, cut.count


def check_equal(data: bytes, choice: video.Choice, quick: bool) -> None:
    everything = clips.decoded(data)
    wanted = list(choice(len(everything)))
    clip = video.decode(data, "a", choice)
    assert (list(clip.indices), clip.count, clip.notes) == (wanted, len(everything), ())
    np.testing.assert_array_equal(clip.images, [everything[i] for i in wanted])
    if quick:
        images, indices, count = some(data, choice)
        assert (list(indices), count) == (wanted, len(everything))
        np.testing.assert_array_equal(images, [everything[i] for i in wanted])
    else:
        with pytest.raises(Unsure):
            frame_groups.frames(data, "a", choice)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", X264)
def test_h264_equals_a_whole_decoding(how: str, kind: str) -> None:
    data = clips.encoded(kind, **X264[how])
    for choice in CHOICES:
        check_equal(data, choice, quick=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", OTHERS)
def test_other_codecs_are_decoded_whole(codec: str, kind: str) -> None:
    if (codec, kind) == ("libvpx-vp9", "mpegts"):
        kind = "matroska"  # a transport stream has no VP9
    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV has no {codec}")
    data = clips.encoded(kind, codec, range(0, 2400, 40), **OTHERS[codec])
    for choice in CHOICES:
        check_equal(data, choice, quick=False)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_clips_under_eight_frames_repeat_the_right_ones(count: int) -> None:
    """A repeated frame is decoded once and shown as often as the rule names it."""
    times = range(0, 40 * count, 40)
    for data, quick in (
        (clips.encoded(times=times, g="3"), True),
        (clips.encoded("mp4", "mpeg4", times), False),
    ):
        for choice in CHOICES:
            check_equal(data, choice, quick)
        assert len(video.decode(data, "a", CHOICES[0]).images) == 8


VARIABLE = [0, 7, 90, 91, 400, 420, 1000, 1033, 1034, 1500, 1800, 1801, 2500, 2501, 2950, 3000]


@pytest.mark.parametrize("kind", KINDS)
def test_a_variable_frame_rate(kind: str) -> None:
    check_equal(clips.encoded(kind, times=VARIABLE, g="6"), CHOICES[0], quick=True)


def test_times_that_an_edit_list_moves_or_hides() -> None:
    late = clips.encoded(times=range(5000, 8000, 50), g="12")
    check_equal(late, CHOICES[0], quick=True)
    early = clips.encoded(times=range(-500, 2500, 50), g="12")
    with pytest.raises(Unsure, match="hidden"):
        frame_groups.frames(early, "a", CHOICES[0])
    everything = clips.decoded(early)
    found = video.decode(early, "a", CHOICES[0])
    assert 0 < found.count == len(everything) < 60
    np.testing.assert_array_equal(found.images, [everything[i] for i in found.indices])
    unedited = clips.encoded(g="12", container={"use_editlist": "0"})
    check_equal(unedited, CHOICES[0], quick=True)


def test_fields_are_decoded_whole() -> None:
    data = clips.encoded(g="12", flags="+ildct+ilme", **{"x264-params": "asm=0:tff=1"})
    check_equal(data, CHOICES[0], quick=False)


def test_fragments_are_decoded_whole() -> None:
    """Their header says nothing of the order of frames."""
    data = clips.encoded(g="12", container={"movflags": "frag_keyframe+empty_moov"})
    check_equal(data, CHOICES[0], quick=False)


def test_streams_one_after_another_are_decoded_whole() -> None:
    one = clips.encoded("mpegts", g="12")
    between = clips.encoded("mpegts", times=range(25, 3025, 50), g="12")
    for data in (one + one, one + between):
        check_equal(data, CHOICES[0], quick=False)


@pytest.mark.parametrize("kind", ["matroska", "mpegts"])
def test_a_clip_cut_short(kind: str) -> None:
    data = clips.encoded(kind, g="12")
    for share in (0.4, 0.6, 0.8):
        cut = data[: int(len(data) * share)]
        everything = clips.decoded(cut)
        found = video.decode(cut, "a", CHOICES[1])
        np.testing.assert_array_equal(found.images, [everything[i] for i in found.indices])


def test_a_clip_whose_beginning_is_lost_is_decoded_whole() -> None:
    data = clips.encoded("mpegts", g="12")[188 * 5 :]
    with pytest.raises(Unsure):
        frame_groups.frames(data, "a", CHOICES[0])
    everything = clips.decoded(data)
    found = video.decode(data, "a", CHOICES[0])
    np.testing.assert_array_equal(found.images, [everything[i] for i in found.indices])


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_clip_shows_what_a_whole_decoding_shows(kind: str) -> None:
    """Or it is decoded whole: never a picture that the whole decoding would not have given."""
    base = clips.encoded(kind, g="12", container={"movflags": "faststart"} if kind == "mp4" else {})
    quick = whole = 0
    for seed in range(40):
        data = bytearray(base)
        for at in np.random.default_rng(seed).integers(len(base) // 3, len(base), 2):
            data[at] ^= 85
        try:
            images, indices, _ = some(bytes(data), CHOICES[0])
        except Unsure:
            whole += 1
            continue
        try:
            everything = video._of_all(bytes(data), "a", CHOICES[0])
        except MediaError:
            continue  # a packet that nobody needs cannot be decoded
        quick += 1
        assert list(everything.indices) == list(indices)
        np.testing.assert_array_equal(images, everything.images)
    assert quick and whole


def test_frames_in_the_order_of_decoding_would_be_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: a fault in the choice of packets does not pass these tests."""
    data = clips.encoded(**X264["few B-frames"])
    monkeypatch.setattr(frame_groups, "shown", lambda pictures: list(range(len(pictures))))
    monkeypatch.setattr(frame_groups, "_check_order", lambda pictures: None)
    with pytest.raises(AssertionError):
        check_equal(data, CHOICES[0], quick=True)


def test_starting_at_any_keyframe_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An intra-refresh clip calls pictures keyframes that are built on those before them."""
    data = clips.encoded(**X264["intra-refresh"])
    with frame_groups.container(data, "a") as clip:
        packets = [packet for packet in clip.demux(clip.streams.video[0]) if packet.size]
    starts = [packet.is_keyframe for packet in packets]
    assert sum(starts) > 1
    monkeypatch.setattr(decoding, "_STRICT", {})
    needed = frame_groups.needed

    def from_keyframes(pictures: Sequence[CodedPicture], wanted: set[int]) -> set[int]:
        called = [p._replace(idr=start) for p, start in zip(pictures, starts, strict=True)]
        return needed(called, wanted) - {0}

    monkeypatch.setattr(frame_groups, "needed", from_keyframes)
    with pytest.raises((AssertionError, Unsure)):
        check_equal(data, video.middle, quick=True)


def test_what_a_frame_needs() -> None:
    """I P b P I P b: lower case is no reference."""
    pictures = [CodedPicture(i, c == "I", c != "b") for i, c in enumerate("IPbPIPb")]
    assert frame_groups.needed(pictures, {3}) == {0, 1, 3}
    assert frame_groups.needed(pictures, {2}) == {0, 1, 2}
    assert frame_groups.needed(pictures, {4}) == {0, 4}
    assert frame_groups.needed(pictures, {6}) == {0, 4, 5, 6}
    assert frame_groups.needed(pictures, {2, 6}) == {0, 1, 2, 4, 5, 6}


def test_fewer_packets_are_decoded() -> None:
    for how, most in (("intra-only", 9), ("closed groups", 45), ("one group", 45)):
        cut = frame_groups.frames(clips.encoded(**X264[how]), "a", CHOICES[0])[1]
        assert cut.count == 60
        assert len(cut.sent) <= most


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_clip_is_read_twice(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = clips.encoded(kind, g="12")
    held = some(data, CHOICES[0])[0]
    monkeypatch.setattr(frame_groups, "HELD_BYTES", 1000)
    np.testing.assert_array_equal(some(data, CHOICES[0])[0], held)


@pytest.mark.parametrize("threads", [1, 2, 0])
def test_threads_change_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = clips.encoded(**X264["few B-frames"])
    before = some(data, CHOICES[0])[0]
    monkeypatch.setattr(decoding, "THREADS", threads)
    np.testing.assert_array_equal(some(data, CHOICES[0])[0], before)


def pictures(times: Sequence[int], starts: Sequence[int] = (0,)) -> list[CodedPicture]:
    return [CodedPicture(time, place in starts, True) for place, time in enumerate(times)]


@pytest.mark.parametrize(
    ("times", "starts", "why"),
    [
        ([0, 1, 1], [0], "times repeat"),
        ([0, 2, 1], [0, 2], "groups overlap"),
        ([0, 2, 3, 1], [0, 2], "groups overlap"),
        ([0, 1, 2], [1], "begin with an IDR"),
        ([], [], "begin with an IDR"),
    ],
)
def test_times_that_cannot_be_trusted(times: list[int], starts: list[int], why: str) -> None:
    frame_groups._check_order(pictures([0, 2, 1, 3, 5, 4], [0, 3]))
    with pytest.raises(Unsure, match=why):
        frame_groups._check_order(pictures(times, starts))


def test_more_reordering_than_announced() -> None:
    frame_groups._check_depth(pictures([0, 3, 1, 2]), 1)
    with pytest.raises(Unsure, match="reordering"):
        frame_groups._check_depth(pictures([0, 3, 2, 1]), 1)


@pytest.mark.parametrize("flaw", ["is_corrupt", "is_discard", "no time", "settings"])
def test_packets_that_cannot_be_trusted(flaw: str) -> None:
    class Side:
        data_type = "new_extradata"

    class Packet:
        is_corrupt = flaw == "is_corrupt"
        is_discard = flaw == "is_discard"
        pts = None if flaw == "no time" else 0

        def iter_sidedata(self) -> list[Side]:
            return [Side()] if flaw == "settings" else []

    with pytest.raises(Unsure):
        frame_groups._display_time(Packet())


def counted(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


IDR, REFERENCE, SETS = b"\x65\x88", b"\x41\x9a", (b"\x67\x42", b"\x68\xce")


def test_the_units_of_a_packet_tell_its_picture() -> None:
    read = frame_groups.coded_kind
    assert read(counted(*SETS, IDR, IDR), 4) == (0x65, SETS)
    assert read(counted(b"\x06\x05\x01\x00\x80", REFERENCE), 4) == (0x41, ())
    assert read(counted(b"\x01\x9e"), 4) == (0x01, ())
    between = b"\0\0\0\1" + b"\0\0\1".join([b"\x09\xf0", *SETS, IDR])
    assert read(between, 0) == (0x65, SETS)


@pytest.mark.parametrize(
    ("packet", "length", "why"),
    [
        (counted(b"\x62" + bytes(9), IDR), 4, "unknown kind"),  # data partition
        (counted(b"\xe5" + bytes(9), IDR), 4, "unknown kind"),  # the forbidden bit
        (counted(b"\x6b", IDR), 4, "unknown kind"),  # the end of a stream
        (counted(b"", IDR), 4, "unknown kind"),
        (counted(b"\x06\x2f\x01\x00\x80", IDR), 4, "may change pictures"),  # which way up
        (counted(b"\x06\xff\xff", IDR), 4, "message ends early"),
        (counted(IDR)[:-1], 4, "longer than its packet"),
        (counted(IDR, REFERENCE), 4, "not one picture"),
        (counted(*SETS), 4, "not one picture"),
        (b"", 4, "not one picture"),
        (b"\5\0\0\1\x65", 0, "start code"),
    ],
)
def test_packets_that_are_not_known(packet: bytes, length: int, why: str) -> None:
    with pytest.raises(Unsure, match=why):
        frame_groups.coded_kind(packet, length)


@pytest.mark.parametrize("change", ["appear", "change", "vanish"])
def test_parameter_sets_that_change(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the second group; the control is a clip that repeats them."""
    data, numbers = clips.encoded(g="12"), iter(range(60))
    first, later = {"appear": ((), SETS), "change": (SETS, SETS[::-1]), "vanish": (SETS, ())}[
        change
    ]
    plain = frame_groups.coded_kind

    def read(packet: bytes, length: int) -> tuple[int, tuple[bytes, ...]]:
        kind, number = plain(packet, length)[0], next(numbers)
        return kind, (first if number < 12 else later) if kind & 31 == frame_groups.IDR else ()

    monkeypatch.setattr(frame_groups, "coded_kind", read)
    with pytest.raises(Unsure, match="parameter sets change"):
        frame_groups.frames(data, "a", CHOICES[0])
    numbers, later = iter(range(60)), first
    assert some(data, CHOICES[0])[2] == 60

"""What is read from H.264 packets, and that everything else is Unsure."""

from __future__ import annotations

import io

import av
import pytest

from engine.media import h264
from engine.media.h264 import Bits, CodedPicture, Reader, SliceHeader, Unsure
from tests.media import clips


def packets(data: bytes) -> tuple[bytes, list[bytes], list[int]]:
    """The decoder's configuration, the packets, and their times."""
    with av.open(io.BytesIO(data)) as clip:
        stream = clip.streams.video[0]
        found = [packet for packet in clip.demux(stream) if packet.size]
        extradata = bytes(stream.codec_context.extradata or b"")
        return extradata, [bytes(packet) for packet in found], [p.pts or 0 for p in found]


def bits(text: str) -> Bits:
    text = text.replace(" ", "")
    text += "0" * (-len(text) % 8)
    return Bits(int(text, 2).to_bytes(len(text) // 8, "big"))


def test_numbers_in_exp_golomb_code() -> None:
    read = bits("1 010 011 00100 00101 0001000")
    assert [read.ue() for _ in range(6)] == [0, 1, 2, 3, 4, 7]
    assert bits("101").take(3) == 5
    with pytest.raises(Unsure, match="ends early"):
        bits("00000001").ue() and bits("0" * 8).ue()
    with pytest.raises(Unsure, match="ends early"):
        bits("0" * 16).ue()
    with pytest.raises(Unsure, match="too long"):
        bits("0" * 40 + "1" * 80).ue()


def test_bytes_against_false_start_codes_are_left_out() -> None:
    assert Bits(b"\0\0\3\1").take(24) == 1


@pytest.mark.parametrize("kind", ["mp4", "mpegts"])
def test_pictures_are_numbered_in_the_order_of_showing(kind: str) -> None:
    """More than 16 pictures, so that the few bits of a number overflow on the way."""
    extradata, found, times = packets(clips.encoded(kind, g="60", bf="3", sc_threshold="0"))
    reader = Reader(extradata)
    pictures = [reader.picture(packet) for packet in found]
    assert [p.idr for p in pictures] == [True] + [False] * 59
    assert not all(p.reference for p in pictures)
    places = sorted(range(60), key=lambda i: pictures[i].order)
    assert places == sorted(range(60), key=times.__getitem__) != list(range(60))
    assert len({p.order for p in pictures}) == 60


def test_a_clip_without_reordering_may_leave_its_numbers_out() -> None:
    extradata, found, _ = packets(clips.encoded(g="60", bf="0", tune="zerolatency"))
    reader = Reader(extradata)
    orders = [reader.picture(packet).order for packet in found]
    assert orders == sorted(set(orders))


@pytest.fixture(scope="module")
def clip() -> tuple[bytes, list[bytes], list[int]]:
    return packets(clips.encoded(g="12", bf="0", sc_threshold="0"))


Clip = tuple[bytes, list[bytes], list[int]]


def test_a_missing_picture_is_noticed(clip: Clip) -> None:
    extradata, found, _ = clip
    reader = Reader(extradata)
    assert reader.picture(found[0]) == CodedPicture(True, True, 1)
    with pytest.raises(Unsure, match="missing"):
        reader.picture(found[2])


def test_a_clip_must_begin_with_an_idr_picture(clip: Clip) -> None:
    with pytest.raises(Unsure, match="begin with an IDR"):
        Reader(clip[0]).picture(clip[1][1])


def units(extradata: bytes) -> tuple[bytes, bytes]:
    sps, pps = h264._configuration(extradata)[1]
    return sps, pps


def counted(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def test_parameter_sets_that_change(clip: Clip) -> None:
    extradata, found, _ = clip
    sps, pps = units(extradata)
    for first, second in (
        (b"", counted(sps, pps)),  # appear
        (counted(sps, pps), counted(sps, pps + b"\1")),  # change
        (counted(sps, pps), b""),  # vanish
    ):
        reader = Reader(extradata)
        reader.picture(first + found[0])
        for packet in found[1:12]:
            reader.picture(packet)
        with pytest.raises(Unsure, match="parameter sets change"):
            reader.picture(second + found[12])


@pytest.mark.parametrize(
    ("unit", "why"),
    [
        (b"\x62" + bytes(9), "unknown kind"),  # data partition
        (b"\xe5" + bytes(9), "unknown kind"),  # the forbidden bit
        (b"\x6b", "unknown kind"),  # the end of a stream
        (b"", "unknown kind"),
        (b"\x06\x2f\x01\x00\x80", "may change pictures"),  # which way up to show it
        (b"\x06\xff\xff", "message ends early"),
    ],
)
def test_units_that_are_not_known(clip: Clip, unit: bytes, why: str) -> None:
    with pytest.raises(Unsure, match=why):
        Reader(clip[0]).picture(counted(unit) + clip[1][0])


def test_packets_that_are_not_whole(clip: Clip) -> None:
    extradata, found, _ = clip
    with pytest.raises(Unsure, match="longer than its packet"):
        Reader(extradata).picture(found[0][:-1])
    with pytest.raises(Unsure, match="not one picture"):
        Reader(extradata).picture(found[0] + found[1])
    with pytest.raises(Unsure):
        Reader(extradata).picture(b"")
    with pytest.raises(Unsure, match="start code"):
        Reader(b"").picture(b"\5\0\0\1\x65")


@pytest.mark.parametrize("length", range(1, 45))
def test_a_configuration_cut_anywhere(clip: Clip, length: int) -> None:
    """It is Unsure, or what is missing was of no account."""
    extradata, found, _ = clip
    try:
        picture = Reader(extradata[:length]).picture(found[0])
    except Unsure:
        return
    assert picture == CodedPicture(True, True, 1)


def test_a_slice_of_no_known_type(clip: Clip) -> None:
    reader = Reader(clip[0])
    reader.picture(clip[1][0])
    with pytest.raises(Unsure, match="type of slice"):
        reader._header(b"\x41" + int("1" + "0001011" + "0" * 56, 2).to_bytes(8, "big"))
    assert reader._header(b"\x41" + b"\xff" * 8) == SliceHeader(False, True, 15, 0)


def sequence(text: str, profile: int = 66) -> h264.Sequence:
    """A parameter set of these bits behind its profile; the rest is of no account."""
    text = text.replace(" ", "") + "1" * 8
    text += "0" * (-len(text) % 8)
    body = int("1" + text, 2).to_bytes(len(text) // 8 + 1, "big")[1:]
    return h264._sequence((b"\x67" + bytes([profile, 0, 30]) + body,))


def test_sequence_parameter_sets() -> None:
    #      number, frame bits - 4, kind, order bits - 4, references, gaps, size, whole frames
    assert sequence("1 011 1 010 1 0 1 1 1") == (6, 5)
    assert sequence("1 011 011 1 0 1 1 1") == (6, 0)  # shown as decoded
    assert sequence("1 010 1 1 0 0 011 1 010 1 0 1 1 1", profile=100) == (6, 5)
    for text, profile, why in (
        ("1 011 010 1 1", 66, "rule 1"),
        ("1 011 1 010 1 1 1 1 1", 66, "gaps or fields"),
        ("1 011 1 010 1 0 1 1 0", 66, "gaps or fields"),
        ("1 00100 1 1 0 0", 100, "separate"),
        ("1 010 1 1 0 1", 100, "scaling"),
    ):
        with pytest.raises(Unsure, match=why):
            sequence(text, profile)
    with pytest.raises(Unsure, match="not one sequence"):
        h264._sequence(())

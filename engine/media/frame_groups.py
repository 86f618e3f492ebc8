"""Decodes a few frames of an H.264 clip without the others; the pixels equal a full decoding.

All packets are read first, which is cheap.  Between one IDR picture and the next, only the pictures
that a wanted frame may depend on are decoded: the references from the IDR picture up to it.  The
first byte of each unit in a packet says which these are.  A keyframe that is not an IDR picture is
not a safe start, so the container's flags are ignored.  The first packet is always decoded, because
encoders put information for the decoder there.
Any doubt raises `Unsure`, and everything has to be decoded: another codec; packets that are hidden,
corrupt, carry settings, or have no unique time; groups whose times overlap; units that may change
pictures; more reordering than the clip announces; a decoder that returns unexpected frames.

Format: ITU-T H.264 (08/2021), 7.3.1 (units), 7.3.2.3 (SEI); ISO/IEC 14496-15, 5.3.3 (avcC).

Boundary: a clip in, its wanted frames out, or `Unsure`.  Damage in packets that are not decoded is
not reported; it cannot affect the decoded frames.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import MediaError
from engine.media.decoding import MAX_DECODED, MAX_FRAMES, container, frames_of
from engine.media.media_files import Data
from engine.types import Image

if TYPE_CHECKING:
    from av.container import InputContainer

HELD_BYTES = 32 << 20  # packets of larger clips are read again instead of being kept
SLICE, IDR, SEI, SPS, PPS, DELIMITER, FILLER = 1, 5, 6, 7, 8, 9, 12  # kinds of units
_KNOWN = (SLICE, IDR, SEI, SPS, PPS, DELIMITER, FILLER)
# Buffering, timing, user data and recovery points: nothing that rotates or changes a picture.
_HARMLESS_SEI = (0, 1, 4, 5, 6)


class Unsure(Exception):
    """The clip cannot be read with certainty."""


class CodedPicture(NamedTuple):
    """One packet: when it is shown, whether decoding may start at it (IDR), and whether others may
    depend on it (reference)."""

    time: int
    idr: bool
    reference: bool


@dataclass(frozen=True)
class DecodePlan:
    """What is decoded of a clip of `count` frames: packet positions, and the wanted frames."""

    count: int
    indices: tuple[int, ...]
    sent: frozenset[int]
    wanted: Mapping[int, int]  # a wanted frame's time -> its index


def frames(
    data: Data, name: str, choice: Callable[[int], Sequence[int]]
) -> tuple[dict[int, Image], DecodePlan]:
    """The frames that `choice` picks, by index; Unsure if everything has to be decoded."""
    try:
        with container(data, name, probed=False) as clip:
            pictures, held = read(clip)
            cut = plan(pictures, choice)
            stream = clip.streams.video[0]
            if len(cut.sent) * stream.width * stream.height > MAX_DECODED:
                raise Unsure("more pixels than a partial decoding may produce")
            found = held and frames_of(clip, held, cut.sent, cut.wanted)
        if held is None:
            with container(data, name, probed=False) as clip:
                packets = (packet for packet in clip.demux(clip.streams.video[0]) if packet.size)
                found = frames_of(clip, packets, cut.sent, cut.wanted)
    except MediaError as error:  # a full decoding reports what is wrong with a broken clip
        raise Unsure(str(error)) from error
    if not found:
        raise Unsure("the decoder returned unexpected frames")
    return found, cut


def read(clip: InputContainer) -> tuple[list[CodedPicture], list[Any] | None]:
    """Every packet of the clip in decoding order, and the packets themselves if they are few; or
    Unsure."""
    stream = clip.streams.video[0]
    context = stream.codec_context
    if context.name != "h264":
        raise Unsure(f"codec {context.name}")
    extradata = context.extradata or b""
    # The bytes of the length before each unit; 0 for start codes.
    length = (extradata[4] & 3) + 1 if len(extradata) > 4 and extradata[0] == 1 else 0
    pictures, held, size = list[CodedPicture](), list[Any](), 0
    first_sets: tuple[bytes, ...] = ()
    for number, packet in enumerate(clip.demux(stream)):
        if number > MAX_FRAMES:
            raise Unsure("too many packets")
        if not packet.size:
            continue
        time = _display_time(packet)
        kind, sets = coded_kind(bytes(packet), length)
        pictures.append(CodedPicture(time, kind & 31 == IDR, bool(kind & 0x60)))
        first_sets = first_sets if len(pictures) > 1 else sets
        if sets != first_sets and (pictures[-1].idr or sets):
            raise Unsure("parameter sets change")
        size += packet.size
        if size <= HELD_BYTES:
            held.append(packet)
    _check_order(pictures)
    _check_depth(pictures, context.reorder_depth)
    return pictures, held if size <= HELD_BYTES else None


def shown(pictures: Sequence[CodedPicture]) -> list[int]:
    """The packets' positions in display order."""
    return sorted(range(len(pictures)), key=lambda place: pictures[place].time)


def plan(pictures: Sequence[CodedPicture], choice: Callable[[int], Sequence[int]]) -> DecodePlan:
    """The packets that the chosen frames need; Unsure if there are no frames."""
    order = shown(pictures)
    indices = tuple(choice(len(order)))
    if not indices:
        raise Unsure("no frame is wanted")
    places = {order[index] for index in indices}
    wanted = {pictures[order[index]].time: index for index in indices}
    return DecodePlan(len(order), indices, frozenset(needed(pictures, places)), wanted)


def needed(pictures: Sequence[CodedPicture], wanted: Collection[int]) -> set[int]:
    """The positions of the wanted pictures and of all pictures they may depend on."""
    sent, building = {0}, False
    for place in range(len(pictures) - 1, -1, -1):
        picture = pictures[place]
        if place in wanted or (building and picture.reference):
            sent.add(place)
            building = not picture.idr
    return sent


def coded_kind(packet: bytes, length: int) -> tuple[int, tuple[bytes, ...]]:
    """The first byte of the units of the picture in a packet, and the parameter sets before it;
    Unsure for anything else."""
    units = list(_split(packet, length))
    kinds = {unit[0] for unit in units if unit[0] & 31 in (SLICE, IDR)}
    if len(kinds) != 1:
        raise Unsure("not one picture in a packet")
    return kinds.pop(), tuple(unit for unit in units if unit[0] & 31 in (SPS, PPS))


def _split(data: bytes, length: int) -> Iterator[bytes]:
    """The units of a packet; those between start codes lose trailing zeros."""
    for unit in _counted(data, length) if length else _between_start_codes(data):
        if not unit or unit[0] & 0x80 or unit[0] & 31 not in _KNOWN:
            raise Unsure("a unit of an unknown kind")
        if unit[0] & 31 == SEI:
            _check_sei(unit)
        yield unit


def _counted(data: bytes, length: int) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        begin = at + length
        at = begin + int.from_bytes(data[at:begin], "big")
        if at > len(data):
            raise Unsure("a unit is longer than its packet")
        yield data[begin:at]


def _between_start_codes(data: bytes) -> Iterator[bytes]:
    first, *units = data.split(b"\0\0\1")
    if first.strip(b"\0"):
        raise Unsure("a packet does not begin with a start code")
    for unit in units:
        yield unit.rstrip(b"\0")


def _check_sei(unit: bytes) -> None:
    """A message is a type and a size, each a run of 255 bytes and a last byte, and a payload."""
    payload, at = unit[1:].replace(b"\0\0\3", b"\0\0"), 0
    while len(payload) - at > 1:
        numbers = [0, 0]
        for place in (0, 1):
            more = 255
            while more == 255:
                if at >= len(payload):
                    raise Unsure("a message ends early")
                more = payload[at]
                numbers[place] += more
                at += 1
        if numbers[0] not in _HARMLESS_SEI:
            raise Unsure("a message that may change pictures")
        at += numbers[1]


def _display_time(packet: Any) -> int:
    """Unsure for a packet that cannot be trusted."""
    if packet.is_corrupt or packet.is_discard or packet.pts is None:
        raise Unsure("a packet is corrupt, hidden or without a time")
    brought = {side.data_type for side in packet.iter_sidedata()} - {"mpegts_stream_id"}
    if brought:
        raise Unsure(f"a packet brings {', '.join(sorted(brought))}")
    return int(packet.pts)


def _check_order(pictures: Sequence[CodedPicture]) -> None:
    """The clip begins with an IDR picture; times are unique, and groups follow each other."""
    if not pictures or not pictures[0].idr:
        raise Unsure("the clip does not begin with an IDR picture")
    latest = group = -(1 << 63)  # of all packets, and of those before the current group
    for picture in pictures:
        group = latest if picture.idr else group
        latest = max(latest, picture.time)
        if picture.time <= group:
            raise Unsure("the times of groups overlap")
    if len({picture.time for picture in pictures}) < len(pictures):
        raise Unsure("times repeat")


def _check_depth(pictures: Sequence[CodedPicture], announced: int) -> None:
    """No picture waits for more than `announced` others; a decoder would drop some."""
    earlier: list[int] = []
    for picture in pictures:
        at = bisect_right(earlier, picture.time)
        if len(earlier) - at > announced:
            raise Unsure("more reordering than announced")
        earlier.insert(at, picture.time)

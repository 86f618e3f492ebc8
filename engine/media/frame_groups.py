"""Decodes a few frames of an H.264 clip without the others; the pixels equal a full decoding.

All packets are read first, which is cheap.  Between one IDR picture and the next, only the pictures
that a wanted frame may depend on are decoded: the references from the IDR picture up to it.  A
keyframe that is not an IDR picture is not a safe start, so the container's flags are ignored.  The
first packet is always decoded, because encoders put information for the decoder there.
Any doubt raises `Unsure`, and everything has to be decoded: another codec; packets that are hidden,
corrupt, carry settings, or have no unique time; times that do not follow the order of the pictures;
fields; gaps; more reordering than the clip announces; a decoder that returns unexpected frames.

Boundary: a clip in, its wanted frames out, or `Unsure`.  Damage in packets that are not decoded is
not reported; it cannot affect the decoded frames.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from engine.errors import MediaError
from engine.media.decoding import MAX_DECODED, MAX_FRAMES, container, frames_of
from engine.media.h264 import CodedPicture, Reader, Unsure
from engine.media.media_files import Data
from engine.types import Image

if TYPE_CHECKING:
    from av.container import InputContainer

HELD_BYTES = 32 << 20  # packets of larger clips are read again instead of being kept


@dataclass
class PacketTable:
    """A clip's packets in decoding order: the display time and content of each."""

    times: list[int] = field(default_factory=list)
    pictures: list[CodedPicture] = field(default_factory=list)
    held: list[Any] | None = field(default_factory=list)  # the packets, if they are few
    size: int = 0

    def add(self, packet: Any, picture: CodedPicture) -> None:
        self.times.append(packet.pts)
        self.pictures.append(picture)
        self.size += packet.size
        if self.size > HELD_BYTES:
            self.held = None
        if self.held is not None:
            self.held.append(packet)

    def shown(self) -> list[int]:
        """The packets' positions in display order."""
        return sorted(range(len(self.times)), key=self.times.__getitem__)


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
            table = read(clip)
            cut = plan(table, choice)
            _check_work(cut, clip)
            if table.held is not None:
                return _whole(frames_of(clip, table.held, cut.sent, cut.wanted)), cut
        with container(data, name, probed=False) as clip:
            packets = (packet for packet in clip.demux(clip.streams.video[0]) if packet.size)
            return _whole(frames_of(clip, packets, cut.sent, cut.wanted)), cut
    except MediaError as error:  # a full decoding reports what is wrong with a broken clip
        raise Unsure(str(error)) from error


def _check_work(cut: DecodePlan, clip: InputContainer) -> None:
    stream = clip.streams.video[0]
    if len(cut.sent) * stream.width * stream.height > MAX_DECODED:
        raise Unsure("more pixels than a partial decoding may produce")


def _whole(found: dict[int, Image] | None) -> dict[int, Image]:
    if found is None:
        raise Unsure("the decoder returned unexpected frames")
    return found


def read(clip: InputContainer) -> PacketTable:
    """Every packet of the clip, or Unsure."""
    stream = clip.streams.video[0]
    context = stream.codec_context
    if context.name != "h264":
        raise Unsure(f"codec {context.name}")
    reader, table = Reader(context.extradata or b""), PacketTable()
    for number, packet in enumerate(clip.demux(stream)):
        if number > MAX_FRAMES:
            raise Unsure("too many packets")
        if packet.size:
            _check_packet(packet)
            table.add(packet, reader.picture(bytes(packet)))
    _check_order(table)
    _check_depth(table, context.reorder_depth)
    return table


def plan(table: PacketTable, choice: Callable[[int], Sequence[int]]) -> DecodePlan:
    """The packets that the chosen frames need; Unsure if there are no frames."""
    order = table.shown()
    indices = tuple(choice(len(order)))
    if not indices:
        raise Unsure("no frame is wanted")
    places = {order[index] for index in indices}
    wanted = {table.times[order[index]]: index for index in indices}
    return DecodePlan(len(order), indices, frozenset(needed(table.pictures, places)), wanted)


def needed(pictures: Sequence[CodedPicture], wanted: Collection[int]) -> set[int]:
    """The positions of the wanted pictures and of all pictures they may depend on."""
    sent, building = {0}, False
    for place in range(len(pictures) - 1, -1, -1):
        picture = pictures[place]
        if place in wanted or (building and picture.reference):
            sent.add(place)
            building = not picture.idr
    return sent


def _check_packet(packet: Any) -> None:
    if packet.is_corrupt or packet.is_discard or packet.pts is None:
        raise Unsure("a packet is corrupt, hidden or without a time")
    brought = {side.data_type for side in packet.iter_sidedata()} - {"mpegts_stream_id"}
    if brought:
        raise Unsure(f"a packet brings {', '.join(sorted(brought))}")


def _check_order(table: PacketTable) -> None:
    """The times are unique and follow the order of the pictures' own numbers."""
    stretch, own = 0, []
    for picture in table.pictures:
        stretch += picture.idr
        own.append((stretch, picture.order))
    shown = table.shown()
    for before, after in pairwise(shown):
        if own[before] >= own[after] or table.times[before] == table.times[after]:
            raise Unsure("times disagree with the order of the pictures")


def _check_depth(table: PacketTable, announced: int) -> None:
    """No picture waits for more than `announced` others; a decoder would drop some."""
    earlier: list[int] = []
    for time in table.times:
        at = bisect_right(earlier, time)
        if len(earlier) - at > announced:
            raise Unsure("more reordering than announced")
        earlier.insert(at, time)

"""A few frames of an H.264 clip without decoding the others, equal to those of a whole decoding.

All packets are read first, which is cheap.  Of each stretch from one IDR picture to the next, only
those are decoded that a wanted frame can be built on: the references from the IDR picture up to
it.  A keyframe that is no IDR picture is no safe start, so the flags of the container are not
asked.  The first packet is always decoded: encoders tell the decoder about themselves there.

Anything in doubt raises `Unsure` and everything has to be decoded: another codec, packets without
a time or with one that another has, that are hidden, corrupt or bring settings along, an order of
times that is not the pictures' own, fields, gaps, more reordering than the clip announces, and a
decoder that gives other frames than were sent.

Boundary: from a clip to its wanted frames, or `Unsure`.  Damage in packets that are not decoded is
neither noticed nor said; it cannot reach the frames that are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from engine.errors import MediaError
from engine.media.containers import container
from engine.media.decoding import MAX_DECODED, MAX_FRAMES, some
from engine.media.h264 import Picture, Reader, Unsure
from engine.media.media_files import Data
from engine.types import Image

if TYPE_CHECKING:
    from av.container import InputContainer

HELD_BYTES = 32 << 20  # a longer clip's packets are read again instead of being kept


@dataclass
class Table:
    """A clip's packets in the order of decoding: when each is shown, and what it holds."""

    times: list[int] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    held: list[Any] | None = field(default_factory=list)  # the packets, while they are few
    size: int = 0

    def add(self, packet: Any, picture: Picture) -> None:
        self.times.append(packet.pts)
        self.pictures.append(picture)
        self.size += packet.size
        if self.size > HELD_BYTES:
            self.held = None
        if self.held is not None:
            self.held.append(packet)

    def shown(self) -> list[int]:
        """The packets' places in the order of showing."""
        return sorted(range(len(self.times)), key=self.times.__getitem__)


@dataclass(frozen=True)
class Cut:
    """What is decoded of a clip of `count` frames: places of packets, and the frames wanted."""

    count: int
    indices: tuple[int, ...]
    sent: frozenset[int]
    wanted: Mapping[int, int]  # a wanted frame's time -> its index


def frames(
    data: Data, name: str, choice: Callable[[int], Sequence[int]]
) -> tuple[dict[int, Image], Cut]:
    """The frames that `choice` picks, by index; Unsure when everything has to be decoded."""
    try:
        with container(data, name, probed=False) as clip:
            table = read(clip)
            cut = plan(table, choice)
            _check_work(cut, clip)
            if table.held is not None:
                return _whole(some(clip, table.held, cut.sent, cut.wanted)), cut
        with container(data, name, probed=False) as clip:
            packets = (packet for packet in clip.demux(clip.streams.video[0]) if packet.size)
            return _whole(some(clip, packets, cut.sent, cut.wanted)), cut
    except MediaError as error:  # the decoding of everything has the last word on a broken clip
        raise Unsure(str(error)) from error


def _check_work(cut: Cut, clip: InputContainer) -> None:
    stream = clip.streams.video[0]
    if len(cut.sent) * stream.width * stream.height > MAX_DECODED:
        raise Unsure("more pixels than are decoded without a look at the whole")


def _whole(found: dict[int, Image] | None) -> dict[int, Image]:
    if found is None:
        raise Unsure("the decoder gave other frames than were sent")
    return found


def read(clip: InputContainer) -> Table:
    """Every packet of the clip, or Unsure."""
    stream = clip.streams.video[0]
    context = stream.codec_context
    if context.name != "h264":
        raise Unsure(f"codec {context.name}")
    reader, table = Reader(context.extradata or b""), Table()
    for number, packet in enumerate(clip.demux(stream)):
        if number > MAX_FRAMES:
            raise Unsure("too many packets")
        if packet.size:
            _check_packet(packet)
            table.add(packet, reader.picture(bytes(packet)))
    _check_order(table)
    _check_depth(table, context.reorder_depth)
    return table


def plan(table: Table, choice: Callable[[int], Sequence[int]]) -> Cut:
    """Which packets the chosen frames need; Unsure if there is nothing to choose from."""
    order = table.shown()
    indices = tuple(choice(len(order)))
    if not indices:
        raise Unsure("no frame is wanted")
    places = {order[index] for index in indices}
    wanted = {table.times[order[index]]: index for index in indices}
    return Cut(len(order), indices, frozenset(needed(table.pictures, places)), wanted)


def needed(pictures: Sequence[Picture], wanted: Collection[int]) -> set[int]:
    """The places of the wanted pictures and of all that these may be built on."""
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


def _check_order(table: Table) -> None:
    """The times order the frames as the pictures' own numbers do, and no two are equal."""
    stretch, own = 0, []
    for picture in table.pictures:
        stretch += picture.idr
        own.append((stretch, picture.order))
    shown = table.shown()
    for before, after in pairwise(shown):
        if own[before] >= own[after] or table.times[before] == table.times[after]:
            raise Unsure("times disagree with the order of the pictures")


def _check_depth(table: Table, announced: int) -> None:
    """No picture waits for more than `announced` others: a decoder would then drop some."""
    earlier: list[int] = []
    for time in table.times:
        at = bisect_right(earlier, time)
        if len(earlier) - at > announced:
            raise Unsure("more reordering than announced")
        earlier.insert(at, time)

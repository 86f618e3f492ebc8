"""Opens clips with FFmpeg, and decodes their packets into pictures: all frames, or some.

MP4 and MOV, Matroska and WebM, MPEG transport streams, AVI and GIF.  The content decides the
reader, and FFmpeg gets its name.  If FFmpeg guessed, a file could be read as a playlist that opens
other files.  The five readers listed here read only the one file they are given, through Python.  A
reader may not use another reader (AVI can hold subtitles of any kind) or open a network address.

Sizes are checked before memory is allocated: what an MP4's tables declare, and the pixels of a
frame, both in the header and in the decoder.  FFmpeg needs about 70 bytes per declared sample of an
MP4, and a table of 20 bytes can declare two billion.

Format of these tables: ISO/IEC 14496-12, 4.2 (boxes), 8.6.1 (stts, ctts), 8.7.3 (stsz, stz2), 8.6.6
(elst), 8.8.8 (trun).
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from engine.errors import MediaError
from engine.media.media_files import HEAD, MP4, Data, kind_by_content, opened
from engine.plain_files import reason
from engine.types import Image

if TYPE_CHECKING:
    from av.container import InputContainer

MIN_BYTES = 1_000  # of all kinds except GIF, which can be smaller
MAX_PIXELS = 8192 * 4320  # 8K; eight frames of it, as RGB, take 850 MB
# FFmpeg's full names of these readers, which it compares.
_FORMATS = {"mp4": "mov,mp4,m4a,3gp,3g2,mj2", "matroska": "matroska,webm"}
# Without these options FFmpeg decodes pictures on opening, to learn what the header already says.
UNPROBED = {"skip_frame": "all", "analyzeduration": "1"}
THREADS = 0  # as many as there are cores
MAX_FRAMES = 1_000_000
NO_FRAMES = "holds no frames: encode it again or pick another clip."
# A few kilobytes can describe hours of large still pictures.  A healthy clip has at most some
# hundred pixels per byte; a short clip of a still scene may have more.
MAX_DECODED = 5_000_000_000  # pixels, or as many as the file has bytes for
PIXELS_PER_BYTE = 8_000
# A decoder's repairs depend on what it decoded before, so damage is an error here.
_STRICT = {"err_detect": "explode"}

# Of an MP4's tables.  A million samples are four and a half hours at 60 frames per second.  Sound
# stored sample by sample is exempt, as FFmpeg does not index it this way.
MAX_SAMPLES = 1_000_000
MAX_TABLES = 128 << 20  # bytes of a header, also of a fragment's header
MAX_BOXES = 200_000
MAX_EDITED = 100_000_000  # FFmpeg visits every sample for every entry of an edit list
_HEADERS = (b"moov", b"moof", b"trak", b"traf", b"mdia", b"minf", b"stbl", b"edts", b"mvex",
            b"udta", b"dinf", b"tapt", b"wave", b"hoov")  # fmt: skip
_TABLE = re.compile(b"cmov|hdlr|elst|trun|stsz|stz2|stts|ctts")


@dataclass(frozen=True, eq=False)
class Clip:
    """The chosen frames of a clip of `count` frames; images[i] is frame indices[i]."""

    images: tuple[Image, ...]
    indices: tuple[int, ...]
    count: int
    notes: tuple[str, ...] = ()


def reader_of(head: bytes, name: str = "") -> str:
    """FFmpeg's name of the reader for a file with these first bytes; MP4 if they are unknown.
    MediaError for a known kind that is not supported."""
    kind = kind_by_content(head) or MP4
    if kind.field != "clip":
        raise MediaError(kind.refusal(name, "a supported clip"))
    return kind.reader


@contextmanager
def container(data: Data, name: str, probed: bool = True) -> Iterator[InputContainer]:
    """The open clip.  FFmpeg's errors are raised as MediaError until it is closed.  With `probed`
    False an MP4 opens much faster and gives only what its header says; asking for its pixel format
    would then crash PyAV."""
    try:
        import av
    except ImportError as error:
        raise MediaError(
            f"{name} could not be decoded (PyAV is not installed): `pip install av`."
        ) from error
    try:
        with opened(data) as file:
            kind = reader_of(file.read(HEAD), name)
            if len(data) < MIN_BYTES and kind != "gif":
                raise MediaError(
                    f"{name} has {len(data):,} bytes: a clip below {MIN_BYTES:,} bytes is broken, "
                    "copy it again or pick another clip."
                )
            if kind == "mp4":
                check_tables(file, len(data))
            file.seek(0)
            options = {
                "format_whitelist": _FORMATS.get(kind, kind),
                "protocol_whitelist": "none",
                "max_pixels": str(MAX_PIXELS),
            }
            if kind == "mp4" and not probed:
                options |= UNPROBED
            with av.open(file, "r", kind, options, metadata_errors="replace") as clip:
                _check(clip, name)
                clip.streams.video[0].codec_context.options = {"max_pixels": str(MAX_PIXELS)}
                yield clip
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            f"{name} could not be decoded ({reason(error)}): encode it again or pick another clip."
        ) from error


def _check(clip: InputContainer, name: str) -> None:
    if not clip.streams.video:
        raise MediaError(f"{name} has no video track: choose a clip that has one.")
    stream = clip.streams.video[0]
    if stream.codec_context is None:
        raise MediaError(f"The codec of {name} is not known: encode it as H.264.")
    if stream.width * stream.height > MAX_PIXELS:
        raise MediaError(
            f"{name} is {stream.width:,} x {stream.height:,} pixels: make it smaller than "
            f"{MAX_PIXELS:,} pixels."
        )


def pictures(data: Data, name: str) -> Iterator[Image]:
    """Every frame in order, one at a time; MediaError if there is none."""
    with container(data, name) as clip:
        frame = None
        for frame in clip.decode(clip.streams.video[0]):
            yield pixels(frame)
        if frame is None:
            raise MediaError(f"{name} {NO_FRAMES}")


def all_frames(data: Data, name: str, wanted: Collection[int]) -> tuple[dict[int, Image], int, int]:
    """(the wanted frames by index, how many frames came, how many of them were damaged)."""
    kept: dict[int, Image] = {}
    count = damaged = 0
    chosen = set(wanted)
    with container(data, name) as clip:
        _use(clip, 1)
        for count, frame in enumerate(clip.decode(clip.streams.video[0]), start=1):
            check_count(count, name)
            decoded = count * frame.width * frame.height
            if decoded > max(MAX_DECODED, PIXELS_PER_BYTE * len(data)):
                raise MediaError(
                    f"{name} has over {decoded:,} pixels in {len(data):,} bytes: cut it shorter or "
                    "make it smaller."
                )
            damaged += bool(frame.is_corrupt)
            if count - 1 in chosen:
                kept[count - 1] = pixels(frame)
    return kept, count, damaged


def some_frames(data: Data, name: str, choice: Callable[[int], Sequence[int]]) -> Clip | None:
    """The frames of an H.264 clip that `choice` picks, without decoding the others; the pixels
    equal those of `all_frames`.

    Decoding starts at the IDR picture before a wanted frame, as other keyframes are no safe start,
    and leaves out what no other picture depends on.  The first packet is always decoded: encoders
    put information for the decoder there.  None in any doubt: then all has to be decoded.
    """
    try:
        with container(data, name, probed=False) as clip:
            groups = _groups(clip)
            order = sorted(time for group in groups for time in group)
            indices = list(choice(len(order))) if order else []
            wanted = {order[index]: index for index in indices}
            sent = [
                place <= max((at for at, other in enumerate(group) if other in wanted), default=-1)
                for group in groups
                for place in range(len(group))
            ]
            stream = clip.streams.video[0]
            if not indices or sum(sent) * stream.width * stream.height > MAX_DECODED:
                return None
        with container(data, name, probed=False) as clip:
            kept = _sent_frames(clip, [True, *sent[1:]], wanted)
    except MediaError:  # decoding everything reports what is wrong
        return None
    if kept is None:
        return None
    return Clip(tuple(kept[index] for index in indices), tuple(indices), len(order))


def _groups(clip: InputContainer) -> list[list[int]]:
    """The display times of H.264 packets, from each IDR picture to the next; none in any doubt."""
    stream = clip.streams.video[0]
    if stream.codec_context.name != "h264":
        return []
    from av.bitstream import BitStreamFilterContext

    units = BitStreamFilterContext("h264_mp4toannexb", stream)
    groups, latest = list[list[int]](), list[int]()  # `latest`: all times so far, ascending
    for number, packet in enumerate(clip.demux(stream)):
        if not packet.size:
            continue
        time, told = packet.pts, {side.data_type for side in packet.iter_sidedata()}
        unsafe = packet.is_corrupt or packet.is_discard or told - {"mpegts_stream_id"}
        if unsafe or time is None or number > MAX_FRAMES:
            return []
        later = len(latest) - bisect_left(latest, time)
        if packet.is_keyframe and _is_idr(b"".join(map(bytes, units.filter(packet)))):
            if later:
                return []
            groups.append([time])
        elif not groups or time <= groups[-1][0] or later > stream.codec_context.reorder_depth:
            return []  # more pictures wait than the clip announces: a decoder would drop some
        else:
            groups[-1].append(time)
        insort(latest, time)
    return groups if len(set(latest)) == len(latest) else []


def _is_idr(units: bytes) -> bool:
    """Whether decoding may start at the picture in these units, each behind a start code."""
    first = re.search(rb"\x00\x00\x01[\x01\x05!%AEae]", units)  # a slice; messages precede it
    return first is not None and first[0][-1] & 31 == 5


def _sent_frames(
    clip: InputContainer, sent: Sequence[bool], wanted: Mapping[int, int]
) -> dict[int, Image] | None:
    """The frames at the times in `wanted`, by index, from the packets that are sent; None unless
    the decoder gives whole frames in display order, and no fields."""
    stream, kept, latest = clip.streams.video[0], dict[int, Image](), -(1 << 63)
    _use(clip, THREADS)
    context = stream.codec_context
    context.options = {**context.options, **_STRICT}
    packets = (packet for packet in clip.demux(stream) if packet.size)
    for packet in chain(compress(packets, sent), [None]):
        plain = packet is not None and packet.pts not in wanted
        context.skip_frame = "NONREF" if plain else "DEFAULT"
        for frame in context.decode(packet):
            time = frame.pts
            if frame.is_corrupt or frame.interlaced_frame or time is None or time <= latest:
                return None
            latest = time
            if time in wanted:
                kept[wanted[time]] = pixels(frame)
    return kept if len(kept) == len(wanted) else None


def check_count(count: int, name: str) -> None:
    """MediaError for an absurd number of packets or frames."""
    if count > MAX_FRAMES:
        raise MediaError(f"{name} has over {MAX_FRAMES:,} frames: cut it shorter.")


def _use(clip: InputContainer, threads: int) -> None:
    stream = clip.streams.video[0]
    stream.thread_type = "NONE" if threads == 1 else "AUTO"
    stream.codec_context.thread_count = threads


def pixels(frame: Any) -> Image:
    """[H, W, 3] RGB, rotated as the container says (phones film sideways)."""
    image: Image = frame.to_ndarray(format="rgb24")
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(image, turns)) if turns else image


def check_tables(file: BinaryIO, size: int) -> None:
    """ValueError if the tables of an MP4 of `size` bytes declare more than the limits.  Tables are
    looked for anywhere in a header: FFmpeg reads no other ones."""
    at = samples = edits = 0
    for _ in range(MAX_BOXES):
        if at + 8 > size:
            return
        file.seek(at)
        head = file.read(16)
        length, kind, begin = _number(head, 0), head[4:8], at + 8
        if length == 1:
            length, begin = int.from_bytes(head[8:], "big"), at + 16
        end = max(min(at + (length or size), size), begin)
        if kind in _HEADERS or _TABLE.match(kind):
            if end - at > MAX_TABLES:
                raise ValueError(f"a header of {end - at:,} bytes")
            file.seek(at)
            content = file.read(end - at)
            sound = False  # whether the current track is sound
            for found in _TABLE.finditer(content):
                table, box = found[0], content[found.end() : found.end() + 16]
                if table == b"cmov":
                    raise ValueError("a compressed header")
                if table == b"hdlr":
                    sound = box[8:12] == b"soun"
                elif table == b"elst":
                    edits += min(_number(box, 4), len(content) // 12)
                elif table == b"trun":
                    samples += _number(box, 4)
                else:
                    samples = max(samples, _declared(table, content, found.end(), sound))
                if samples > MAX_SAMPLES:
                    raise ValueError(f"tables of over {MAX_SAMPLES:,} frames")
                if edits * samples > MAX_EDITED:
                    raise ValueError(f"an edit list of {edits:,} entries")
        at = end
    raise ValueError(f"over {MAX_BOXES:,} boxes")


def _declared(table: bytes, content: bytes, at: int, sound: bool) -> int:
    """The samples of a table of sizes or of times, whose content begins at this place."""
    if table in (b"stsz", b"stz2"):
        constant = sound and table == b"stsz" and _number(content, at + 4)
        return 0 if constant else _number(content, at + 8)
    entries = _number(content, at + 4)
    if sound and entries == 1 and _number(content, at + 12) == 1:
        return 0
    places = range(at + 8, min(at + 8 + 8 * entries, len(content)), 8)
    return sum(_number(content, place) for place in places)


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")

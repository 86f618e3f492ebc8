"""Reads media files, sorts them by number, names them in error messages, and finds their kind, by
the first bytes and then by the name.  Unsupported kinds are listed too, so that the error can say
how to convert the file.  A kind that can be read is one line here, and its endings below."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.errors import MediaError
from engine.plain_files import open_regular, reason
from engine.quoting import shown

MAX_BYTES = 1 << 30
MAX_PLACE = 240  # characters of a whole path in a message
PIECE = 1 << 20
HEAD = 1024  # bytes of a file that decide its kind
_TO_MP4 = "convert it with `ffmpeg -i FILE clip.mp4`"
_TO_PNG = "save it as PNG"
_TO_NPY = "convert it to a .npy with a dict of the arrays x, y, t and p"


@dataclass(frozen=True)
class FileKind:
    """A kind of file; `field` is its use in a sample, "" if it is not supported.  `reader`: the
    module of engine/media/readers for events, FFmpeg's reader for clips."""

    name: str
    field: str
    advice: str = ""
    short: str = ""
    reader: str = ""

    def refusal(self, file: str, wanted: str) -> str:
        """The sentence that refuses a file of this kind where `wanted` is expected."""
        return f"{file} is {self.name}, not {wanted}: {self.advice or f'give {wanted}'}."


PNG = FileKind("a PNG picture", "images")
JPEG = FileKind("a JPEG picture", "images")
GIF = FileKind("a GIF", "clip", _TO_PNG, "GIF", "gif")
STILL_GIF = FileKind("a GIF picture", "images")
NPY = FileKind("a .npy file", "events", reader="npy")
PROPHESEE_RAW = FileKind("a Prophesee RAW recording", "events", reader="prophesee")
PROPHESEE_DAT = FileKind("a Prophesee DAT recording", "events", reader="prophesee")
AEDAT4 = FileKind("an AEDAT4 recording", "events", reader="aedat4")
NPZ = FileKind("a ZIP archive (.npz)", "events", reader="npz")
HDF5 = FileKind("an HDF5 file", "events", reader="hdf5")
CALTECH = FileKind("an event recording of the N-Caltech101 kind (.bin)", "events", reader="caltech")
TEXT = FileKind("a text file (.csv or .txt)", "events", reader="text")
MP4 = FileKind("an MP4 clip", "clip", short="MP4", reader="mp4")
MOV = FileKind("a MOV clip", "clip", short="MOV", reader="mp4")
MATROSKA = FileKind("a Matroska clip", "clip", short="Matroska", reader="matroska")
WEBM = FileKind("a WebM clip", "clip", short="WebM", reader="matroska")
MPEGTS = FileKind("an MPEG transport stream", "clip", short="MPEG-TS", reader="mpegts")
AVI = FileKind("an AVI clip", "clip", short="AVI", reader="avi")
OLD_AEDAT = FileKind(
    "an AEDAT recording older than version 4", "", "convert it to .aedat4 with iniVation's DV"
)

# How a file begins, and its kind: the first match decides.
_MAGIC = (
    (rb"G.{187}G.{187}G", MPEGTS),  # each packet has 188 bytes: ISO/IEC 13818-1
    # Lines of the header of Prophesee's files, which begins with "% ".
    (rb"(?=%)(.*\n)?% ?(evt|format) ", PROPHESEE_RAW),
    (rb"(?=%)(.*\n)?% ?(?i:data file|version) ", PROPHESEE_DAT),
    (rb"\x89PNG\r\n\x1a\n", PNG),
    (rb"\xff\xd8\xff", JPEG),
    (rb"GIF8[79]a", GIF),
    (rb"\x93NUMPY", NPY),
    # EBML's own id, RFC 8794 11.2.1; its header names the type of document.
    (rb"\x1a\x45\xdf\xa3.{0,56}webm", WEBM),
    (rb"\x1a\x45\xdf\xa3", MATROSKA),
    (rb".{4}ftyp(heic|heix|mif1|msf1|avif|avis)", FileKind("a HEIF or AVIF picture", "", _TO_PNG)),
    (rb".{4}ftypqt  ", MOV),
    (rb".{4}(ftyp|moov|mdat|moof|styp|wide|pnot)", MP4),
    (rb".{8}AVI ", AVI),
    (rb".{8}WEBP", FileKind("a WebP picture", "", _TO_PNG)),
    (rb".{8}WAVE", FileKind("a sound file (WAV)", "")),
    (rb"II\*\x00|MM\x00\*", FileKind("a TIFF picture", "", _TO_PNG)),
    (rb"BM.{4}\x00{4}", FileKind("a BMP picture", "", _TO_PNG)),
    (rb"<svg", FileKind("an SVG drawing", "", _TO_PNG)),
    (rb"%PDF", FileKind("a PDF document", "", _TO_PNG)),
    (rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11", FileKind("a WMV (ASF) clip", "", _TO_MP4)),
    (rb"FLV\x01", FileKind("an FLV clip", "", _TO_MP4)),
    (rb"OggS", FileKind("an Ogg file", "", _TO_MP4)),
    (rb"DKIF", FileKind("an IVF clip", "", _TO_MP4)),
    (rb"nut/multimedia", FileKind("a NUT clip", "", _TO_MP4)),
    (rb"\x00\x00\x01\xba", FileKind("an MPEG program stream", "", _TO_MP4)),
    (rb"\x00\x00\x01\xb3", FileKind("a bare MPEG video stream", "", _TO_MP4)),
    (rb"#EXTM3U", FileKind("an HLS playlist", "", "give the clip itself")),
    (rb"ffconcat", FileKind("a playlist of FFmpeg", "", "give the clip itself")),
    (rb"\x89HDF\r\n\x1a\n", HDF5),
    (rb"PK\x03\x04", NPZ),
    (rb"#!AER-DAT4", AEDAT4),
    (rb"#!AER-DAT", OLD_AEDAT),
    (rb"#ROSBAG", FileKind("a ROS bag", "", _TO_NPY)),
    (rb"% ", FileKind("a Prophesee recording of an unknown kind", "", _TO_NPY)),
)
_MAX_GIF = 64 << 20  # bytes in which a second picture is looked for
_EXTENSION, _PICTURE, _TABLE = 0x21, 0x2C, 0x80  # of a GIF
_ENDINGS = {
    f".{ending}": kind
    for kind, endings in (
        (MP4, "mp4 m4v"), (MOV, "mov"), (MATROSKA, "mkv"), (WEBM, "webm"), (AVI, "avi"),
        (MPEGTS, "ts"), (GIF, "gif"), (NPY, "npy"), (PNG, "png"), (JPEG, "jpg jpeg"),
        (CALTECH, "bin"), (PROPHESEE_RAW, "raw"), (PROPHESEE_DAT, "dat"), (OLD_AEDAT, "aedat"),
        (AEDAT4, "aedat4"), (HDF5, "h5 hdf5"), (NPZ, "npz"), (TEXT, "csv txt"),
    )
    for ending in endings.split()
}  # fmt: skip
READ_SUFFIXES = tuple(ending for ending, kind in _ENDINGS.items() if kind.field)
CLIP_SUFFIXES = tuple(ending for ending, kind in _ENDINGS.items() if kind.field == "clip")
EVENT_SUFFIXES = tuple(ending for ending, kind in _ENDINGS.items() if kind.field == "events")


def kind_of(head: bytes, name: str) -> FileKind | None:
    """The kind by content, else by file extension; None if neither is known."""
    named = _ENDINGS.get(Path(name).suffix.lower())
    # "% " begins Prophesee's header, and a comment of a text.
    if named is TEXT and head.startswith(b"% "):
        return TEXT
    return kind_by_content(head) or named


def kind_by_content(head: bytes) -> FileKind | None:
    return next((kind for start, kind in _MAGIC if re.match(start, head, re.DOTALL)), None)


def kind_of_file(path: Path, name: str) -> FileKind | None:
    """The kind of a user's file `name`; a GIF with one picture counts as a picture.  If the file
    cannot be read, only its name decides; loading it reports the error."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
            kind = kind_of(head, name)
            return STILL_GIF if kind is GIF and not moves(head + file.read(_MAX_GIF)) else kind
    except (OSError, ValueError):
        return kind_of(b"", name)


def moves(data: bytes) -> bool:
    """Whether a GIF has at least two pictures (GIF89a specification, 1990)."""
    at, pictures = 13 + _table(data, 10), 0
    while at < len(data) and pictures < 2:
        if data[at] == _PICTURE:
            pictures += 1
            at += 10 + _table(data, at + 9) + 1  # descriptor, colours, size of the codes
        elif data[at] == _EXTENSION:
            at += 2
        else:
            break
        while at < len(data) and data[at]:  # sub-blocks, each with its size first
            at += 1 + data[at]
        at += 1
    return pictures > 1


def _table(data: bytes, at: int) -> int:
    """Bytes of the colour table that the flags at this offset announce."""
    flags = data[at] if at < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & _TABLE else 0


@dataclass(frozen=True)
class Large:
    """A file that is read in pieces, possibly several times, and must not change meanwhile."""

    path: Path
    state: tuple[int, int, int, int]  # device, inode, bytes, time of the last change

    def __len__(self) -> int:
        return self.state[2]


Data = bytes | Large


def label(path: Path) -> str:
    """The file and its folder, as in "seq/000000.npy"."""
    return shown(f"{path.parent.name}/{path.name}" if path.parent.name else path.name)


def place(path: Path) -> str:
    return shown(path, MAX_PLACE)


def by_number(path: Path) -> tuple[float, str]:
    """Sort key: the last integer in the name, so that `_10` follows `_2`; other names last."""
    numbers = re.findall(r"[0-9]{1,15}", path.stem)
    return (float(numbers[-1]) if numbers else float("inf"), path.name)


def content(path: Path) -> bytes:
    """All bytes of a file; MediaError if it is missing, unreadable, empty or above 1 GiB."""
    found = large(path)
    with opened(found) as file, _readable(label(path)):
        return file.read(len(found))


def large(path: Path, *, whole: bool = True) -> Large:
    """The file, not yet read; MediaError as for `content`, but of any size if not read `whole`."""
    name = label(path)
    with _readable(name):
        if not path.is_file():
            raise MediaError(f"{name} does not exist or is not a file: restore it or pick another.")
        found = Large(path, _state(path.stat()))
    if whole and len(found) > MAX_BYTES:
        raise MediaError(f"{name} has {len(found):,} bytes: give a file of at most {MAX_BYTES:,}.")
    if not len(found):
        raise MediaError(f"{name} is empty (0 bytes): copy it again from its source.")
    return found


@contextmanager
def opened(data: Data) -> Iterator[BinaryIO]:
    """The bytes as an open file; MediaError if the file has changed since `large`."""
    if isinstance(data, bytes):
        yield io.BytesIO(data)
        return
    name = label(data.path)
    with ExitStack() as stack:
        with _readable(name):
            file = stack.enter_context(open_regular(data.path))
            _check_unchanged(file, data, name)
        yield file
        _check_unchanged(file, data, name)


def part(file: BinaryIO, at: int, size: int, name: str) -> bytes:
    """The bytes at a place of an open file; MediaError if they are fewer."""
    file.seek(at)
    found = file.read(size)
    if len(found) < size:
        raise MediaError(f"{name} became shorter while it was read: try again.")
    return found


def pieces(data: Data) -> Iterator[bytes]:
    """The bytes in order, at most 1 MiB at a time."""
    if isinstance(data, bytes):
        yield data
        return
    with opened(data) as file, _readable(label(data.path)):
        while piece := file.read(PIECE):
            yield piece


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise MediaError(f"{name} could not be read ({reason(error)}): check the file.") from error


def _check_unchanged(file: BinaryIO, data: Large, name: str) -> None:
    if _state(os.fstat(file.fileno())) != data.state:
        raise MediaError(f"{name} changed while it was read: wait until it is written, try again.")


def _state(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns

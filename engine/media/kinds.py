"""The kind of a file, by its first bytes and then by its name.  Unsupported kinds are listed too,
so that the error can say how to convert the file.  A kind that can be read is one line here, and
its endings below."""

import re
from dataclasses import dataclass
from pathlib import Path

from engine.plain_files import open_regular

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


def of(head: bytes, name: str) -> FileKind | None:
    """The kind by content, else by file extension; None if neither is known."""
    named = _ENDINGS.get(Path(name).suffix.lower())
    # "% " begins Prophesee's header, and a comment of a text.
    if named is TEXT and head.startswith(b"% "):
        return TEXT
    return by_content(head) or named


def by_content(head: bytes) -> FileKind | None:
    for start, kind in _MAGIC:
        if re.match(start, head, re.DOTALL):
            return kind
    return None


def of_file(path: Path, name: str) -> FileKind | None:
    """The kind of a user's file `name`; a GIF with one picture counts as a picture.  If the file
    cannot be read, only its name decides; loading it reports the error."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
            kind = of(head, name)
            still = kind is GIF and not moves(head + file.read(_MAX_GIF))
            return STILL_GIF if still else kind
    except (OSError, ValueError):
        return of(b"", name)


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

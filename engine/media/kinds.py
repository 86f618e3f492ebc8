"""What kind of file this is, by its first bytes and then by its name, and what to do about it.

Kinds that are not read are named, so that a user learns how to convert a healthy file.

Boundary: first bytes and names in, a Kind out; decodes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.plain_files import open_regular

HEAD = 1024  # bytes of a file that decide its kind
TS_PACKET = 188  # bytes of a transport stream's packet, which begins with "G": ISO/IEC 13818-1
_TO_MP4 = "convert it with `ffmpeg -i FILE clip.mp4`"
_TO_PNG = "save it as PNG"
_TO_NPY = "convert it to a .npy with a dict of the arrays x, y, t and p"


@dataclass(frozen=True)
class Kind:
    """A kind of file; `field` is what a sample uses it for, "" where it is not read."""

    name: str
    field: str
    advice: str = ""
    short: str = ""

    def refusal(self, file: str, wanted: str) -> str:
        """The sentence that refuses a file of this kind where another is wanted."""
        return f"{file} is {self.name}, not {wanted}: {self.advice or f'give {wanted}'}."


PNG = Kind("a PNG picture", "images")
JPEG = Kind("a JPEG picture", "images")
GIF = Kind("a GIF", "clip", _TO_PNG, "GIF")
STILL_GIF = Kind("a GIF picture", "images")
NPY = Kind("a .npy file", "events")
MP4 = Kind("an MP4 clip", "clip", short="MP4")
MOV = Kind("a MOV clip", "clip", short="MOV")
MATROSKA = Kind("a Matroska clip", "clip", short="Matroska")
WEBM = Kind("a WebM clip", "clip", short="WebM")
MPEGTS = Kind("an MPEG transport stream", "clip", short="MPEG-TS")
AVI = Kind("an AVI clip", "clip", short="AVI")

# (place, bytes there, kind): the first that agrees decides.
_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", PNG),
    (0, b"\xff\xd8\xff", JPEG),
    (0, b"GIF87a", GIF),
    (0, b"GIF89a", GIF),
    (0, b"\x93NUMPY", NPY),
    (0, b"\x1a\x45\xdf\xa3", MATROSKA),  # EBML's own id, RFC 8794 11.2.1
    *((4, b"ftyp" + brand, Kind("a HEIF or AVIF picture", "", _TO_PNG))
      for brand in (b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis")),
    (4, b"ftypqt  ", MOV),
    *((4, box, MP4) for box in (b"ftyp", b"moov", b"mdat", b"moof", b"styp", b"wide", b"pnot")),
    (8, b"AVI ", AVI),
    (8, b"WEBP", Kind("a WebP picture", "", _TO_PNG)),
    (8, b"WAVE", Kind("a sound file (WAV)", "")),
    (0, b"II*\0", Kind("a TIFF picture", "", _TO_PNG)),
    (0, b"MM\0*", Kind("a TIFF picture", "", _TO_PNG)),
    (6, b"\0\0\0\0", Kind("a BMP picture", "", _TO_PNG)),  # with "BM" first, see `_by_content`
    (0, b"<svg", Kind("an SVG drawing", "", _TO_PNG)),
    (0, b"%PDF", Kind("a PDF document", "", _TO_PNG)),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", Kind("a WMV (ASF) clip", "", _TO_MP4)),
    (0, b"FLV\x01", Kind("an FLV clip", "", _TO_MP4)),
    (0, b"OggS", Kind("an Ogg file", "", _TO_MP4)),
    (0, b"DKIF", Kind("an IVF clip", "", _TO_MP4)),
    (0, b"nut/multimedia", Kind("a NUT clip", "", _TO_MP4)),
    (0, b"\0\0\1\xba", Kind("an MPEG program stream", "", _TO_MP4)),
    (0, b"\0\0\1\xb3", Kind("a bare MPEG video stream", "", _TO_MP4)),
    (0, b"#EXTM3U", Kind("an HLS playlist", "", "give the clip itself")),
    (0, b"ffconcat", Kind("a playlist of FFmpeg", "", "give the clip itself")),
    (0, b"\x89HDF\r\n\x1a\n", Kind("an HDF5 file", "", _TO_NPY)),
    (0, b"PK\x03\x04", Kind("a ZIP archive (.npz)", "", _TO_NPY)),
    (0, b"#!AER-DAT", Kind("an AEDAT recording", "", _TO_NPY)),
    (0, b"#ROSBAG", Kind("a ROS bag", "", _TO_NPY)),
    (0, b"% ", Kind("a Prophesee recording (.raw or .dat)", "", _TO_NPY)),
)  # fmt: skip
_BMP = 6
_DOCTYPE = 64  # bytes of an EBML header, which names the type of document
_MAX_GIF = 64 << 20  # bytes in which a second picture is looked for
_EXTENSION, _PICTURE, _TABLE = 0x21, 0x2C, 0x80  # of a GIF
_ENDINGS = {
    ".mp4": MP4,
    ".m4v": MP4,
    ".mov": MOV,
    ".mkv": MATROSKA,
    ".webm": WEBM,
    ".avi": AVI,
    ".ts": MPEGTS,
    ".gif": GIF,
    ".npy": NPY,
    ".png": PNG,
    ".jpg": JPEG,
    ".jpeg": JPEG,
    ".bin": Kind("an event recording of the older N-Caltech101 or ATIS kind (.bin)", "", _TO_NPY),
    ".raw": Kind("a Prophesee recording (.raw)", "", _TO_NPY),
    ".dat": Kind("a Prophesee recording (.dat)", "", _TO_NPY),
    ".aedat": Kind("an AEDAT recording", "", _TO_NPY),
    ".aedat4": Kind("an AEDAT recording", "", _TO_NPY),
    ".h5": Kind("an HDF5 file", "", _TO_NPY),
    ".hdf5": Kind("an HDF5 file", "", _TO_NPY),
    ".npz": Kind("a ZIP archive (.npz)", "", _TO_NPY),
    ".csv": Kind("a text file (.csv)", "", _TO_NPY),
    ".txt": Kind("a text file", "", _TO_NPY),
}
READ_SUFFIXES = tuple(ending for ending, kind in _ENDINGS.items() if kind.field)
CLIP_SUFFIXES = tuple(ending for ending, kind in _ENDINGS.items() if kind.field == "clip")


def of(head: bytes, name: str) -> Kind | None:
    """The kind by content, else by the name's ending; None for neither."""
    return by_content(head) or _ENDINGS.get(Path(name).suffix.lower())


def by_content(head: bytes) -> Kind | None:
    if all(head[at : at + 1] == b"G" for at in (0, TS_PACKET, 2 * TS_PACKET)):
        return MPEGTS
    for at, magic, kind in _MAGIC:
        if head.startswith(magic, at) and (at != _BMP or head.startswith(b"BM")):
            return WEBM if kind is MATROSKA and b"webm" in head[:_DOCTYPE] else kind
    return None


def of_file(path: Path, name: str) -> Kind | None:
    """The kind of a file that a user calls `name`; a GIF of one picture is a picture.

    By its name alone where the file cannot be read: who loads it says why.
    """
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
            kind = of(head, name)
            still = kind is GIF and not moves(head + file.read(_MAX_GIF))
            return STILL_GIF if still else kind
    except (OSError, ValueError):
        return of(b"", name)


def moves(data: bytes) -> bool:
    """Whether a GIF has two pictures (GIF89a specification, 1990: blocks behind the header)."""
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
    """Bytes of the table of colours that the flags at this place announce."""
    flags = data[at] if at < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & _TABLE else 0

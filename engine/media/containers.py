"""Clips as FFmpeg opens them: MP4, Matroska and MPEG transport streams, chosen by content.

The reader is named, never left for FFmpeg to guess: what calls itself a clip may be a playlist,
and the readers of those follow what is written in a file to other files.  The three that are
named here read the one file they are given, through Python, which opens nothing else.

Boundary: bytes to an open container; decodes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import MediaError
from engine.media.files import Data, opened

if TYPE_CHECKING:
    from av.container import InputContainer

MIN_BYTES = 1_000
MAX_PIXELS = 50_000_000
_MATROSKA = b"\x1a\x45\xdf\xa3"  # EBML's own id, RFC 8794 11.2.1
_PACKET = 188  # bytes of a transport stream's packet, which begins with "G": ISO/IEC 13818-1
# FFmpeg decodes pictures when it opens a clip, to learn what its header already says.
UNPROBED = {"skip_frame": "all", "analyzeduration": "1"}


def reader_of(head: bytes) -> str:
    """FFmpeg's name for the reader of a file that begins like this; MP4 unless it is another."""
    if head.startswith(_MATROSKA):
        return "matroska"
    if all(head[at : at + 1] == b"G" for at in (0, _PACKET, 2 * _PACKET)):
        return "mpegts"
    return "mp4"


@contextmanager
def container(data: Data, name: str, probed: bool = True) -> Iterator[InputContainer]:
    """The clip, open.  What FFmpeg refuses until it is closed leaves as a MediaError.

    Not `probed`, an MP4 opens at a fraction of the cost and knows only what its header says; to
    ask for its pixel format would then crash PyAV.
    """
    try:
        import av
    except ImportError as error:
        raise MediaError(
            f"{name} could not be decoded (PyAV is not installed): `pip install av`."
        ) from error
    if len(data) < MIN_BYTES:
        raise MediaError(
            f"{name} has {len(data):,} bytes: a clip below {MIN_BYTES:,} bytes is broken, copy it "
            "again or pick another clip."
        )
    try:
        with opened(data) as file:
            kind = reader_of(file.read(3 * _PACKET))
            file.seek(0)
            options = {} if probed or kind != "mp4" else UNPROBED
            with av.open(file, "r", kind, options, metadata_errors="replace") as clip:
                _check(clip, name)
                yield clip
    except (av.error.FFmpegError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MediaError(
            f"{name} could not be decoded ({reason}): encode it again or pick another clip."
        ) from error


def _check(clip: InputContainer, name: str) -> None:
    if not clip.streams.video:
        raise MediaError(f"{name} has no video track: give a clip with a picture.")
    stream = clip.streams.video[0]
    if stream.codec_context is None:
        raise MediaError(f"{name} has a video track of no known codec: encode it as H.264.")
    if stream.width * stream.height > MAX_PIXELS:
        raise MediaError(
            f"{name} is {stream.width:,} x {stream.height:,} pixels: make it smaller than "
            f"{MAX_PIXELS:,} pixels."
        )

"""Opens clips with FFmpeg: MP4 and MOV, Matroska and WebM, MPEG transport streams, AVI and GIF.

The content decides the reader, and FFmpeg gets its name.  If FFmpeg guessed, a file
could be read as a playlist that opens other files.  The five readers listed here read only the one
file they are given, through Python.  A reader may not use another reader (AVI can hold subtitles
of any kind) or open a network address.

Sizes are checked before memory is allocated: what an MP4's tables declare (mp4_boxes.py), and the
pixels of a frame, both in the header and in the decoder.

Boundary: opens a container; decodes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import MediaError
from engine.media import kinds, mp4_boxes
from engine.media.media_files import Data, opened
from engine.plain_files import reason

if TYPE_CHECKING:
    from av.container import InputContainer

MIN_BYTES = 1_000  # of all kinds except GIF, which can be smaller
MAX_PIXELS = 8192 * 4320  # 8K; eight frames of it, as RGB, take 850 MB
READERS = {
    kinds.MP4: "mp4",
    kinds.MOV: "mp4",
    kinds.MATROSKA: "matroska",
    kinds.WEBM: "matroska",
    kinds.MPEGTS: "mpegts",
    kinds.AVI: "avi",
    kinds.GIF: "gif",
}
# FFmpeg's full names of these readers, which it compares.
_FORMATS = {"mp4": "mov,mp4,m4a,3gp,3g2,mj2", "matroska": "matroska,webm"}
# Without these options FFmpeg decodes pictures on opening, to learn what the header already says.
UNPROBED = {"skip_frame": "all", "analyzeduration": "1"}


def reader_of(head: bytes, name: str = "") -> str:
    """FFmpeg's name of the reader for a file with these first bytes; MP4 if they are unknown.

    MediaError for a known kind that is not supported.
    """
    kind = kinds.by_content(head) or kinds.MP4
    if kind not in READERS:
        raise MediaError(kind.refusal(name, "a supported clip"))
    return READERS[kind]


def _options(kind: str, probed: bool) -> dict[str, str]:
    limits = {
        "format_whitelist": _FORMATS.get(kind, kind),
        "protocol_whitelist": "none",
        "max_pixels": str(MAX_PIXELS),
    }
    return limits if probed or kind != "mp4" else limits | UNPROBED


@contextmanager
def container(data: Data, name: str, probed: bool = True) -> Iterator[InputContainer]:
    """The open clip.  FFmpeg's errors are raised as MediaError until it is closed.

    With `probed` False an MP4 opens much faster and gives only what its header says; asking for
    its pixel format would then crash PyAV.
    """
    try:
        import av
    except ImportError as error:
        raise MediaError(
            f"{name} could not be decoded (PyAV is not installed): `pip install av`."
        ) from error
    try:
        with opened(data) as file:
            kind = reader_of(file.read(kinds.HEAD), name)
            _check_bytes(data, kind, name)
            if kind == "mp4":
                mp4_boxes.check(file, len(data))
            file.seek(0)
            options = _options(kind, probed)
            with av.open(file, "r", kind, options, metadata_errors="replace") as clip:
                _check(clip, name)
                clip.streams.video[0].codec_context.options = {"max_pixels": str(MAX_PIXELS)}
                yield clip
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            f"{name} could not be decoded ({reason(error)}): encode it again or pick another clip."
        ) from error


def _check_bytes(data: Data, kind: str, name: str) -> None:
    if len(data) < MIN_BYTES and kind != "gif":
        raise MediaError(
            f"{name} has {len(data):,} bytes: a clip below {MIN_BYTES:,} bytes is broken, copy it "
            "again or pick another clip."
        )


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

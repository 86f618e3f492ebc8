"""A sample's clip in a form that a browser plays: its own bytes, or encoded again as H.264 in MP4.
For people to look at: models get their frames from media_sources.py."""

import io
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from engine.errors import MediaError
from engine.media import decoding, images, video
from engine.media.decoding import container
from engine.media.media_files import content, label, large
from engine.types import Image, Sample

MAX_BYTES = 32 << 20  # of a clip that is played as it is
MAX_FRAMES = 300  # of a clip that is encoded again
MAX_WIDTH = 640
FOLDER_RATE = Fraction(10)  # frames per second of pictures without times
_QUICK = {"preset": "ultrafast", "crf": "23", "threads": "1"}


class PlayableClip(NamedTuple):
    """An MP4 for a browser, and what it shows if that is not the whole clip at its own speed."""

    data: bytes
    words: str = ""


def playable(sample: Sample) -> PlayableClip | None:
    """The sample's clip or frames; None if it has neither.  MediaError if they cannot be read."""
    if sample.mp4 is not None:
        try:
            return _clip(sample.mp4)
        except MediaError:
            if not sample.frames:
                raise
    paths = sample.frames or sample.images
    return _folder(paths) if len(paths) > 1 else None


def encode_mp4(
    frames: Iterable[Image],
    rate: Fraction | int,
    codec_options: Mapping[str, str],
    file_options: Mapping[str, str] | None = None,
) -> bytes:
    """H.264 (yuv420p) in an MP4; all frames get the size of the first, each side made even."""
    import av

    buffer, ordered = io.BytesIO(), iter(frames)
    first = next(ordered)
    height, width = (max(2, side - side % 2) for side in first.shape[:2])
    with av.open(buffer, "w", format="mp4", options=dict(file_options or {})) as file:
        stream = file.add_stream("libx264", rate=rate, options=dict(codec_options))
        stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
        for image in chain([first], ordered):
            picture = av.VideoFrame.from_ndarray(image, format="rgb24")
            if image.shape[:2] != (height, width):
                picture = picture.reformat(width=width, height=height)
            file.mux(stream.encode(picture))
        file.mux(stream.encode())
    return buffer.getvalue()


def _clip(path: Path) -> PlayableClip:
    data, name = large(path), label(path)
    with container(data, name) as clip:
        context = clip.streams.video[0].codec_context
        usual = context.name == "h264" and context.pix_fmt in ("yuv420p", "yuvj420p")
        plays = usual and "mp4" in clip.format.name
    if plays and len(data) <= MAX_BYTES:
        return PlayableClip(content(path))
    times, rate, unknown = video.times(path), FOLDER_RATE, ""
    if not times:
        unknown = "; the clip does not say how many"
    elif times[-1]:  # from 1 to 60 frames per second, by the frames' times in microseconds
        mean = Fraction((len(times) - 1) * 1_000_000 / times[-1]).limit_denominator(100)
        rate = min(max(mean, Fraction(1)), Fraction(60))
    frames = (images.shrink(image, MAX_WIDTH) for image in decoding.pictures(data, name))
    return PlayableClip(
        encode_mp4(islice(frames, MAX_FRAMES), rate, _QUICK),
        f"Encoded again for the browser: at most {MAX_FRAMES} frames, {MAX_WIDTH} pixels wide, "
        f"{float(rate):.4g} frames per second{unknown}.",
    )


def _folder(paths: tuple[Path, ...]) -> PlayableClip:
    read = (images.decode(content(path), label(path)) for path in paths[:MAX_FRAMES])
    small = (images.shrink(image, MAX_WIDTH) for image in read)
    shown = f"the first {MAX_FRAMES} of " if len(paths) > MAX_FRAMES else ""
    return PlayableClip(
        encode_mp4(small, FOLDER_RATE, _QUICK),
        f"Made from {shown}{len(paths):,} pictures, which have no times: shown at "
        f"{FOLDER_RATE} per second.",
    )

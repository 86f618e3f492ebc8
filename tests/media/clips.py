"""Small clips for the tests, encoded as the original datasets are."""

import io
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import av
import numpy as np

PIXELS = {"gif": "rgb8", "mjpeg": "yuvj420p"}  # what an encoder takes, where it is not yuv420p


def moving(count: int, width: int = 64, height: int = 48) -> list[np.ndarray]:
    """Pictures of which no two are alike: a bright bar that moves over a gradient."""
    ground = np.linspace(0, 120, width, dtype=np.uint8)
    frames = []
    for i in range(count):
        frame = np.repeat(ground[None], height, 0)[..., None].repeat(3, 2).copy()
        frame[:, (3 * i) % width : (3 * i) % width + 3, i % 3] = 255
        frames.append(frame)
    return frames


def mp4(count: int, gop: int = 12) -> bytes:
    """An MP4 of `count` frames at 20 per second: libx264, yuv420p, crf 28."""
    file = io.BytesIO()
    write(file, count, gop)
    return file.getvalue()


def write(
    file: io.BytesIO | str, count: int, gop: int = 12, kind: str = "mp4", **options: str
) -> None:
    """The same, written to a file by its path, which some options of the format ask for."""
    _write(file, kind, "libx264", {"g": str(gop)}, range(0, 50 * count, 50), options)


def encoded(
    kind: str = "mp4",
    codec: str = "libx264",
    times: Sequence[int] = range(0, 3000, 50),
    container: Mapping[str, str] | None = None,
    **options: str,
) -> bytes:
    """A clip with a frame at each time, in milliseconds, by any encoder with any options.

    In a thread of its own: SVT-AV1 gives root's thread real-time priority, and a browser started
    from that thread later would leave no CPU to anything else.
    """
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:
        path = Path(folder) / "clip"
        thread.submit(_write, str(path), kind, codec, options, times, container or {}).result()
        return path.read_bytes()


def _write(
    file: io.BytesIO | str,
    kind: str,
    codec: str,
    options: Mapping[str, str],
    times: Sequence[int],
    container: Mapping[str, str],
) -> None:
    # x264's vector code gives other bytes about once in 100 times, its plain code never.
    exact = {"crf": "28", "preset": "fast", "threads": "1"} if codec == "libx264" else {}
    own = options.get("x264-params", "asm=0")
    with av.open(file, "w", format=kind, options=dict(container)) as clip:
        stream = clip.add_stream(codec, rate=20)
        stream.width, stream.height, stream.pix_fmt = 64, 48, PIXELS.get(codec, "yuv420p")
        stream.options = exact | dict(options) | ({"x264-params": own} if exact else {})
        stream.codec_context.time_base = Fraction(1, 25 if codec == "mpeg2video" else 1000)
        for time, picture in zip(times, moving(len(times)), strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            if codec in PIXELS:
                frame = frame.reformat(format=PIXELS[codec])
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            clip.mux(stream.encode(frame))
        clip.mux(stream.encode())


@lru_cache(maxsize=2)  # whoever asks looks, and writes nothing into them
def decoded(data: bytes) -> list[np.ndarray]:
    """Every frame, the plain way: one thread, in order, all of them kept."""
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]

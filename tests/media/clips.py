"""Small clips for the tests, encoded as the original datasets are."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np


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
    with av.open(file, "w", format=kind, options=options) as container:
        stream = container.add_stream("libx264", rate=20)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        # x264's vector code gives other bytes about once in 100 times, its plain code never.
        exact = {"threads": "1", "x264-params": "asm=0"}
        stream.options = {"crf": "28", "preset": "fast", "g": str(gop)} | exact
        stream.codec_context.time_base = Fraction(1, 20)
        for picture in moving(count):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def decoded(data: bytes) -> list[np.ndarray]:
    """Every frame, the plain way: one thread, in order, all of them kept."""
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]

"""Clips for the benchmarks, generated in a temporary folder.

Boundary: draws and encodes; measures nothing.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT, FPS = 1440, 1088, 20


def write(path: Path, seconds: int, gop: int, width: int = WIDTH, height: int = HEIGHT) -> None:
    """An MP4 of H.264 at 20 frames per second: a textured ground that moves, as from a car."""
    import av

    ground = _ground(width, height)
    with av.open(str(path), "w", format="mp4") as clip:
        stream = clip.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.options = {"crf": "28", "preset": "fast", "g": str(gop)}
        stream.codec_context.time_base = Fraction(1, FPS)
        for index in range(seconds * FPS):
            clip.mux(stream.encode(av.VideoFrame.from_ndarray(_frame(ground, index), "rgb24")))
        clip.mux(stream.encode())


def repeat(source: Path, target: Path, times: int) -> None:
    """The same clip many times over in one file, without encoding it again."""
    import av

    with av.open(str(source)) as clip, av.open(str(target), "w", format="mp4") as out:
        stream = out.add_stream_from_template(clip.streams.video[0])
        packets = [packet for packet in clip.demux(clip.streams.video[0]) if packet.size]
        length = sum(packet.duration or 0 for packet in packets)
        given = [(packet.pts or 0, packet.dts or 0) for packet in packets]
        for lap in range(times):
            for packet, (pts, dts) in zip(packets, given, strict=True):
                packet.stream = stream
                packet.time_base = clip.streams.video[0].time_base or Fraction(1, FPS)
                packet.pts, packet.dts = pts + lap * length, dts + lap * length
                out.mux(packet)


def _ground(width: int, height: int) -> npt.NDArray[np.uint8]:
    """Soft noise, larger than a frame; the same in every run."""
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 255, (96, 192, 3), dtype=np.uint8)
    size = (2 * width, height + height // 4)
    return np.asarray(Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC))


def _frame(ground: npt.NDArray[np.uint8], index: int) -> npt.NDArray[np.uint8]:
    height, width = ground.shape[0] * 4 // 5, ground.shape[1] // 2
    left, top = _there_and_back(5 * index, width), _there_and_back(index, height // 4)
    frame = ground[top : top + height, left : left + width].copy()
    # A patch of unpredictable noise, like leaves and water.
    spot = np.random.default_rng(index).integers(0, 255, (height // 6, width // 6, 3), np.uint8)
    frame[-spot.shape[0] :, : spot.shape[1]] = spot
    return frame


def _there_and_back(way: int, length: int) -> int:
    lap = way % (2 * length)
    return min(lap, 2 * length - lap)

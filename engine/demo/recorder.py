"""Encodes and decodes the PNGs and MP4s of a demo recording.

Boundary: frames in, bytes out, and back; PyAV is only imported for MP4s. writing.py decides where
the files go.
"""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image

from engine.viewing import playing

Frames = npt.NDArray[np.uint8]  # (F, H, W, 3) RGB
# One thread and no SIMD: x264's vector code does not give the same bytes in every run.
MP4_OPTIONS = {"preset": "fast", "crf": "28", "threads": "1", "x264-params": "asm=0"}


def encode_mp4(frames: Frames, fps: int) -> bytes:
    """H.264 in an MP4, with the encoding parameters of the real recordings."""
    return playing.encode_mp4(frames, fps, MP4_OPTIONS, {"fflags": "+bitexact"})


def decode_mp4(data: bytes) -> Frames:
    """All frames of an MP4."""
    import av

    with av.open(io.BytesIO(data), "r") as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return np.stack(pictures).astype(np.uint8)


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """(H, W, 3) -> PNG bytes."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()

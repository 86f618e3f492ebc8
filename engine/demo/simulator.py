"""A simulated event camera: frames of a scene -> brightness changes with microsecond times."""

import numpy as np
import numpy.typing as npt

from engine.types import Events

THRESHOLD = 0.18  # contrast in log intensity that makes a pixel fire
MISMATCH = 0.02  # its standard deviation from pixel to pixel
NOISE_HZ = 0.25  # spurious events per pixel and second, the same in every scene
DARK = 6.0  # grey levels added before the logarithm: the photoreceptor's floor
FloatArray = npt.NDArray[np.float32]
Fields = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]


def simulate(frames: npt.NDArray[np.uint8], fps: float, seed: int) -> Events:
    """(F, H, W, 3) frames -> events sorted by time; time 0 is the first frame."""
    rng = np.random.default_rng([seed, 0xE7E47])
    count, height, width = frames.shape[:3]
    luma = frames.astype(np.float32) @ np.array((0.299, 0.587, 0.114), np.float32)
    level = np.asarray(np.log(luma + DARK).reshape(count, -1), dtype=np.float32)  # (F, H * W)
    spread = rng.standard_normal(height * width, dtype=np.float32)
    threshold = np.clip(THRESHOLD + MISMATCH * spread, 0.08, None)
    # each pixel starts somewhere between its two thresholds, as in a camera that has been on
    memory = level[0] + (rng.random(height * width, dtype=np.float32) - 0.5) * threshold
    period = 1e6 / fps
    parts: list[Fields] = []
    for step in range(1, count):
        start = (step - 1) * period
        parts.append(_crossings(level[step - 1], level[step], memory, threshold, start, period))
    # Shot noise: uniform over pixels, time and polarity.
    pixels, duration = height * width, (count - 1) * period
    noise = int(rng.poisson(NOISE_HZ * pixels * duration / 1e6))
    moments = (rng.random(noise) * duration).astype(np.int64)
    places, signs = rng.integers(0, pixels, noise), rng.integers(0, 2, noise).astype(np.uint8)
    parts.append((moments, places, signs))
    t, pixel, p = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((pixel, t))
    y, x = np.divmod(pixel[order], width)
    return Events(x.astype(np.uint16), y.astype(np.uint16), t[order], p[order], width, height)


def _crossings(
    before: FloatArray,
    after: FloatArray,
    memory: FloatArray,
    threshold: FloatArray,
    start: float,
    period: float,
) -> Fields:
    """Events between two frames, linear in log intensity; moves `memory` to the last level."""
    gap = after - memory
    fires = np.floor(np.abs(gap) / threshold).astype(np.int64)
    pixel = np.flatnonzero(fires)
    times, sign = fires[pixel], np.sign(gap[pixel])
    which = np.repeat(np.arange(len(pixel)), times)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times) + 1
    source = pixel[which]
    level = memory[source] + sign[which] * nth * threshold[source]
    slope = after[source] - before[source]
    slope = np.where(np.abs(slope) < 1e-6, 1e-6, slope)
    share = np.clip((level - before[source]) / slope, 0.0, 1.0)
    t = (start + share * period).astype(np.int64)
    memory[pixel] += sign * times * threshold[pixel]
    return t, source, (sign[which] > 0).astype(np.uint8)

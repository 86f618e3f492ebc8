"""Writes a demo scene's files and its record, in the same form as a real recording, with the events
of a simulated event camera: frames of a scene -> brightness changes with microsecond times."""

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.demo.camera import KIND
from engine.demo.scenes import FPS, Scene
from engine.demo.wordings import DEFAULT_QUESTION, reference
from engine.media import images
from engine.media.events import render as draw_events
from engine.types import Box, Events
from engine.viewing import playing

FIRST_FRAME = 27  # frames keep their number in the recording; they do not restart at 0
NAMES = uuid.UUID("6d0f7a52-9b5e-5c53-8f0e-3f2a1b7c9d10")

Frames = npt.NDArray[np.uint8]  # (F, H, W, 3) RGB
# One thread and no SIMD: x264's vector code does not give the same bytes in every run.
MP4_OPTIONS = {"preset": "fast", "crf": "28", "threads": "1", "x264-params": "asm=0"}
# The kinds of pixels that belong to each thing.
THINGS: dict[str, tuple[str, ...]] = {
    "lead vehicle": ("car", "truck"),
    "pedestrian": ("person",),
    "guardrail": ("rail",),
    "roadside": ("tree", "building", "rail"),
}
BOTH_SIDES = ("roadside",)  # a box for each half of the picture
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


def write_scene(root: Path, scene: Scene) -> dict[str, Any]:
    """All files of one scene; returns its record in the index."""
    name = f"scene_{scene.seed:06d}"
    events = simulate(scene.frames, FPS, scene.seed)
    _write(root / "event_npy" / name / "000000.npy", events)
    drawn = [f"{name}/000000_{number}.png" for number in range(5)]
    # The demo checkpoints were trained on event pictures of one size: that of the whole stream.
    for path, image in zip(drawn, draw_events(events, extent="stream"), strict=True):
        _bytes(root / "event_image" / path, png(image))
    for number, frame in enumerate(scene.frames, start=FIRST_FRAME):
        _bytes(root / "video" / name / "000000" / f"{number:06d}.png", png(frame))
    _bytes(root / "mp4" / name / "000000.mp4", encode_mp4(scene.frames, FPS))
    return {
        "id": str(uuid.uuid5(NAMES, name)),
        "split": "demo",
        "event_data": f"{name}/000000.npy",
        "video_data": f"{name}/000000",
        "mp4_data": f"{name}/000000.mp4",
        "event_image": drawn,
        "conversations": [
            {"from": "human", "value": f"<event>\n{DEFAULT_QUESTION}"},
            {"from": "gpt", "value": reference(scene.truth)},
        ],
        "truth": scene.truth,
        "boxes": boxes(scene.labels),
    }


def _write(path: Path, events: Events) -> None:
    """The published raw form: a dict of columns and clip fields in a 0-d object array."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first, last = int(events.t[0]), int(events.t[-1])
    clip: dict[str, Any] = {
        "p": events.p,
        "t": events.t,
        "x": events.x,
        "y": events.y,
        "time_start": first,
        "time_end": last,
        "duration_ms": (last - first) / 1000,
        "image_timestamp": 0,
        "image_idx": FIRST_FRAME,
        "image_indices_in_clip": list(range(FIRST_FRAME, FIRST_FRAME + 20)),
        "num_events": len(events.t),
    }
    np.save(path, np.array(clip, dtype=object))


def _bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def boxes(labels: npt.NDArray[np.uint8]) -> dict[str, tuple[Box, ...]]:
    """thing -> its boxes, from labels [F, H, W]; only things that the middle frame shows, which is
    what a model of single pictures sees.  One box holds for a frame and for the whole event stream:
    both have the same size."""
    middle = labels[len(labels) // 2]
    left = np.arange(middle.shape[1]) < middle.shape[1] / 2
    found: dict[str, tuple[Box, ...]] = {}
    for name, kinds in THINGS.items():
        shown = np.isin(middle, [KIND[kind] for kind in kinds])
        parts = [shown & left, shown & ~left] if name in BOTH_SIDES else [shown]
        if made := tuple(_box(part) for part in parts if part.any()):
            found[name] = made
    return found


def _box(shown: npt.NDArray[np.bool_]) -> Box:
    """The smallest box around the pixels [H, W]."""
    height, width = shown.shape
    rows, columns = np.nonzero(shown)
    left, right = int(columns.min()) / width, (int(columns.max()) + 1) / width
    top, bottom = int(rows.min()) / height, (int(rows.max()) + 1) / height
    return round(left, 6), round(top, 6), round(right, 6), round(bottom, 6)


def encode_mp4(frames: Frames, fps: int) -> bytes:
    """H.264 in an MP4, with the encoding parameters of the real recordings."""
    return playing.encode_mp4(frames, fps, MP4_OPTIONS, {"fflags": "+bitexact"})


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """(H, W, 3) -> PNG bytes."""
    return images.encoded(image, "PNG", compress_level=6)

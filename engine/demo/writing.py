"""Writes a demo scene's files and its record, in the same form as a real recording."""

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.demo.camera import KIND
from engine.demo.scenes import FPS, Scene
from engine.demo.simulator import simulate
from engine.demo.wordings import DEFAULT_QUESTION, reference
from engine.media import images
from engine.media.events import render as draw_events
from engine.types import Box, Events
from engine.viewing import playing

SPLIT = "demo"
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
        "split": SPLIT,
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

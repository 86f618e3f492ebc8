"""Writes a demo scene's files and its record, in the same form as a real recording.

Boundary: a rendered scene in, files below a dataset root out.  demo_dataset.py chooses the scenes.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np

from engine.demo.boxes import boxes
from engine.demo.demo_questions import DEFAULT_QUESTION
from engine.demo.recorder import encode_mp4, png
from engine.demo.scene_answers import reference
from engine.demo.scenes import FPS, Scene
from engine.demo.simulator import simulate
from engine.media.events import render as draw_events
from engine.types import Events

SPLIT = "demo"
FIRST_FRAME = 27  # frames keep their number in the recording; they do not restart at 0
NAMES = uuid.UUID("6d0f7a52-9b5e-5c53-8f0e-3f2a1b7c9d10")


def write_scene(root: Path, scene: Scene) -> dict[str, Any]:
    """All files of one scene; returns its record in the index."""
    name = f"scene_{scene.seed:06d}"
    events = simulate(scene.frames, FPS, scene.seed)
    _write(root / "event_npy" / name / "000000.npy", events)
    images = [f"{name}/000000_{number}.png" for number in range(5)]
    # The demo checkpoints were trained on event pictures of one size: that of the whole stream.
    for path, image in zip(images, draw_events(events, extent="stream"), strict=True):
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
        "event_image": images,
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

"""The demo dataset: scenes written to disk exactly as a real dataset root holds its recordings.

The boundary: seeds in, a folder out. Reading the folder is the engine's ordinary work.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from engine.demo.answers import reference
from engine.demo.questions import DEFAULT_QUESTION
from engine.demo.recorder import encode_mp4, png
from engine.demo.scenes import FPS, Scene, render
from engine.demo.simulator import simulate
from engine.errors import DatasetError
from engine.media.events import render as draw_events
from engine.types import Events

VERSION = "1"  # raise it when scenes, simulator or layout change: the dataset is then made anew
MARKER = "demo-version.txt"
INDEX = "EventGPT_Instruction_Subset.json"
SPLIT = "demo"
FIRST_FRAME = 27  # frames keep their number in the recording; they do not restart at 0
NAMES = uuid.UUID("6d0f7a52-9b5e-5c53-8f0e-3f2a1b7c9d10")
# Chosen so that every value of every attribute occurs; none is trained on or held out.
SEEDS: tuple[int, ...] = (
    200_052, 200_002, 200_037, 200_006, 200_011, 200_003, 200_000, 200_009,
    200_014, 200_015, 200_010, 200_031, 200_043, 200_020,
)  # fmt: skip


def ensure_dataset(root: Path) -> Path:
    """The demo dataset at root, made if it is not there or of another version; returns root.

    DatasetError if the folder cannot be written.
    """
    try:
        return root if _current(root) else _make(root)
    except OSError as error:
        raise DatasetError(
            f"The demo dataset cannot be made in {root} ({error.strerror}): set "
            "STAGESCOPE_CACHE_DIR to a folder that can be written."
        ) from error


def _make(root: Path) -> Path:
    root.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
    try:
        write_dataset(fresh, SEEDS)
        (fresh / MARKER).write_text(VERSION, encoding="utf-8")
        _put(fresh, root)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return root


def write_dataset(root: Path, seeds: Iterable[int]) -> Path:
    """The scenes of the seeds below root, with their index; returns root."""
    root.mkdir(parents=True, exist_ok=True)
    records = [_write_scene(root, render(seed)) for seed in seeds]
    text = json.dumps(records, indent=2, ensure_ascii=False)
    (root / INDEX).write_text(text + "\n", encoding="utf-8")
    return root


def _current(root: Path) -> bool:
    marker = root / MARKER
    whole = marker.is_file() and (root / INDEX).is_file()
    return whole and marker.read_bytes() == VERSION.encode()


def _put(fresh: Path, root: Path) -> None:
    """Rename the finished folder into place; another process may have been faster."""
    stale = fresh.with_name(fresh.name + "-old")
    try:
        if root.exists():
            root.rename(stale)
        fresh.rename(root)
    except OSError:
        if not _current(root):
            raise
    finally:
        shutil.rmtree(stale, ignore_errors=True)


def _write_scene(root: Path, scene: Scene) -> dict[str, Any]:
    """All files of one scene; returns its record in the index."""
    name = f"scene_{scene.seed:06d}"
    events = simulate(scene.frames, FPS, scene.seed)
    _write(root / "event_npy" / name / "000000.npy", events)
    images = [f"{name}/000000_{number}.png" for number in range(5)]
    for path, image in zip(images, draw_events(events, len(images)), strict=True):
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

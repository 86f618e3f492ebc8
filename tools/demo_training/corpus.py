"""The training data of the demo checkpoints: rendered scenes as pictures of a tower's size.

Boundary: seeds in, arrays out, stored in chunks on disk so that an interrupted run can continue. No
torch.
"""

import io
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from PIL import Image

from engine.analysis.answer_reading import ATTRIBUTES
from engine.demo.camera import KINDS
from engine.demo.scenes import FPS, FRAMES, Scene, render
from engine.demo.writing import encode_mp4, simulate
from engine.media.events import render as draw_events
from engine.media_options import Split
from engine.types import Events

SIZE = 96  # pixels of CLIP's square input
GRID = 6  # patches per side
SHOWN = np.arange(0, FRAMES, FRAMES / 8).astype(int)[:8]  # the frames a video model sees
SLICES = 5  # event images per scene
CHUNK = 200  # scenes per file
MIRRORED = ("curve", "guardrail side", "pedestrian")


@dataclass(frozen=True)
class Canvas:
    """The size to which a tower's image processor brings every picture, and its patches."""

    height: int
    width: int
    patch: int  # pixels per side

    @property
    def rows(self) -> int:
        """Patches from top to bottom."""
        return self.height // self.patch

    @property
    def columns(self) -> int:
        """Patches from left to right."""
        return self.width // self.patch


SQUARE = Canvas(SIZE, SIZE, SIZE // GRID)  # CLIP's, without a crop
WIDE = Canvas(112, 168, 14)  # Qwen's, for every picture of 4 to 3


@dataclass(frozen=True, eq=False)
class Corpus:
    """N scenes. Pixels are uint8, patch labels the share of each kind times 255."""

    frames: npt.NDArray[np.uint8]  # (N, 8, height, width, 3)
    frame_patches: npt.NDArray[np.uint8]  # (N, 8, rows, columns, kinds)
    frame_metres: npt.NDArray[np.float32]  # (N, 8) to the lead vehicle, nan without one
    events: npt.NDArray[np.uint8]  # (N, 5, height, width, 3)
    event_patches: npt.NDArray[np.uint8]  # (N, 5, rows, columns, kinds)
    event_metres: npt.NDArray[np.float32]  # (N, 5)
    truth: npt.NDArray[np.int8]  # (N, attributes): index of the value, -1 where none applies

    def __len__(self) -> int:
        return len(self.truth)


def truth_of(row: npt.NDArray[np.int8]) -> dict[str, str]:
    """A row of `Corpus.truth` in words."""
    pairs = zip(ATTRIBUTES.items(), row.tolist(), strict=True)
    return {name: values[index] for (name, values), index in pairs if index >= 0}


def load_corpus(folder: Path, seeds: range, workers: int = 2, canvas: Canvas = SQUARE) -> Corpus:
    """The corpus of the seeds; missing chunks are made first. Each canvas needs its own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(seeds.start, seeds.stop, CHUNK)
    parts = [range(start, min(start + CHUNK, seeds.stop)) for start in starts]
    missing = [part for part in parts if not _chunk_path(folder, part).exists()]
    with ProcessPoolExecutor(workers) as pool:
        for part in pool.map(partial(_make_chunk, folder, canvas), missing):
            print(f"corpus: scenes {part.start} to {part.stop}", file=sys.stderr, flush=True)
    loaded = [np.load(_chunk_path(folder, part)) for part in parts]
    names = [field.name for field in fields(Corpus)]
    return Corpus(**{name: np.concatenate([chunk[name] for chunk in loaded]) for name in names})


def mirrored(corpus: Corpus) -> Corpus:
    """The mirrored scenes, with left and right exchanged in the truth."""
    truth = corpus.truth.copy()
    for column, (name, values) in enumerate(ATTRIBUTES.items()):
        if name in MIRRORED:
            swap = {"left": "right", "right": "left"}
            order = [values.index(swap.get(value, value)) for value in values]
            table = np.array([*order, -1], np.int8)  # index -1 stays -1
            truth[:, column] = table[truth[:, column]]
    return Corpus(
        frames=corpus.frames[:, :, :, ::-1],
        frame_patches=corpus.frame_patches[:, :, :, ::-1],
        frame_metres=corpus.frame_metres,
        events=corpus.events[:, :, :, ::-1],
        event_patches=corpus.event_patches[:, :, :, ::-1],
        event_metres=corpus.event_metres,
        truth=truth,
    )


def _chunk_path(folder: Path, seeds: range) -> Path:
    return folder / f"{seeds.start:07d}-{seeds.stop:07d}.npz"


def _make_chunk(folder: Path, canvas: Canvas, seeds: range) -> range:
    rows = [_observe(render(seed), canvas) for seed in seeds]
    columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    path = _chunk_path(folder, seeds)
    with path.with_suffix(".part").open("wb") as file:
        np.savez(file, **columns)  # type: ignore[arg-type]
    path.with_suffix(".part").rename(path)
    return seeds


def _observe(scene: Scene, canvas: Canvas) -> dict[str, npt.NDArray[np.generic]]:
    """The arrays of one scene."""
    with av.open(io.BytesIO(encode_mp4(scene.frames, FPS)), "r") as clip:
        decoded = [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]
    seen = np.stack(decoded).astype(np.uint8)
    events = simulate(scene.frames, FPS, scene.seed)
    at = _slice_frames(events)
    return {
        "frames": _resize(seen[SHOWN], canvas),
        "frame_patches": _patches(scene.labels[SHOWN], canvas),
        "frame_metres": scene.distance[SHOWN],
        "events": _resize(draw_events(events, Split(parts=SLICES), "stream"), canvas),
        "event_patches": _patches(scene.labels[at], canvas),
        "event_metres": scene.distance[at],
        "truth": np.array(list(_indices(scene.truth)), np.int8),
    }


def _indices(truth: dict[str, str]) -> Iterator[int]:
    for name, values in ATTRIBUTES.items():
        yield values.index(truth[name]) if name in truth else -1


def _slice_frames(events: Events) -> npt.NDArray[np.int64]:
    """(5,) the frame nearest to the middle event of each slice of equal count."""
    middles = (np.arange(SLICES) * 2 + 1) * len(events.t) // (2 * SLICES)
    nearest = np.rint(events.t[middles] * FPS / 1e6).astype(np.int64)
    return np.minimum(nearest, FRAMES - 1)


def _resize(images: Iterable[npt.NDArray[np.uint8]], canvas: Canvas) -> npt.NDArray[np.uint8]:
    """(n, H, W, 3) -> (n, height, width, 3), as the towers' image processors resize."""
    size = canvas.width, canvas.height
    sized = [Image.fromarray(i).resize(size, Image.Resampling.BICUBIC) for i in images]
    return np.stack([np.asarray(image) for image in sized])


def _patches(labels: npt.NDArray[np.uint8], canvas: Canvas) -> npt.NDArray[np.uint8]:
    """(n, H, W) label maps -> (n, rows, columns, kinds) shares times 255."""
    size = canvas.width, canvas.height
    nearest = [Image.fromarray(i).resize(size, Image.Resampling.NEAREST) for i in labels]
    maps = np.stack([np.asarray(image) for image in nearest])
    step = canvas.patch
    blocks = maps.reshape(len(maps), canvas.rows, step, canvas.columns, step)
    shares = [(blocks == kind).mean(axis=(2, 4)) for kind in range(len(KINDS))]
    return np.asarray(np.stack(shares, axis=-1) * 255, dtype=np.uint8)

"""How cost grows with the work: measured points beside the straight line through them.

`python -m benchmarks.growth`: a dataset listed against its samples, a clip's frames loaded against
its length, an answer against its new tokens, kept results opened against their number.  Each line
is fitted by least squares; its largest departure says whether the cost grows as the work does.
Everything lies in a temporary folder.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import keep
from benchmarks.runs import write_run

REPEAT = 3
SAMPLES = (10, 30, 100, 300, 1_000, 3_000)
SECONDS = (1, 2, 4, 8, 16)  # of a clip
FPS, SIZE = 20, (480, 640)
TOKENS = (16, 32, 64, 128, 256, 512)
RESULTS = (100, 300, 1_000, 3_000, 10_000)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = str(folder / "cache")
        lines = [
            samples(folder / "samples", SAMPLES),
            clips(folder / "clips", SECONDS),
            tokens(folder, TOKENS),
            results(folder / "results", RESULTS),
        ]
    keep("growth", {"lines": lines})


def line(what: str, of: str, points: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """The points (amount, milliseconds), the line through them and their largest departure.

    `per_1000` is the line's slope; `departure_share` the departure as a share of the largest time.
    """
    amounts, times = np.array(points, dtype=float).T
    slope, start = np.polyfit(amounts, times, 1)
    departure = float(np.abs(times - (slope * amounts + start)).max())
    return {
        "what": what,
        "of": of,
        "points_ms": [[amount, round(ms, 3)] for amount, ms in points],
        "start_ms": round(float(start), 3),
        "per_1000_ms": round(1000 * float(slope), 3),
        "departure_ms": round(departure, 3),
        "departure_share": round(departure / float(times.max()), 4),
        "repeat": "python -m benchmarks.growth",
    }


def _timed(amounts: Sequence[int], work: Callable[[int], Any]) -> list[tuple[int, float]]:
    """Median milliseconds per amount, after one call apart."""
    points = []
    for amount in amounts:
        work(amount)
        found = []
        for _ in range(REPEAT):
            start = time.perf_counter()
            work(amount)
            found.append(1000 * (time.perf_counter() - start))
        points.append((amount, statistics.median(found)))
    return points


def samples(folder: Path, amounts: Sequence[int]) -> dict[str, Any]:
    """Datasets of so many records with five event images each, listed."""
    from engine.media import dataset

    for amount in amounts:
        _records(folder / str(amount), amount)
    points = _timed(amounts, lambda amount: dataset.read(folder / str(amount)))
    return line("a dataset listed", "samples", points)


def _records(root: Path, amount: int) -> None:
    records = []
    for index in range(amount):
        names = [f"q{index // 50}/{index:06d}_{number}.png" for number in range(5)]
        for name in names:
            path = root / "event_image" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
        records.append({"id": f"record-{index}", "event_image": names})
    (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps(records))


def clips(folder: Path, seconds: Sequence[int]) -> dict[str, Any]:
    """Eight frames of H.264 clips that move all the time, loaded as stage 1 does."""
    from engine import media
    from engine.types import Sample

    folder.mkdir(parents=True)
    files = {second * FPS: _clip(folder / f"{second}.mp4", second * FPS) for second in seconds}
    one = {frames: Sample(str(frames), "", mp4=file) for frames, file in files.items()}
    points = _timed(list(one), lambda frames: media.load(one[frames], "video"))
    return line("8 frames of a clip loaded", "frames in the clip", points)


def _clip(file: Path, frames: int) -> Path:
    from engine.demo.writing import encode_mp4

    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    drawn = [
        np.stack([(rows + 3 * n) % 256, (columns + 5 * n) % 256, (rows + columns) % 256], axis=-1)
        for n in range(frames)
    ]
    file.write_bytes(encode_mp4(np.stack(drawn).astype(np.uint8), FPS))
    return file


def tokens(folder: Path, amounts: Sequence[int]) -> dict[str, Any]:
    """Answers of so many tokens, no fewer and no more, of a demo checkpoint."""
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset
    from engine.models import registry
    from engine.pipeline import single_run
    from engine.types import DecodeConfig, RunRequest

    sample = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[0]
    adapter = registry.load(next(item for item in registry.entries() if item.demo))

    def answer(amount: int) -> None:
        config = DecodeConfig(amount, amount)
        request = RunRequest(
            sample, adapter.info.name, "What is there?", decode=config, cache="off"
        )
        found = single_run.run(adapter, request, None).new_tokens
        assert found == amount, f"{found} tokens instead of {amount}"

    return line("a run of one model", "new tokens", _timed(amounts, answer))


def results(folder: Path, amounts: Sequence[int]) -> dict[str, Any]:
    """Runs of so many kept results, opened as the Results page does."""
    from engine.analysis.results_table import frame
    from engine.storage import run_store

    for amount in amounts:
        write_run(folder / str(amount), amount)
    points = _timed(amounts, lambda amount: frame([run_store.read(folder / str(amount))]))
    return line("kept results opened", "results", points)


if __name__ == "__main__":
    main()

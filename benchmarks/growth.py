"""How cost grows with the work: measured points beside the straight line through them.

A dataset listed against its samples, a clip's frames loaded against its length, an answer against
its new tokens, kept results opened against their number; wall time.  Each line is fitted by least
squares; its largest departure says whether the cost grows as the work does.
"""

import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import clips
from benchmarks.machine import Row, by_turns, demo_adapters, demo_samples, main

SAMPLES = (10, 30, 100, 300, 1_000, 3_000)
SECONDS = (1, 2, 4, 8, 16)  # of a clip
TOKENS = (16, 32, 64, 128, 256, 512)
RESULTS = (100, 300, 1_000, 3_000, 10_000)


def measure(quick: bool) -> list[Row]:
    most, rounds = (2, 1) if quick else (None, 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            samples(folder / "samples", SAMPLES[:most], rounds),
            frames(folder / "clips", SECONDS[:most], rounds),
            tokens(TOKENS[:most], rounds),
            results(folder / "results", RESULTS[:most], rounds),
        ]


def line(what: str, of: str, points: Sequence[tuple[int, float]]) -> Row:
    """The points (amount, milliseconds), the line through them and their largest departure.

    `per_1000_ms` is the line's slope; `departure_share` the departure over the largest time.
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
    }


def _points(
    amounts: Sequence[int], work: Callable[[int], Any], rounds: int
) -> list[tuple[int, float]]:
    ways = {str(amount): lambda amount=amount: work(amount) for amount in amounts}
    times = by_turns(ways, rounds, perf_counter)
    return [(amount, statistics.median(times[str(amount)])) for amount in amounts]


def samples(folder: Path, amounts: Sequence[int], rounds: int) -> Row:
    """Datasets of so many records with five event images each, listed."""
    from engine.media import dataset

    for amount in amounts:
        root, records = folder / str(amount), []
        for index in range(amount):
            names = [f"q{index // 50}/{index:06d}_{number}.png" for number in range(5)]
            for name in names:
                path = root / "event_image" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"x")
            records.append({"id": f"record-{index}", "event_image": names})
        (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps(records))
    points = _points(amounts, lambda amount: dataset.read(folder / str(amount)), rounds)
    return line("a dataset listed", "samples", points)


def frames(folder: Path, seconds: Sequence[int], rounds: int) -> Row:
    """Eight frames of H.264 clips that move all the time, loaded as stage 1 does."""
    from engine import media
    from engine.types import Sample

    folder.mkdir(parents=True)
    made = {}
    for second in seconds:
        file = folder / f"{second}.mp4"
        clips.write(file, second, 12, 640, 480)
        made[second * clips.FPS] = Sample(file.stem, "", mp4=file)
    points = _points(list(made), lambda count: media.load(made[count], "video"), rounds)
    return line("8 frames of a clip loaded", "frames in the clip", points)


def tokens(amounts: Sequence[int], rounds: int) -> Row:
    """Answers of so many tokens, no fewer and no more, of a demo checkpoint."""
    from engine.pipeline import single_run
    from engine.types import DecodeConfig, RunOptions, RunRequest

    sample, adapter = demo_samples()[0], demo_adapters()[0]

    def answer(amount: int) -> None:
        config, name = DecodeConfig(amount, amount), adapter.info.name
        request = RunRequest(sample, name, "What is there?", RunOptions(decode=config, cache="off"))
        count = single_run.run(adapter, request, None).new_tokens
        if count != amount:
            raise SystemExit(f"{count} tokens were generated, but {amount} were requested.")

    return line("a run of one model", "new tokens", _points(amounts, answer, rounds))


def results(folder: Path, amounts: Sequence[int], rounds: int) -> Row:
    """Runs of so many kept results, opened as the Results page does."""
    from engine.analysis.results_table import frame
    from engine.storage import run_store
    from tests import fabricate

    for amount in amounts:
        rows = (fabricate.row(sample=f"s{index}") for index in range(amount))
        fabricate.run(folder / str(amount), rows)
    points = _points(amounts, lambda amount: frame([run_store.read(folder / str(amount))]), rounds)
    return line("kept results opened", "results", points)


if __name__ == "__main__":
    main("growth", measure, __doc__)

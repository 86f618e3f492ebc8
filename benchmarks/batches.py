"""Throughput of batches: the same samples one by one, by fours and by eights, in one process.

`python -m benchmarks.batches`: per demo model new tokens and samples a second, by wall and by CPU
time, for the whole pipeline and for stages 3 and 4, and their ratio to single runs.  Sizes
alternate, so that a drift of the machine affects all of them.  Different answers are counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.machine import keep, spread

SIZES, SAMPLES, ROUNDS, WARM_UP = (1, 4, 8), 8, 7, 1
TOGETHER = ("vision", "decode")  # what a batch does at once; files are read one by one


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = folder
        keep("batches", _measure())


def _measure() -> dict[str, Any]:
    import torch

    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset
    from engine.models import registry

    samples = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[:SAMPLES]
    entries = [entry for entry in registry.entries() if entry.demo]
    return {
        "samples": len(samples),
        "rounds": ROUNDS,
        "threads": torch.get_num_threads(),
        "dtype": "float32",
        "models": {entry.name: _model(registry.load(entry), samples) for entry in entries},
    }


@dataclass
class _Size:
    """The times of one size's rounds in seconds, and the answers of the last round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)  # wall time of stages 3 and 4
    answers: list[tuple[int, ...]] = field(default_factory=list)


def _model(adapter: Any, samples: Sequence[Any]) -> dict[str, Any]:
    found = {size: _Size() for size in SIZES}
    for round_ in range(WARM_UP + ROUNDS):
        for size in SIZES if round_ % 2 else SIZES[::-1]:
            _round(adapter, samples, size, found[size])
    return {f"batch of {size}": _figures(found[size], found[1], len(samples)) for size in SIZES}


def _round(adapter: Any, samples: Sequence[Any], size: int, kept: _Size) -> None:
    from engine.pipeline import batch_run, single_run
    from engine.types import RunRequest

    asked = [
        RunRequest(one, adapter.info.name, "What are the key elements in this scene?", cache="off")
        for one in samples
    ]
    cpu, wall = time.process_time(), time.perf_counter()
    done: list[Any] = []
    for start in range(0, len(asked), size):
        some = asked[start : start + size]
        if size == 1:
            done.append(single_run.run(adapter, some[0], None))
        else:
            done += batch_run.run(adapter, some, None)
    kept.cpu.append(time.process_time() - cpu)
    kept.wall.append(time.perf_counter() - wall)
    kept.together.append(_together(done))
    kept.answers = [one.generation.token_ids for one in done]


def _together(done: Sequence[Any]) -> float:
    """Seconds of stages 3 and 4; those of a batch once."""
    runs = {id(one.batch or one): one.batch or one for one in done}.values()
    return float(sum(run.span(name).ms for run in runs for name in TOGETHER)) / 1000


def _figures(size: _Size, single: _Size, samples: int) -> dict[str, Any]:
    tokens = sum(map(len, size.answers))
    figures: dict[str, Any] = {"new_tokens": tokens}
    figures["answers_unlike_single_runs"] = sum(
        own != alone for own, alone in zip(size.answers, single.answers, strict=True)
    )
    for name in ("wall", "cpu", "together"):
        took, alone = (getattr(one, name)[WARM_UP:] for one in (size, single))
        figures[name] = {
            "tokens_per_s": spread([tokens / seconds for seconds in took]),
            "samples_per_s": spread([samples / seconds for seconds in took]),
            "times_single_runs": spread([b / a for a, b in zip(took, alone, strict=True)]),
        }
    return figures


if __name__ == "__main__":
    main()

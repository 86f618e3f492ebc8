"""Dataset runs: the cost of the harness, how fast results open, memory over a run's length.

`python -m benchmarks.runs`: time outside the four stages per sample and model on the demo
checkpoints, 10,000 kept results read, summed up, filtered and compared, a dataset of 1,100 records
with missing files listed, and the memory of a run after few and after many results.  Everything
lies in a temporary folder.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import keep, spread
from engine.pipeline.watcher import Watcher

REPEAT = 5
SAMPLES, ROUNDS = 14, 12  # of the demo dataset, per model
RESULTS, TOKENS = 10_000, 60
RECORDS = 1_100


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = str(folder / "cache")
        figures = {
            "harness": _harness(folder),
            "results": _results(folder),
            "listing": _listing(folder),
        }
    keep("runs", figures)


def _harness(folder: Path) -> dict[str, Any]:
    """Wall time from the first row to the last less their stages, per row.

    Models are loaded before; a batch asks for the device once more to load each of them.
    """
    from engine import settings
    from engine.benchmark import execute
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset
    from engine.models import registry
    from engine.storage import run_store
    from engine.storage.plan import Plan
    from engine.types import STAGES

    found = dataset.read(ensure_dataset(settings.load().demo_dir))
    names = tuple(entry.name for entry in registry.entries() if entry.demo)
    for name in names:
        registry.load(registry.entry(name))
    plan = Plan(names, tuple(sample.id for sample in found.samples), repeat=ROUNDS)
    ready = execute.prepare(plan, found, folder / "run")
    watcher = _Memory()
    with ready.writer:
        execute.run(ready, watcher)
    rows = [row for _, row in run_store.read(folder / "run").results()][:-1]
    wall = watcher.between_first_and_last_ms()
    stages = [sum(span.ms for name in STAGES if (span := row.spans[name])) for row in rows]
    inside = [row.unaccounted_ms or 0.0 for row in rows]
    return {
        "rows": len(rows),
        "stages_ms": spread(stages),
        "outside_the_stages_per_row_ms": round((wall - sum(stages)) / len(rows), 3),
        "of_it_inside_the_pipeline_ms": spread(inside),
        "share_of_the_stages": round((wall - sum(stages)) / sum(stages), 4),
        "memory_mb_by_row": watcher.seen,
    }


class _Memory(Watcher):
    """A watcher that records time and memory at a few points, without its own work."""

    def __init__(self) -> None:
        self.seen: dict[int, float] = {}
        self._rows = 0
        self._start = self._last = self._own = 0.0
        self._process = psutil.Process()

    def give_way(self) -> float:
        now = time.perf_counter()
        self._start = self._start or now
        self._last = now
        self._rows += 1
        if self._rows % 100 == 0:
            gc.collect()
            self.seen[self._rows] = round(self._process.memory_info().rss / 2**20, 1)
            self._own += time.perf_counter() - now
        return 0.0

    def between_first_and_last_ms(self) -> float:
        """From before the first row to before the last."""
        return 1000 * (self._last - self._start - self._own)


def _results(folder: Path) -> dict[str, Any]:
    """The steps that a page does with 10,000 results, timed one by one."""
    from engine.analysis import agreement, model_summary, pairs, speedup
    from engine.analysis.results_table import frame, measured
    from engine.storage import run_store

    place = folder / "many"
    write_run(place)
    run = run_store.read(place)
    table = frame([run])
    steps: dict[str, Callable[[], Any]] = {
        "opened_s": lambda: frame([run_store.read(place)]),
        "opened_without_answers_s": lambda: frame([run_store.read(place)], answers=False),
        "summed_up_s": lambda: model_summary.figures(table),
        "filtered_s": lambda: model_summary.counts(measured(table[table["sequence"] == "q3"])),
        "one_comparison_s": lambda: pairs.compare(table, "model-0", "model-1", "total"),
        "speedup_split_s": lambda: speedup.split(table, "model-0", "model-1"),
        "ranked_by_ratio_s": lambda: agreement.by_ratio(table, "model-0", "model-1"),
        "ranked_by_disagreement_s": lambda: agreement.by_disagreement(table),
        "one_result_again_s": lambda: run.row(int(table["offset"].iloc[-1])),
        "listed_s": lambda: run_store.listing(folder),
    }
    size = (place / run_store.RESULTS).stat().st_size
    timed = {name: spread([_seconds(step) for _ in range(REPEAT)]) for name, step in steps.items()}
    return {"results": RESULTS, "tokens": TOKENS, "file_mb": round(size / 2**20, 1), **timed}


def write_run(folder: Path, results: int = RESULTS) -> None:
    """A run folder of so many results of two models, each of TOKENS tokens."""
    from engine.storage import run_store
    from engine.storage.plan import Plan
    from engine.storage.result_rows import ResultRow
    from engine.storage.run_header import DatasetIdentity, Header, ModelIdentity

    models = ("model-0", "model-1")
    identities = tuple(
        ModelIdentity(name, name, "llava", "./x", None, "float32", "0") for name in models
    )
    ids = tuple(f"sample-{index}" for index in range(results // 2))
    header = Header(Plan(models, ids), DatasetIdentity("/data", "0"), identities, {}, "0")
    with run_store.create(header, folder) as writer:
        for row in _rows(models, ids):
            writer.append(ResultRow.parse(row))


def _rows(models: tuple[str, ...], ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Rows of the size that real ones have."""
    for index, sample in enumerate(ids):
        for place, model in enumerate(models):
            yield _row(model, sample, index, 1.0 + place + 0.1 * (index % 9))


def _row(model: str, sample: str, index: int, step: float) -> dict[str, Any]:
    spans = {
        name: {"name": name, "start_ms": start, "ms": ms, "source": "measured"}
        for name, start, ms in (
            ("load", 0.0, 4.123456789), ("preprocess", 4.2, 2.123456789),
            ("vision", 6.4, 9.123456789), ("decode", 15.6, 8.0 + TOKENS * step),
        )
    }  # fmt: skip
    times = [23.6 + step * token + 0.123456789 for token in range(TOKENS)]
    names = ("images", "pixels", "input_ids", "features", "embeddings")
    return {
        "model": model, "family": "llava", "checkpoint": "./x", "digest": "0" * 32,
        "sample": sample, "sequence": f"q{index % 400}", "repeat": 0, "phase": "measured",
        "prompt": "What are the key elements in this scene?", "text": "A road by day. " * 12,
        "token_ids": list(range(1000, 1000 + TOKENS)), "token_ms": times, "new_tokens": TOKENS,
        "stop": "eos", "context_tokens": 312, "mode": "decoupled", "cache": "off", "cold": False,
        "decode_config": {"max_new_tokens": 256, "min_new_tokens": 0, "temperature": 0.0},
        "stages": spans, "prefill": spans["vision"], "steps": spans["decode"],
        "ttft_ms": times[0], "tpot_ms": step, "tokens_per_s": 1000 / step,
        "total_ms": times[-1], "uncached_total_ms": times[-1], "unaccounted_ms": 0.1,
        "tensors": [{"name": n, "shape": [8, 3, 96, 96], "dtype": "float32", "bytes": 884736}
                    for n in names],
        "environment": {"device": "cpu", "hardware": "x86_64", "threads": "2", "cores": "2"},
        "notes": [], "error": None, "reference": "A road by day. " * 12, "truth": {},
        "paused_ms": 0.0, "at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip


def _listing(folder: Path) -> dict[str, Any]:
    """1,100 records of which a third lack their MP4 and a third their frames."""
    from engine.media import dataset
    from engine.storage import provenance

    root = folder / "dataset"
    _records(root)
    found = dataset.read(root)
    return {
        "records": RECORDS,
        "listed_s": spread([_seconds(lambda: dataset.read(root)) for _ in range(REPEAT)]),
        "digest_s": spread(
            [
                _seconds(lambda: provenance.describe_dataset(root, found.samples))
                for _ in range(REPEAT)
            ]
        ),
    }


def _records(root: Path) -> None:
    records = []
    for index in range(RECORDS):
        clip = f"q{index // 50}/{index:06d}"
        files = [f"event_image/{clip}_{n}.png" for n in range(5)]
        files += [f"video/{clip}/{n:06d}.png" for n in range(20)] if index % 3 else []
        files += [f"mp4/{clip}.mp4"] if index % 3 != 1 else []
        for file in files:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(b"x" * 2000)
        records.append(
            {
                "id": f"record-{index}", "event_data": f"{clip}.npy", "video_data": clip,
                "mp4_data": f"{clip}.mp4", "event_image": [f"{clip}_{n}.png" for n in range(5)],
            }
        )  # fmt: skip
    (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps(records))


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

"""How fast published result files are read and audited, beside the figures to reach.

`python -m benchmarks.records [FOLDER]`: the published files of a folder (by default
../shared/data/recorded, if it is there), a made file of 4 MB for each group that grows, and a made
folder of 100 files.  Imports are not counted; each figure is import, audit and the figures printed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import keep, spread

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "recorded"
REPEAT = 5
MEGABYTES = 4
GOALS = {"published_s": 2.0, "four_megabytes_s": 1.0, "hundred_files_s": 10.0}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED
    with tempfile.TemporaryDirectory() as made:
        figures = _measure(folder, Path(made))
    figures["goals"] = GOALS
    figures["torch_imported"] = "torch" in sys.modules
    keep("records", figures)


def _measure(folder: Path, made: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if folder.is_dir():
        files = list(folder.glob("*.json"))
        figures["published_files"] = len(files)
        figures["published_mb"] = round(sum(f.stat().st_size for f in files) / 1e6, 2)
        figures["published_s"] = _times(lambda: _import(folder))
    for name, value in _big().items():
        path = made / f"{name}.json"
        path.write_text(json.dumps(value, indent=1), encoding="utf-8")
        figures[f"four_megabytes_{name}_mb"] = round(path.stat().st_size / 1e6, 1)
        figures[f"four_megabytes_{name}_s"] = _times(lambda path=path: _import(path))  # type: ignore[misc]
    many = made / "many"
    many.mkdir()
    for number in range(100):
        text = json.dumps(_five(40) if number % 2 else _flat(40))
        (many / f"{number:03d}.json").write_text(text, encoding="utf-8")
    figures["hundred_files_s"] = _times(lambda: _import(many))
    return figures


def _import(path: Path) -> None:
    from engine.published import read
    from engine.published.audit import audit
    from engine.published.read import file_summary

    for file in read.read([path], lambda done, every, name: None):
        file_summary.as_dict(file, audit(file))


def _times(work: Callable[[], None]) -> dict[str, Any]:
    work()  # imports
    found, spent = [], []
    for _ in range(REPEAT):
        start, busy = time.perf_counter(), time.process_time()
        work()
        found.append(time.perf_counter() - start)
        spent.append(time.process_time() - busy)
    return {**spread(found), "processor_s": spread(spent)["median"]}


def _big() -> dict[str, Any]:
    """A made file of each kind that is long, at least 4 MB of indented JSON."""
    return {"flat": _grown(_flat), "five_stages": _grown(_five), "pairs": _grown(_pairs)}


def _grown(make: Callable[[int], Any]) -> Any:
    one = len(json.dumps(make(20), indent=1)) / 20
    return make(int(MEGABYTES * 1.05e6 / one) + 1)


def _ids(seed: int, count: int) -> list[int]:
    return [(7919 * (seed + index)) % 31_000 + 3 for index in range(count)]


def _flat(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"id-{index}", "query": "What is it?", "egpt": "In the scene there is a road. " * 4,
         "egpt_time": 1.0, "egpt_stage1_time": 0.02, "egpt_stage2_time": 0.01,
         "egpt_stage3_time": 0.97, "egpt_token_ids": _ids(index, 45),
         "llava-1.5-7b-hf": "The key elements are a road and a car. " * 8, "llava_time": 2.0,
         "llava_stage1_time": 0.2, "llava_stage2_time": 0.1, "llava_stage3_time": 1.7,
         "llava_token_ids": _ids(index + 5, 90)}
        for index in range(count)
    ]  # fmt: skip


def _five(count: int) -> dict[str, Any]:
    def model(index: int, tokens: int) -> dict[str, Any]:
        times = {f"stage{number}_time": 0.1 * number for number in range(1, 6)}
        answer = {"output_tokens": _ids(index, tokens), "output_text": f"Scene {index} is a road."}
        return {**times, **answer, "total_time": 1.5, "prefill_length": 637}

    rows = [{"sample_idx": index, "eventgpt": model(index, 43), "videollava": model(index + 9, 50),
             "parallel": {"wall_clock_total": 1.5}} for index in range(count)]  # fmt: skip
    return {"config": {}, "statistics": {"n_samples": count}, "results": rows, "errors": []}


def _pairs(count: int) -> dict[str, Any]:
    rows = [{"sample_idx": index // 10, "question": f"Question {index % 10}?",
             "egpt_tokens": _ids(index, 40), "egpt_text": "In the scene there is a road.",
             "adapter_tokens": _ids(index + 3, 40), "vl_tokens": _ids(index + 4, 50),
             "vl_text": "The key elements are a road."} for index in range(count)]  # fmt: skip
    return {"config": {}, "summary": {"total_samples": count}, "results": rows}


if __name__ == "__main__":
    main()

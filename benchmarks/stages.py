"""The engine's speed on the demo checkpoints, compared with alternatives in the same run.

`python -m benchmarks.stages`: three models on one sample (total, first token, peak memory), the
own decode loop against generate(), features read from disk against features computed.  Medians;
the cache is a temporary folder.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.machine import keep, spread

REPEAT = 9


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = folder
        figures = _measure()
    unit = 1 if sys.platform == "darwin" else 1024
    figures["peak_memory_mb"] = round(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
    )
    keep("stages", {"rows": _rows(figures), **figures})


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Each model's gain over the alternative."""
    repeat = "python -m benchmarks.stages"
    rows = []
    for name, one in found["models"].items():
        read = one["features_computed_ms"]["median"] / one["features_read_ms"]["median"]
        decode = {"what": f"{name}: stage 4 of a whole run, wall", "against": "generate()"}
        vision = {"what": f"{name}: stage 3, read, wall", "against": "stage 3, computed"}
        rows.append({**decode, "ratio": one["generate_over_own"]["median"], "repeat": repeat})
        rows.append({**vision, "ratio": round(read, 1), "repeat": repeat})
    return rows


def _measure() -> dict[str, Any]:
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset
    from engine.models import registry
    from engine.pipeline import feature_cache, single_run
    from engine.types import RunRequest

    start = time.perf_counter()
    sample = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[0]
    figures: dict[str, Any] = {"demo_dataset_made_s": round(time.perf_counter() - start, 2)}
    start = time.perf_counter()
    adapters = [registry.load(entry) for entry in registry.entries() if entry.demo]
    figures["imports_and_loading_s"] = round(time.perf_counter() - start, 2)
    cache = feature_cache.shared()

    def run(adapter: Any, **options: Any) -> Any:
        request = RunRequest(sample, adapter.info.name, "What are the key elements in this scene?")
        return single_run.run(adapter, replace(request, **options), cache)

    start = time.perf_counter()
    first = [run(adapter) for adapter in adapters]
    figures["three_models_first_run_s"] = round(time.perf_counter() - start, 3)
    figures["first_token_of_the_first_ms"] = round(first[0].ttft_ms, 1)
    figures["three_models_warm_s"] = spread(
        [_seconds(lambda: [run(adapter) for adapter in adapters]) for _ in range(REPEAT)]
    )
    figures["models"] = {adapter.info.name: _model(run, adapter) for adapter in adapters}
    return figures


def _model(run: Callable[..., Any], adapter: Any) -> dict[str, Any]:
    """Alternated pairs: the own loop and generate(), computed and read features."""
    own, hooked, cached, computed = [], [], [], []
    for _ in range(REPEAT):
        refreshed = run(adapter, cache="refresh")
        read = run(adapter, cache="use")
        plain = run(adapter, mode="hooked", cache="off")
        own.append(refreshed.span("decode").ms)
        hooked.append(plain.span("decode").ms)
        computed.append(refreshed.span("vision").ms)
        cached.append(read.span("vision").ms)
    ratios = [slow / fast for slow, fast in zip(hooked, own, strict=True)]
    return {
        "new_tokens": refreshed.new_tokens,
        "own_decode_ms": spread(own),
        "generate_decode_ms": spread(hooked),
        "generate_over_own": spread(ratios),
        "features_computed_ms": spread(computed),
        "features_read_ms": spread(cached),
        "tokens_per_s": round(refreshed.tokens_per_s, 1),
    }


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

"""TTFT of a second question: with the prefix in memory against everything computed, and against
features read from disk.

The demo checkpoints on demo scenes by turns, wall time; TTFT includes all stages.  The run stops if
the tokens differ.
"""

from __future__ import annotations

from typing import Any

from benchmarks.machine import QUESTION, Row, demo_adapters, demo_samples, main, rows

QUESTIONS = (QUESTION, "Is there a pedestrian in the scene?", "What is beside the road?")
COMPUTED, READ = "everything computed", "features read from the disk"
WAYS: dict[str, dict[str, Any]] = {
    "prefix in memory": {"prefix": True},
    COMPUTED: {"cache": "off"},
    READ: {},
}
TARGETS = {"video-llava-demo": {COMPUTED: 3.0}}


def measure(quick: bool) -> list[Row]:
    samples, found = demo_samples()[: len(QUESTIONS)], list[Row]()
    for adapter in demo_adapters():
        if "prefix" not in adapter.refuses:
            found += _model(adapter, samples, 1 if quick else 15)
    return found


def _model(adapter: Any, samples: Any, rounds: int) -> list[Row]:
    from engine.pipeline import feature_cache, single_run
    from engine.pipeline.prefix_cache import Prefixes
    from engine.types import DecodeConfig, RunRequest

    store, short, name = Prefixes(1024), DecodeConfig(max_new_tokens=8), adapter.info.name

    def ask(sample: Any, question: str, **options: Any) -> Any:
        request = RunRequest(sample, name, question, decode=short, **options)
        return single_run.run(adapter, request, feature_cache.shared(), None, store)

    for sample in samples:  # warms up, fills both caches
        ask(sample, "Why?", cache="refresh")
        ask(sample, "Why?", prefix=True)
    ttft: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(rounds):
        place = turn % len(QUESTIONS)
        order = list(WAYS) if turn % 2 else list(WAYS)[::-1]
        runs = {way: ask(samples[place], QUESTIONS[place], **WAYS[way]) for way in order}
        if len({one.generation.token_ids for one in runs.values()}) > 1:
            raise SystemExit(f"{name}: a reused prefix gives other tokens.")
        for way, one in runs.items():
            ttft[way].append(one.ttft_ms)
    return rows(f"TTFT of a second question, {name}, wall", ttft, TARGETS.get(name))


if __name__ == "__main__":
    main("again", measure, __doc__)

"""Throughput of batches: the same samples by fours and by eights against one by one.

Whole pipelines of the demo models by turns, CPU time.  The run stops if an answer differs.
"""

from functools import partial
from typing import Any

from benchmarks.machine import QUESTION, Row, by_turns, demo_adapters, demo_samples, main, rows

SAMPLES, SIZES, SINGLE = 8, (4, 8), "one by one"


def measure(quick: bool) -> list[Row]:
    samples, found = demo_samples()[:SAMPLES], list[Row]()
    able = [adapter for adapter in demo_adapters() if "batch" not in adapter.refuses]
    for adapter in able[: 1 if quick else None]:
        for size in SIZES[: 1 if quick else None]:
            ways = {
                f"batch of {size}": partial(_answered, adapter, samples, size),
                SINGLE: partial(_answered, adapter, samples, 1),
            }
            if len({way() for way in ways.values()}) > 1:
                raise SystemExit(f"{adapter.info.name}: a batch of {size} gives other tokens.")
            times = by_turns(ways, 1 if quick else 7)
            found += rows(f"samples a second, batch of {size}, {adapter.info.name}", times)
    return found


def _answered(adapter: Any, samples: Any, size: int) -> tuple[Any, ...]:
    """The token ids of all samples."""
    from engine.pipeline import batch_run, single_run
    from engine.types import RunOptions, RunRequest

    name, done = adapter.info.name, list[Any]()
    asked = [RunRequest(sample, name, QUESTION, RunOptions(cache="off")) for sample in samples]
    for start in range(0, len(asked), size):
        some = asked[start : start + size]
        alone = size == 1
        done += (
            [single_run.run(adapter, some[0], None)]
            if alone
            else batch_run.run(adapter, some, None)
        )
    return tuple(one.generation.token_ids for one in done)


if __name__ == "__main__":
    main("batches", measure, __doc__)

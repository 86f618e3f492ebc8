"""Stage 3 of the demo models: features read from disk against features computed.

Whole runs on one sample by turns, wall time of the stage.  Stage 4: decoding.py.
"""

from benchmarks.machine import QUESTION, Row, demo_adapters, demo_samples, main, row


def measure(quick: bool) -> list[Row]:
    from engine.pipeline import feature_cache, single_run
    from engine.types import RunOptions, RunRequest

    sample, cache, found = demo_samples()[0], feature_cache.shared(), list[Row]()
    for adapter in demo_adapters():
        ratios = []
        for turn in range(2 if quick else 10):
            request = RunRequest(sample, adapter.info.name, QUESTION, RunOptions(cache="refresh"))
            computed = single_run.run(adapter, request, cache).span("vision")
            request = RunRequest(sample, adapter.info.name, QUESTION, RunOptions(cache="use"))
            read = single_run.run(adapter, request, cache).span("vision")
            if computed is None or read is None or read.source != "cached":
                raise SystemExit(f"{adapter.info.name}: its features were not read.")
            if turn:  # the first one warms up
                ratios.append(computed.ms / read.ms)
        what = f"{adapter.info.name}: stage 3, read, wall"
        found.append(row(what, "stage 3, computed", ratios))
    return found


if __name__ == "__main__":
    main("stages", measure, __doc__)

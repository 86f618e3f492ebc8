"""How a dataset run grows from 1 to 2 workers.

`python -m benchmarks.scaling`: a local Ray, demo checkpoints, workers of one thread each, runs with
1 and 2 workers by turns: efficiency = rate of 2 / (2 x rate of 1), the rate that of the results
while every worker is at work.  Beside it, in the same rounds, 1 and 2 plain processes without Ray:
what the machine itself gives.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import keep, spread
from engine.pipeline import Watcher

ROUNDS, REPEAT = 5, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, keeps nothing")
    parser.add_argument("--process", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process is not None:
        _process(options.process)
        return
    if options.quick:
        with tempfile.TemporaryDirectory() as name:
            os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
            os.environ.setdefault("STAGESCOPE_CACHE_DIR", name)
            print(_run(Path(name) / "quick", 1, 1))
        return
    measured = _measured()
    keep("scaling", {"rows": _rows(measured), "measured_here": measured})


def _rows(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of benchmarks.table; how near the cores themselves come to twice is the second."""
    with_ray = measured["results_a_second_2_workers"]["median"]
    without = measured["results_a_second_2_processes"]["median"]
    workers = "a dataset run on 2 workers of one thread"
    return [
        _row(workers, "twice the rate of 1 worker", measured["efficiency_at_2"], target=0.9),
        _row(
            "2 plain processes of one thread, no Ray",
            "twice the rate of 1 process",
            measured["efficiency_of_2_processes"],
        ),
        _row(workers, "2 plain processes, medians", {"median": round(with_ray / without, 3)}),
    ]


def _row(what: str, against: str, ratio: dict[str, Any], **more: float) -> dict[str, Any]:
    found = {"ratio" if name == "median" else name: value for name, value in ratio.items()}
    return {"what": what, "against": against, **found, **more}


# Measured, on a Ray of this machine.
def _measured() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = str(Path(name) / "cache")
        rounds, plain = [], []
        for number in range(ROUNDS):
            folder = Path(name) / str(number)
            rounds.append({n: _run(folder / f"ray-{n}", n) for n in (1, 2)})
            plain.append([_processes(folder, n) for n in (1, 2)])
    return {
        "results_a_second_1_worker": spread([run[1] for run in rounds]),
        "results_a_second_2_workers": spread([run[2] for run in rounds]),
        "efficiency_at_2": spread([run[2] / (2 * run[1]) for run in rounds]),
        "results_a_second_1_process": spread([alone for alone, _ in plain]),
        "results_a_second_2_processes": spread([both for _, both in plain]),
        "efficiency_of_2_processes": spread([both / (2 * alone) for alone, both in plain]),
    }


# The same without Ray, hub and driver: what the machine itself gives to two processes.
def _processes(folder: Path, count: int) -> float:
    """Results a second of local runs of one thread each, while all of them are at work."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--process"]
    variables = {**os.environ, "STAGESCOPE_THREADS": "1"}
    running = [
        subprocess.Popen(
            [*command, str(folder / f"{count}-{number}")], stdout=subprocess.PIPE, env=variables
        )
        for number in range(count)
    ]
    ends = [json.loads(process.communicate()[0]) for process in running]
    begin, end = max(times[0] for times in ends), min(times[-1] for times in ends)
    inside = [sum(begin < one <= end for one in times) for times in ends]
    return float(sum(inside) / (end - begin))


def _process(folder: Path) -> None:
    """A local run; prints the time of each result, by a clock that all processes share."""
    from engine.benchmark import execute

    plan, found = _plan()
    ready = execute.prepare(plan, found, folder)
    watcher = _Ends(ready)
    with ready.writer:
        ready.run(watcher)
    print(json.dumps(watcher.ends))


class _Ends(Watcher):
    def __init__(self, ready: Any) -> None:
        self._tracker = ready.tracker
        self.ends: list[float] = []

    def give_way(self) -> float:
        if self._tracker.view().done > len(self.ends):
            self.ends.append(time.monotonic())
        return 0.0


def _plan(repeat: int = REPEAT) -> tuple[Any, Any]:
    """Answers of one length over the demo dataset, and that dataset."""
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset
    from engine.storage.plan import Plan
    from engine.types import DecodeConfig

    found = dataset.read(ensure_dataset(settings.load().demo_dir))
    forced = DecodeConfig(max_new_tokens=64, min_new_tokens=64)
    names = tuple(sample.id for sample in found.samples)
    return Plan(("llava-demo",), names, repeat=repeat, decode=forced), found


def _run(folder: Path, workers: int, repeat: int = REPEAT) -> float:
    """Results a second while all workers are at work."""
    from engine.benchmark import execute
    from engine.benchmark.cluster.ray_link import ClusterOptions
    from engine.benchmark.cluster.run_session import ClusterExecutor

    plan, found = _plan(repeat)
    with ClusterExecutor(ClusterOptions("local", workers, 1, 0.0)) as executor:
        ready = execute.prepare(plan, found, folder, elsewhere=True)
        watcher = _Watch(ready, workers)
        with ready.writer:
            ready.run(watcher, executor)
    return watcher.rate()


class _Watch(Watcher):
    """Records when results arrived while all workers were busy."""

    def __init__(self, ready: Any, workers: int) -> None:
        self._tracker, self._workers = ready.tracker, workers
        self._points: list[tuple[float, int]] = []

    def give_way(self) -> float:
        view = self._tracker.view()
        busy = [one for one in view.workers if one.done and not one.ended]
        if len(busy) == self._workers and view.planned - view.done >= 2 * self._workers:
            self._points.append((time.monotonic(), view.done))
        return 0.0

    def rate(self) -> float:
        (start, first), (end, last) = self._points[0], self._points[-1]
        return (last - first) / (end - start)


if __name__ == "__main__":
    main()

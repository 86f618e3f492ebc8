"""A busy and an idle machine: `verify` on correct code, and comparisons of runs, some disturbed.

`python -m benchmarks.loaded` verifies the demo models in turn N times through the command line,
under each of CONDITIONS: while other processes keep the cores busy, on an idle machine, with one
and two threads, and with clocks that make the processor seem five times as fast or as slow.  No
check may fail.  `--conditions` picks some; the results of the others are kept.  `--quick` verifies
each model once under each idle condition.

Then it measures one model twice, quiet and busy, and two models quiet, busy, and with only the
second one disturbed.  In a comparison of a model with itself any verdict is false.  "before" is
the verdict without the record of the load.  Runs are in a temporary folder, and so is the cache if
none is set.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS, keep, spread
from engine.pipeline.watcher import Watcher

MODELS = "eventgpt-demo,video-llava-demo,llava-demo"
TIMED = ("clock", "accounted", "stage3", "observer")
SAMPLES, REPEAT = 12, 1
SPIN = "while True: pass"


@dataclass(frozen=True)
class Condition:
    """`busy`: processes that keep cores busy; `threads`: of torch, None for the setting's default;
    `slower`: factor of all times that the engine reads."""

    busy: int = 0
    threads: int | None = None
    slower: float = 1.0


CONDITIONS = {
    "busy": Condition(busy=4),
    "idle": Condition(),
    "idle, 1 thread": Condition(threads=1),
    "idle, 2 threads": Condition(threads=2),
    "clock x 0.2": Condition(slower=0.2),
    "clock x 5": Condition(slower=5.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="verifications per condition")
    parser.add_argument("--conditions", default=";".join(CONDITIONS), help="separated by ;")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--tokens", type=int, default=16, help="new tokens of a verification")
    parser.add_argument("--quick", action="store_true", help="idle conditions, one run per model")
    parser.add_argument("--skip-verify", action="store_true", help="the comparisons alone")
    parser.add_argument("--skip-comparisons", action="store_true")
    options = parser.parse_args()
    names = options.conditions.split(";")
    if options.quick:
        options.runs, options.skip_comparisons = len(options.models.split(",")), True
        names = [name for name in names if not CONDITIONS[name].busy]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ.setdefault("STAGESCOPE_CACHE_DIR", folder)
        os.environ["STAGESCOPE_RUNS_DIR"] = str(Path(folder) / "runs")
        for name in [] if options.skip_verify else names:
            _keep(name, _verifications(name, options))
        if not options.skip_comparisons:
            keep("loaded_comparisons", _comparisons(Path(folder), CONDITIONS["busy"].busy))


def _keep(name: str, found: dict[str, Any]) -> None:
    """Writes the results after every condition, so that a stopped run keeps them."""
    file = RESULTS / "loaded_verify.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    keep("loaded_verify", {"conditions": kept.get("conditions", {}) | {name: found}})


@contextmanager
def _under(condition: Condition) -> Iterator[None]:
    """The condition inside a `with`."""
    import pytest
    import torch

    from engine.machine import clocks, load

    read = {name: getattr(time, name) for name in ("perf_counter", "monotonic", "process_time")}
    waited, threads, slower = clocks.ThreadWait.ms, torch.get_num_threads(), condition.slower

    def scaled(clock: Callable[[], float]) -> Callable[[], float]:
        return lambda: clock() * slower

    def wait_ms(self: clocks.ThreadWait) -> float | None:
        ms = waited(self)
        return None if ms is None else ms * slower

    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        if condition.threads:
            patch.setenv("STAGESCOPE_THREADS", str(condition.threads))
            torch.set_num_threads(condition.threads)
        if slower != 1:
            for name, clock in read.items():
                patch.setattr(time, name, scaled(clock))
            patch.setattr(clocks.ThreadWait, "ms", wait_ms)
            patch.setattr(load, "_TICK", load._TICK / slower)
        stack.enter_context(_busy(condition.busy))
        yield


@contextmanager
def _busy(number: int) -> Iterator[None]:
    """Runs processes that only compute."""
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _verifications(condition: str, options: argparse.Namespace) -> dict[str, Any]:
    """Exit codes and outcomes of every check, counted over all runs."""
    models, found = options.models.split(","), _Counts()
    with _under(CONDITIONS[condition]):
        for number in range(options.runs):
            found.verify(number, models[number % len(models)], options.tokens)
            print(condition, number, dict(found.codes), len(found.told), flush=True)
    names = sorted(found.outcomes)
    return {
        **vars(CONDITIONS[condition]),
        "models": models,
        "runs": options.runs,
        "max_new_tokens": options.tokens,
        "exit_codes": dict(found.codes),
        "failed_checks": sum(found.outcomes[n] for n in names if n.endswith(": failed")),
        "open": {n: found.outcomes[n] for n in names if n.endswith(": unresolved")},
        "outcomes": {n: found.outcomes[n] for n in names},
        "told": found.told,
        "waited_share": spread(found.waited) if found.waited else None,
        "others_cores": spread(found.others) if found.others else None,
        "other_threads_that_wanted_a_core": spread(found.runnable) if found.runnable else None,
        "seconds_each": spread(found.seconds),
    }


@dataclass
class _Counts:
    """The outcomes of verifications, and the machine's load in their timed rounds."""

    codes: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    runnable: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def verify(self, number: int, model: str, tokens: int) -> None:
        """The command line, in this process: another start of torch would prove nothing more."""
        from engine.__main__ import main as command_line

        said, start = io.StringIO(), time.perf_counter_ns()
        how = ["--samples", "1", "--max-new-tokens", str(tokens), "--json"]
        with redirect_stdout(said):
            self.codes[command_line(["verify", "--models", model, *how])] += 1
        self.seconds.append(round((time.perf_counter_ns() - start) / 1e9, 1))
        for row in json.loads(said.getvalue())["verdicts"]:
            self._count(f"{number}: {model}: ", row)

    def _count(self, who: str, row: dict[str, Any]) -> None:
        self.outcomes[f"{row['check']}: {row['outcome']}"] += 1
        evidence = row["evidence"]
        load = evidence.get("machine_load") if row["check"] in TIMED else None
        if load and load["waited_ms"] is not None:
            self.waited.append(load["waited_ms"] / load["wall_ms"])
        if load and load["others"] is not None:
            self.others.append(load["others"])
        if load and load["runnable"] is not None:
            self.runnable.append(load["runnable"])
        if row["outcome"] == "failed" or (load and evidence.get("tries", 1) > 1):
            self.told.append(f"{who}{row['check']}: {row['outcome']}: {row['sentence']}")


def _comparisons(folder: Path, busy: int) -> dict[str, Any]:
    both = ("eventgpt-demo", "llava-demo")
    quiet = _bench(folder / "quiet", both[1:], "sequential", 0)
    loaded = _bench(folder / "busy", both[1:], "sequential", busy)
    pairs = {
        "one model, quiet and busy": [quiet, loaded],
        "two models by turns, quiet": [_bench(folder / "turns", both, "auto", 0)],
        "two models by turns, busy": [_bench(folder / "busy-turns", both, "auto", busy)],
        "two models, the second disturbed": [_half(folder / "half", both, busy)],
    }
    return {name: _judged(folders) for name, folders in pairs.items()}


def _half(folder: Path, models: tuple[str, ...], busy: int) -> Path:
    """Model by model; the machine is busy from the second model on."""
    _bench(folder, models, "sequential", 0, stop_after=SAMPLES * REPEAT + 1)
    from engine.benchmark import execute

    with _busy(busy):
        ready = execute.resume(folder)
        with ready.writer:
            execute.run(ready)
    return folder


def _bench(
    folder: Path, models: tuple[str, ...], order: Any, busy: int, stop_after: int | None = None
) -> Path:
    """A dataset run that is kept in the folder; cancelled after so many results, if given."""
    from engine import settings
    from engine.benchmark import execute
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset
    from engine.storage.plan import Plan
    from engine.types import DecodeConfig

    found = dataset.read(ensure_dataset(settings.load().demo_dir))
    step = max(1, len(found.samples) // SAMPLES)
    ids = tuple(sample.id for sample in found.samples[::step][:SAMPLES])
    decode = DecodeConfig(max_new_tokens=16)
    plan = Plan(models, ids, repeat=REPEAT, order=order, decode=decode)

    class Timed(Watcher):
        def cancelled(self) -> bool:
            done = ready.tracker.view().done
            return stop_after is not None and done >= stop_after

    with _busy(busy):
        ready = execute.prepare(plan, found, folder)
        with ready.writer:
            execute.run(ready, Timed())
    return folder


def _judged(folders: list[Path]) -> dict[str, Any]:
    """The comparison of total time with and without the record of the machine's load."""
    from engine.analysis import machine_loads, pairs, results_table
    from engine.machine.load import words
    from engine.storage import run_store

    table = results_table.frame([run_store.read(folder) for folder in folders])
    a, b = results_table.labels(table)[:2]
    now = pairs.compare(table, a, b, "total")
    forgotten = table.assign(load_wall_ms=float("nan"))
    before = pairs.compare(forgotten, a, b, "total")
    known = {
        label: load for label, load in machine_loads.by_label(table).items() if load is not None
    }
    return {
        "a": a,
        "b": b,
        "n": now.n,
        "sequences": now.sequences,
        "load": {label: words(load) for label, load in known.items()},
        "verdict": now.verdict,
        "reason": now.reason,
        "before": {
            "verdict": before.verdict,
            "ratio": None if before.ratio is None else vars(before.ratio),
        },
    }


if __name__ == "__main__":
    main()

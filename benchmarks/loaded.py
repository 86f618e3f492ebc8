"""`verify` on correct code, on busy and idle machines: no check may fail.

`python -m benchmarks.loaded` verifies the demo models in turn through the command line, under each
of CONDITIONS: while other processes keep the cores busy, on an idle machine, with one and two
threads, and with clocks that make the processor seem five times as fast or as slow.  `--conditions`
picks some; the results of the others are kept.  `--quick` verifies one model under one idle
condition.
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
from dataclasses import dataclass
from typing import Any

from benchmarks.machine import RESULTS, keep, say

MODELS = ("eventgpt-demo", "video-llava-demo", "llava-demo")
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
    parser.add_argument("--quick", action="store_true", help="one run, keeps nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ.setdefault("STAGESCOPE_CACHE_DIR", folder)
        if options.quick:
            failed = verifications("clock x 5", 1)["failed"]
            sys.exit("\n".join(failed) or None)
        for name in options.conditions.split(";"):
            _keep(name, verifications(name, options.runs))


def _keep(name: str, found: dict[str, Any]) -> None:
    """Writes the results after every condition, so that a stopped run keeps them."""
    file = RESULTS / "loaded.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    keep("loaded", {"conditions": kept.get("conditions", {}) | {name: found}})


@contextmanager
def _under(condition: Condition) -> Iterator[None]:
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
            counters = load._counters
            patch.setattr(load, "_counters", lambda cpus: load._Counters(
                *(None if ms is None else ms * slower for ms in counters(cpus))))  # fmt: skip
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


def verifications(condition: str, runs: int) -> dict[str, Any]:
    """Exit codes and outcomes of every check, counted over all runs."""
    from engine.__main__ import main as command_line

    codes, outcomes, failed = Counter[int](), Counter[str](), list[str]()
    with _under(CONDITIONS[condition]):
        for number in range(runs):
            model, text = MODELS[number % len(MODELS)], io.StringIO()
            how = ["--samples", "1", "--max-new-tokens", "16", "--json"]
            with redirect_stdout(text):  # another start of torch would prove nothing more
                codes[command_line(["verify", "--models", model, *how])] += 1
            for row in json.loads(text.getvalue())["verdicts"]:
                outcomes[f"{row['check']}: {row['outcome']}"] += 1
                if row["outcome"] == "failed":
                    failed.append(f"{number}: {model}: {row['check']}: {row['sentence']}")
            say(f"{condition}, {number}: {dict(codes)}, {len(failed)} failed")
    return {
        **vars(CONDITIONS[condition]),
        "models": MODELS,
        "runs": runs,
        "exit_codes": dict(codes),
        "outcomes": dict(sorted(outcomes.items())),
        "failed": failed,
    }


if __name__ == "__main__":
    main()

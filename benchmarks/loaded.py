"""`verify` and verdicts on busy and idle machines: no check of correct code may fail, and no other
work may decide a comparison.

`python -m benchmarks.loaded` verifies the demo models in turn through the command line, under each
of CONDITIONS: while other processes keep the cores busy, on an idle machine, with one and two
threads, and with clocks that make the processor seem five times as fast or as slow.  `--conditions`
picks some; the results of the others are kept.  `--quick` verifies one model under one idle
condition.  `--verdicts` compares instead: two columns of one demo model, and two models whose order
is known, by turns of 5 and 10, beside work that comes and goes.
"""

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

from benchmarks.machine import QUESTION, RESULTS, demo_adapters, demo_samples, keep, say

MODELS = ("eventgpt-demo", "video-llava-demo", "llava-demo")
SPIN = "while True: pass"
# Other work as it is: for some time it needs a core, then it sleeps.
BURSTS = """import random, time
while True:
    end = time.monotonic() + random.uniform(0.05, 1.0)
    while time.monotonic() < end: pass
    time.sleep(random.uniform(0.05, 1.0))"""
ONE, OTHER = "eventgpt", "video_llava"  # families; the demo model of the first says less
TURNS = (5, 10)


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
    parser.add_argument("--verdicts", type=int, metavar="N", help="N comparisons of one model")
    parser.add_argument("--quick", action="store_true", help="one run, keeps nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ.setdefault("STAGESCOPE_CACHE_DIR", folder)
        if options.quick:
            failed = verifications("clock x 5", 1)["failed"]
            sys.exit("\n".join(failed) or None)
        if options.verdicts:
            return _keep("verdicts", {"bursts": verdicts(2, options.verdicts)})
        for name in options.conditions.split(";"):
            _keep("conditions", {name: verifications(name, options.runs)})


def _keep(part: str, found: dict[str, Any]) -> None:
    """Writes the results after every condition, so that a stopped run keeps them."""
    file = RESULTS / "loaded.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    parts = {name: kept[name] for name in ("conditions", "verdicts") if name in kept}
    keep("loaded", parts | {part: parts.get(part, {}) | found})


@contextmanager
def _under(condition: Condition) -> Iterator[None]:
    import pytest
    import torch

    from engine.machine import load

    read = {name: getattr(time, name) for name in ("perf_counter", "monotonic", "process_time")}
    waited, threads, slower = load.ThreadWait.ms, torch.get_num_threads(), condition.slower

    def scaled(clock: Callable[[], float]) -> Callable[[], float]:
        return lambda: clock() * slower

    def wait_ms(self: load.ThreadWait) -> float | None:
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
            patch.setattr(load.ThreadWait, "ms", wait_ms)
            counters = load._counters
            patch.setattr(load, "_counters", lambda cpus: tuple(
                None if ms is None else ms * slower for ms in counters(cpus)))  # fmt: skip
        stack.enter_context(_busy(condition.busy, SPIN))
        yield


@contextmanager
def _busy(number: int, code: str) -> Iterator[None]:
    """Runs processes of this code."""
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(number)]
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


def verdicts(busy: int, number: int) -> dict[str, Any]:
    """How often a comparison by turns names a winner beside `busy` processes of BURSTS: of two
    columns of one model, where each is wrong, and of ONE against OTHER, a tenth as often."""
    from engine.analysis.compared import ComparedModel, verdict
    from engine.pipeline import feature_cache, single_run
    from engine.types import RunOptions, RunRequest

    sample, cache = demo_samples()[0], feature_cache.shared()
    adapters = {adapter.info.family: adapter for adapter in demo_adapters((ONE, OTHER))}

    def run(family: str) -> Any:
        request = RunRequest(sample, adapters[family].info.name, QUESTION, RunOptions(cache="off"))
        return single_run.run(adapters[family], request, cache)

    for family in adapters:
        run(family)  # the first one is cold
    found: dict[str, Any] = {"processes": busy}
    with _busy(busy, BURSTS):
        for name, pair, times in (
            ("one model", (ONE, ONE), number),
            ("two models", (ONE, OTHER), max(1, number // 10)),
        ):
            winners = {turns: Counter[str]() for turns in TURNS}
            for _ in range(times):
                runs = [[run(family) for family in pair] for _ in range(TURNS[-1])]
                for turns in TURNS:
                    columns = zip(*runs[:turns], strict=True)
                    models = [
                        ComparedModel(label, "", tuple(column))
                        for label, column in zip(("first", "second"), columns, strict=True)
                    ]
                    winners[turns][verdict(models, {}).winner or "none"] += 1
            found[name] = {str(turns): dict(one) for turns, one in winners.items()}
            say(f"{name}: {found[name]}")
    return found


if __name__ == "__main__":
    main()

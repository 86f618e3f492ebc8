"""benchmarks/gate.py: the planted slow-down, the order of pairs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import gate as benchmark

# Three tokens of 20 ms: prints how many times longer the planted change makes them.
TRY = """
import time
from engine.pipeline import single_run
from engine.types import Span

class Timeline:
    def __init__(self):
        self.spans, self.begin = [Span("vision", 0.0, 10.0)], time.perf_counter()
    def now(self):
        return 1000 * (time.perf_counter() - self.begin)

class Run(single_run._Run):
    def __init__(self):
        self.timeline, self.token_ms = Timeline(), []

def usual(self, token):
    self.token_ms.append(self.timeline.now())

run, last = Run(), 0.0
for token in range(3):
    time.sleep(0.02)
    work = run.timeline.now() - last
    single_run._slow_token(run, token, usual)
    print((run.token_ms[-1] - last) / work)
    last = run.token_ms[-1]
"""


def test_the_copy_is_slower_by_the_planted_share(tmp_path: Path) -> None:
    folder = benchmark.copy(tmp_path / "slow", 0.5)
    found = subprocess.run([sys.executable, "-c", TRY], cwd=folder, check=True, text=True,
                           capture_output=True, env={"PYTHONPATH": str(folder)})  # fmt: skip
    assert 1.5 <= min(map(float, found.stdout.split())) < 1.6  # a core may be lost in between


def test_the_planted_pairs_are_spread_and_refused_ones_run_again() -> None:
    pairs: list[dict[str, Any]] = []
    while kind := benchmark.missing(pairs, {"same": 4, "planted": 2}):
        pairs.append({"kind": kind, "verdict": "refused" if len(pairs) == 1 else "worse"})
    kinds = [one["kind"] for one in pairs if one["verdict"] != "refused"]
    assert kinds.count("same") == 4 and kinds.count("planted") == 2
    assert "planted" in kinds[:3] and len(pairs) == 7

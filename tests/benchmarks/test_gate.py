"""benchmarks/gate.py: the planted slow-down, the order of pairs, the table."""

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


def pair(kind: str, verdict: str, change: float = 1.0) -> dict[str, Any]:
    result = {"label": "ev", "metric": "total", "unit": "ratio", "change": change,
              "verdict": verdict, "low": None, "high": None}  # fmt: skip
    return {"kind": kind, "verdict": verdict, "results": [result]}


def test_the_planted_pairs_are_spread_and_refused_ones_run_again() -> None:
    pairs: list[dict[str, Any]] = []
    while kind := benchmark.missing(pairs, {"same": 4, "planted": 2}):
        pairs.append({"kind": kind, "verdict": "refused" if len(pairs) == 1 else "worse"})
    kinds = [one["kind"] for one in pairs if one["verdict"] != "refused"]
    assert kinds.count("same") == 4 and kinds.count("planted") == 2
    assert "planted" in kinds[:3] and len(pairs) == 7


def test_the_table_has_the_shares_and_the_changes() -> None:
    pairs = [pair("same", "no worse", 1.01), pair("same", "worse", 1.06), pair("same", "no worse"),
             pair("planted", "worse", 1.14), {"kind": "same", "verdict": "refused"}]  # fmt: skip
    text = benchmark.markdown({"pairs": pairs, "slow": 0.15})
    assert "| the same code | 3 | 1 (0.8 to 90.6 %) | 0 | 2 | 1 |" in text
    assert "waits of 15% in stages 3 and 4 | 1 | 1 (" in text
    assert "| the same code | ev | total | +1.0 | +0.0 to +6.0 |" in text

"""benchmarks/gate.py: the planted slow-down, the order of pairs."""

from __future__ import annotations

import filecmp
import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from benchmarks import gate as benchmark
from engine.types import Span


def test_the_copy_is_slower_by_the_planted_share(tmp_path: Path) -> None:
    """Three tokens of 20 ms, each 1.5 times as long in the copy."""
    folder = benchmark.copy(tmp_path / "slow", 0.5)
    changed = folder / "engine" / "pipeline" / "single_run.py"
    whole = filecmp.dircmp(benchmark.ROOT / "engine", folder / "engine")
    assert list(differing(whole)) == [changed.name]
    spec = importlib.util.spec_from_file_location("slow_single_run", changed)
    assert spec is not None and spec.loader is not None
    copied = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copied)

    begin = time.perf_counter()
    spans = [Span("vision", 0.0, 10.0)]
    timeline = SimpleNamespace(spans=spans, now=lambda: 1000 * (time.perf_counter() - begin))
    run, last, factors = SimpleNamespace(timeline=timeline, step_ms=[]), 0.0, []
    for token in range(3):
        time.sleep(0.02)
        work = timeline.now() - last
        copied._slow_token(run, token, lambda run, _: run.step_ms.append(run.timeline.now()))
        factors.append((run.step_ms[-1] - last) / work)
        last = run.step_ms[-1]
    assert 1.5 <= min(factors) < 1.6  # a core may be lost in between
    assert copied._Run._token is copied._slow_token  # it is what a run of the copy calls


def differing(found: filecmp.dircmp[str]) -> Iterator[str]:
    """Files that are another in the copy, or in one of the two alone; bytecode is not looked at."""
    yield from (*found.diff_files, *found.left_only, *found.right_only)
    for below in found.subdirs.values():
        yield from differing(below)

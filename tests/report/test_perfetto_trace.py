"""Traces of a cluster's runs: a thread per worker, and without a cluster not a byte of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.report import perfetto_trace
from tests import fabricate

H200 = {"device": "cuda:0", "hardware": "H200"}
PLACE = {"node": "n1", "host": "a", "address": "10.0.0.1", "device": "H200 (GPU-1)",
         "type": "H200", "actor": "x", "pid": 7, "shares": []}  # fmt: skip
OTHER = PLACE | {"device": "H200 (GPU-2)", "actor": "y", "pid": 8}
FIRST, SECOND = "worker x on a, H200 (GPU-1)", "worker y on a, H200 (GPU-2)"
OWN = "stages and tokens"
Event = dict[str, Any]


def local() -> list[dict[str, Any]]:
    """Single samples, a batch with another model's failure in it, a cached and a compiled one."""
    backend = {"asked": "auto", "ran": "compiled"}
    first, second = fabricate.batch(["s2", "s3"])
    return [
        fabricate.row(phase="warmup", cold=True),
        fabricate.row(),
        fabricate.failed(sample="s1"),
        first,
        fabricate.failed("vl", "s9"),
        second,
        fabricate.row("vl", cached_ms=10.0, backend=backend),
        fabricate.row(sample="s4", environment={"device": "cpu", "processor": "EPYC"}),
    ]


def events(*runs: Any) -> list[Event]:
    return list(json.loads("".join(perfetto_trace.pieces(runs)))["traceEvents"])


def named(found: Sequence[Event], kind: str) -> list[tuple[int, int, str]]:
    return [(e["pid"], e["tid"], e["args"]["name"]) for e in found if e["name"] == kind]


def spans(found: Sequence[Event], names: Sequence[str]) -> dict[str, tuple[int, int, float, float]]:
    """Process, thread, start and duration (ms) of the samples."""
    return {
        e["name"]: (e["pid"], e["tid"], e["ts"] / 1000, e["dur"] / 1000)
        for e in found
        if e["ph"] == "X" and e["name"] in names
    }


def by_workers() -> list[dict[str, Any]]:
    """s0, s2 by x, s1, s3 by y, alternately, of 30 ms each."""
    return [
        fabricate.row(sample=f"s{i}", environment=H200, where=(PLACE, OTHER)[i % 2])
        for i in range(4)
    ]


def test_each_worker_has_a_thread_of_its_own_end_to_end(tmp_path: Path) -> None:
    found = events(fabricate.run(tmp_path / "r", by_workers()))
    assert named(found, "thread_name") == [(1, 1, FIRST), (1, 2, SECOND)]
    assert len(named(found, "process_name")) == 1
    assert spans(found, ["s0", "s1", "s2", "s3"]) == {
        "s0": (1, 1, 0.0, 30.0), "s2": (1, 1, 31.0, 30.0),
        "s1": (1, 2, 0.0, 30.0), "s3": (1, 2, 31.0, 30.0),
    }  # fmt: skip
    tokens = [e for e in found if e["ph"] == "X" and e["name"].startswith("token ")]
    assert {e["tid"] for e in tokens} == {1, 2}


def test_rows_whose_place_is_not_known_lie_on_one_thread(tmp_path: Path) -> None:
    """The control: the same rows without their place."""
    rows = [{k: v for k, v in row.items() if k != "where"} for row in by_workers()]
    found = events(fabricate.run(tmp_path / "r", rows))
    assert named(found, "thread_name") == [(1, 1, OWN)]
    assert [start for _, _, start, _ in spans(found, ["s0", "s1", "s2", "s3"]).values()] == [
        0.0, 31.0, 62.0, 93.0,
    ]  # fmt: skip


def test_a_run_that_both_answered_keeps_its_own_thread(tmp_path: Path) -> None:
    rows = by_workers()
    rows[1:1] = [fabricate.row(sample="own-0"), fabricate.row("vl", "own-1")]
    rows.append(fabricate.row("vl", "s4", environment=H200, where=OTHER))
    run = fabricate.run(tmp_path / "r", rows)
    found = events(run)
    assert named(found, "thread_name") == [
        (1, 1, FIRST), (1, 2, OWN), (2, 3, OWN), (1, 4, SECOND), (2, 5, SECOND),
    ]  # fmt: skip
    assert [name for *_, name in named(found, "process_name")] == [
        f"ev ({run.id})",
        f"vl ({run.id})",
    ]
    laid = spans(found, ["own-0", "own-1", "s3", "s4"])
    assert laid["own-0"][:3] == (1, 2, 0.0) and laid["own-1"][:3] == (2, 3, 31.0)
    assert laid["s4"][:3] == (2, 5, 62.0)  # after s1 and s3, which y answered with the other model
    own = [e for e in found if e["name"].startswith("own-") and e["ph"] == "X"]
    assert len(own) == 2 and not any("device" in e["args"] for e in own)


def test_no_event_lies_across_another_of_its_thread(tmp_path: Path) -> None:
    batches = [row | {"where": OTHER} for row in fabricate.batch(["b0", "b1"])]
    every = [*local(), *by_workers(), *batches, *local()]
    rows = [row | {"repeat": number} for number, row in enumerate(every)]  # each row once
    open_: dict[tuple[int, int], list[float]] = {}
    for event in events(fabricate.run(tmp_path / "r", rows)):
        if event["ph"] == "X":
            start, end = event["ts"], event["ts"] + event["dur"]
            stack = open_.setdefault((event["pid"], event["tid"]), [])
            while stack and stack[-1] <= start + 1e-6:
                stack.pop()
            assert not stack or end <= stack[-1] + 1e-6, event
            stack.append(end)
    assert len(open_) == 4


def test_what_answered_stands_with_each_result(tmp_path: Path) -> None:
    """Sharing is a row's: it changes while a worker goes on, and its thread does not."""
    shared = PLACE | {"shares": ["device", "cores"]}
    rows = [
        fabricate.row(environment=H200, where=PLACE),
        fabricate.row(sample="s1", environment=H200, where=shared),
        fabricate.failed(sample="s2", where=shared),
        *fabricate.batch(["s3", "s4"], environment=H200, where=shared),
    ]
    found = events(fabricate.run(tmp_path / "r", rows))
    assert named(found, "thread_name") == [(1, 1, FIRST)] and {e["tid"] for e in found} == {1}
    devices = {e["name"]: e["args"]["device"] for e in found if "device" in e["args"]}
    both = "H200, shared device and cores"
    assert devices == {"s0": "H200", "s1": both, "s2: no answer": both, "batch of 2": both}


def test_two_workers_batches_do_not_break_each_other(tmp_path: Path) -> None:
    """A batch whose rows another worker's stand between is laid once, and at its end answered."""
    mine = [row | {"where": PLACE} for row in fabricate.batch(["s0", "s1"], ms=100.0)]
    theirs = [row | {"where": OTHER} for row in fabricate.batch(["s2", "s3"], ms=40.0)]
    rows = [mine[0], theirs[0], mine[1], theirs[1]]
    found = events(fabricate.run(tmp_path / "r", rows))
    laid = [(e["tid"], e["ts"], e["dur"]) for e in found if e["name"] == "batch of 2"]
    assert laid == [(1, 0.0, 100_000.0), (2, 0.0, 40_000.0)]
    ends = {e["name"]: (e["tid"], e["ts"]) for e in found if e["ph"] == "i"}
    assert ends["s1: answered"] == (1, 100_000.0) and ends["s3: answered"] == (2, 40_000.0)


def test_a_run_after_a_clusters_run_begins_at_its_end(tmp_path: Path) -> None:
    whole = [fabricate.run(tmp_path / "r", by_workers()), fabricate.run(tmp_path / "o", local())]
    found = [e for e in events(*whole) if e["ph"] == "X"]
    starts = [e["ts"] for e in found if e["pid"] > 1]
    assert min(starts) == 62_000.0 and {e["tid"] for e in found if e["pid"] > 1} == {3, 4}


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (PLACE | {"host": ""}, "worker x on 10.0.0.1, H200 (GPU-1)"),
        ({"node": "n1", "actor": "x", "type": "H200"}, "worker x on n1, H200"),
        ({}, OWN),
        (None, OWN),
    ],
)
def test_a_place_that_says_less_is_named_by_what_it_says(
    tmp_path: Path, where: Any, name: str
) -> None:
    found = events(fabricate.run(tmp_path / "r", [fabricate.row(where=where)]))
    assert [told for *_, told in named(found, "thread_name")] == [name]

"""Runs as Chrome trace JSON, which Perfetto opens: four stages and every token of each result.

Format: "Trace Event Format" of Chromium's catapult project, times in microseconds.  A process per
run and model, a thread per worker of a cluster.  The results of a worker are placed one after
another, and the gaps between them have no meaning: events of different threads at the same position
need not have run at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from engine.storage.result_rows import ResultRow
from engine.storage.run_store import Run

GAP_MS = 1.0
Event = dict[str, Any]


def pieces(runs: Sequence[Run]) -> Iterator[str]:
    """The trace as text, one event at a time, to save memory."""
    yield '{"displayTimeUnit":"ms","traceEvents":[\n'
    lead = ""
    for event in events(runs):
        yield lead + json.dumps(event, separators=(",", ":"))
        lead = ",\n"
    yield "\n]}\n"


def events(runs: Sequence[Run]) -> Iterator[Event]:
    """All events of all results, in order."""
    processes, threads = dict[tuple[int, str], int](), dict[tuple[int, str], int]()
    start = 0.0
    for number, run in enumerate(runs):
        ends, batches = dict[str, float](), dict[str, float]()  # in ms, by worker and by batch
        for _, row in run.results():
            worker, known = _worker(row), (len(processes), len(threads))
            pid = processes.setdefault((number, row.model), known[0] + 1)
            tid = threads.setdefault((pid, worker), known[1] + 1)
            ids = {"pid": pid, "tid": tid}
            if pid > known[0]:
                yield _name("process_name", f"{row.model} ({run.id})") | ids
            if tid > known[1]:
                yield _name("thread_name", worker or "stages and tokens") | ids
            at = ends.get(worker, start)
            if row.batch_id not in batches:
                length = (row.batch_ms if row.batch_id else row.total_ms) or 0.0
                ends[worker] = at + length + GAP_MS
                yield from (event | ids for event in _result(row, at, length))
            if row.batch_id:
                end = batches.setdefault(row.batch_id, ends[worker] - GAP_MS)
                args = _args(row, "new_tokens", "stop", "batch_id")
                yield _event(f"{row.sample}: answered", args, end) | ids
        start = max([start, *ends.values()])


def _worker(row: ResultRow) -> str:
    """The name of a worker's thread; "" for the run's own process."""
    where = row.where
    if where is None or not where.actor:
        return ""
    host = where.host or where.address or where.node or "an unknown host"
    return f"worker {where.actor} on {host}, {where.device or where.type or 'an unknown device'}"


def _result(row: ResultRow, at: float, length: float) -> Iterator[Event]:
    """The events of one result, or of a whole batch, that begins `at` this time."""
    ran = {"backend": row.ran} | ({"device": row.device} if _worker(row) else {})
    args = _args(row, "repeat", "phase", "cold") | ran
    if row.batch_id:
        args |= _args(row, "batch", "batch_tokens")
        yield _event(f"batch of {row.batch}", args, at, length)
    elif row.error:
        yield _event(f"{row.sample}: no answer", args | {"error": row.error}, at)
        return
    else:
        yield _event(row.sample, args | _args(row, "new_tokens", "stop"), at, length)
    for name, span in (row.batch_spans if row.batch_id else row.spans).items():
        if span is not None:
            words = "token steps" if name == "steps" else name
            args = _args(span, "source", "original_ms", "cpu_ms", "waited_ms")
            yield _event(words, args, at + span.start_ms, span.ms)
    # A token's event begins at the previous token; the first belongs to the prefill.
    tokens = zip(row.token_ids or (), pairwise((0.0, *(row.token_ms or ()))), strict=False)
    for index, (token, (last, this)) in enumerate(tokens):
        if index:
            args = {"index": index, "token_id": token}
            yield _event(f"token {index + 1}", args, at + last, this - last)


def _args(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def _name(kind: str, name: str) -> Event:
    return {"name": kind, "ph": "M", "args": {"name": name}}


def _event(name: str, args: dict[str, Any], at: float, length: float | None = None) -> Event:
    """A span of time in ms, or a moment without a length.  Ends are rounded, so that none lies
    across its neighbour."""
    first, last = (round(1e6 * ms) for ms in (at, at + max(0.0, length or 0.0)))
    kind = {"ph": "i", "s": "t"} if length is None else {"ph": "X", "dur": (last - first) / 1000}
    return {"name": name, "ts": first / 1000, **kind, "args": args}

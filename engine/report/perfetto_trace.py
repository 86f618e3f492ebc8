"""Runs as Chrome trace JSON, which Perfetto opens: four stages and every token of each result.

Boundary: rows in, pieces of text out, one result at a time, so that a long run needs no memory.
Format: "Trace Event Format" of Chromium's catapult project; complete events (ph "X"), times in
microseconds.  Every result starts its own clock; results are placed one after another in the order
in which they ran, one process per model, and the gaps between them have no meaning.  Each worker of
a cluster has its own thread, so events of different threads at the same position need not have run
at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.analysis.result_device import backend_of, device_of, place_of
from engine.storage.run_store import Run, task_of
from engine.types import STAGES

GAP_MS = 1.0
_THREAD = 1  # of the run's own process; workers have those after it


def pieces(runs: Sequence[Run]) -> Iterator[str]:
    """The trace as text, piece by piece."""
    yield '{"displayTimeUnit":"ms","traceEvents":[\n'
    lead = ""
    for event in events(runs):
        yield lead + json.dumps(event, separators=(",", ":"))
        lead = ",\n"
    yield "\n]}\n"


def events(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """All events of all results in order."""
    threads = _Threads()
    start = 0.0
    for number, run in enumerate(runs):
        clocks: dict[str, _Clock] = {}
        for _, row in run.results():
            if task_of(row) is None:
                continue
            process, thread, named = threads.find(number, run, row)
            yield from named
            clock = clocks.setdefault(_worker(row), _Clock(start))
            yield from clock.lay(row, process, thread)
        start = max([start, *(clock.now_ms for clock in clocks.values())])


def _worker(row: Mapping[str, Any]) -> str:
    """What answered, as its thread is named; "" for the run's own process."""
    where = place_of(row)
    if not where:
        return ""
    host = where.get("host") or where.get("address") or where.get("node") or "an unknown host"
    device = where.get("device") or where.get("type") or "an unknown device"
    return f"worker {where.get('actor') or 'without a name'} on {host}, {device}"


class _Threads:
    """A process per run and model, in it a thread per worker; each is named where it begins."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[int, dict[str, int]]] = {}

    def find(
        self, number: int, run: Run, row: Mapping[str, Any]
    ) -> tuple[int, int, list[dict[str, Any]]]:
        """The row's process and thread, and the events that name what is new of them."""
        model, worker = row["model"], _worker(row)
        fresh = (number, model) not in self._known
        if fresh:
            self._known[number, model] = len(self._known) + 1, {}
        process, threads = self._known[number, model]
        named = []
        if worker not in threads:
            others = sum(name != "" for name in threads)
            threads[worker] = _THREAD + 1 + others if worker else _THREAD
            named = [_name("thread_name", process, threads[worker], worker or "stages and tokens")]
        if fresh:
            named.insert(0, _name("process_name", process, threads[worker], f"{model} ({run.id})"))
        return process, threads[worker], named


def _name(kind: str, process: int, thread: int, text: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": text}}


@dataclass
class _Clock:
    """How far one worker's results, or those of the run's own process, are laid already."""

    now_ms: float
    batch: str | None = None  # the one that is laid
    batch_end_ms: float = 0.0

    def lay(self, row: Mapping[str, Any], process: int, thread: int) -> Iterator[dict[str, Any]]:
        place = _Place(process, thread, self.now_ms)
        batch = row.get("batch_id")
        if not batch:
            yield from place.result(row)
            self.now_ms += (row.get("total_ms") or 0.0) + GAP_MS
            return
        if batch != self.batch:
            yield from place.batch(row)
            self.batch, self.batch_end_ms = batch, self.now_ms + row["batch_ms"]
            self.now_ms = self.batch_end_ms + GAP_MS
        yield _Place(process, thread, self.batch_end_ms).member(row)


def _answered_by(row: Mapping[str, Any]) -> dict[str, Any]:
    """What decoded, and a worker's type of device with what others used of it at the time."""
    device = {"device": device_of(row)} if place_of(row) else {}
    return {"backend": backend_of(row)} | device


class _Place:
    """Where on the trace one result lies."""

    def __init__(self, process: int, thread: int, offset_ms: float) -> None:
        self.process, self.thread, self.offset_ms = process, thread, offset_ms

    def result(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        args = {key: row.get(key) for key in ("repeat", "phase", "cold", "new_tokens", "stop")}
        args |= _answered_by(row)
        if row.get("error"):
            told = f"{row['sample']}: no answer"
            yield self._moment(told, args | {"error": row["error"]})
            return
        total = row["total_ms"]
        yield self._event(row["sample"], 0.0, total, args)
        spans: list[tuple[str, Any]] = [(name, row["stages"].get(name)) for name in STAGES]
        spans += [("prefill", row.get("prefill")), ("token steps", row.get("steps"))]
        for name, span in spans:
            if span is not None:
                more = {"source": span["source"], "original_ms": span.get("original_ms")}
                more |= {key: span[key] for key in ("cpu_ms", "waited_ms") if key in span}
                yield self._event(name, span["start_ms"], span["start_ms"] + span["ms"], more)
        yield from self._tokens(row)

    def batch(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The stages of a batch, of which a row of any of its samples tells."""
        total = row["batch_ms"]
        args = {key: row.get(key) for key in ("repeat", "phase", "cold", "batch", "batch_tokens")}
        args |= _answered_by(row)
        yield self._event(f"batch of {row['batch']}", 0.0, total, args)
        spans: list[tuple[str, Any]] = [(s, row["batch_stages"].get(s)) for s in STAGES]
        spans += [("prefill", row.get("batch_prefill")), ("token steps", row.get("batch_steps"))]
        for name, span in spans:
            if span is not None:
                end = span["start_ms"] + span["ms"]
                yield self._event(name, span["start_ms"], end, {"source": span["source"]})

    def member(self, row: Mapping[str, Any]) -> dict[str, Any]:
        args = {key: row.get(key) for key in ("new_tokens", "stop", "batch_id")}
        return self._moment(f"{row['sample']}: answered", args)

    def _tokens(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A token lasts from the one before it to itself; the first is the prefill's."""
        times, ids = row.get("token_ms") or (), row.get("token_ids") or ()
        for index in range(1, min(len(times), len(ids))):
            args = {"index": index, "token_id": ids[index]}
            yield self._event(f"token {index + 1}", times[index - 1], times[index], args)

    def _event(self, name: str, start: float, end: float, args: dict[str, Any]) -> dict[str, Any]:
        first, last = self._ns(start), self._ns(max(start, end))
        return {
            "name": name,
            "ph": "X",
            "ts": first / 1000,
            "dur": (last - first) / 1000,
            "pid": self.process,
            "tid": self.thread,
            "args": args,
        }

    def _moment(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "ph": "i",
            "s": "t",
            "ts": self._ns(0.0) / 1000,
            "pid": self.process,
            "tid": self.thread,
            "args": args,
        }

    def _ns(self, ms: float) -> int:
        return round((self.offset_ms + ms) * 1e6)

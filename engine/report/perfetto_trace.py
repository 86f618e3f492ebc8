"""Runs as Chrome trace JSON, which Perfetto opens: four stages and every token of each result.

Text comes one result at a time, to save memory.
Format: "Trace Event Format" of Chromium's catapult project; complete events (ph "X"), times in
microseconds.  Every result starts its own clock; results are placed one after another in the order
in which they ran, one process per model, and the gaps between them have no meaning.  Each worker of
a cluster has its own thread, so events of different threads at the same position need not have run
at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.storage.result_rows import Place, ResultRow, Spans
from engine.storage.run_store import Run

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
            process, thread, named = threads.find(number, run, row)
            yield from named
            clock = clocks.setdefault(_worker(row), _Clock(start))
            yield from clock.lay(row, process, thread)
        start = max([start, *(clock.now_ms for clock in clocks.values())])


def _worker(row: ResultRow) -> str:
    """The name of a worker's thread; "" for the run's own process."""
    where = row.where
    if where is None or where == Place():
        return ""
    host = where.host or where.address or where.node or "an unknown host"
    device = where.device or where.type or "an unknown device"
    return f"worker {where.actor or 'without a name'} on {host}, {device}"


class _Threads:
    """Assigns a process to each run and model, and a thread in it to each worker."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[int, dict[str, int]]] = {}

    def find(self, number: int, run: Run, row: ResultRow) -> tuple[int, int, list[dict[str, Any]]]:
        """The row's process and thread, and the events that name new ones."""
        model, worker = row.model, _worker(row)
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
    """The end of the last result of one worker, or of the run's own process, on the trace."""

    now_ms: float
    batch: str | None = None  # the one that is laid
    batch_end_ms: float = 0.0

    def lay(self, row: ResultRow, process: int, thread: int) -> Iterator[dict[str, Any]]:
        place = _Place(process, thread, self.now_ms)
        if not row.batch_id:
            yield from place.result(row)
            self.now_ms += (row.total_ms or 0.0) + GAP_MS
            return
        if row.batch_id != self.batch:
            yield from place.batch(row)
            self.batch, self.batch_end_ms = row.batch_id, self.now_ms + (row.batch_ms or 0.0)
            self.now_ms = self.batch_end_ms + GAP_MS
        yield _Place(process, thread, self.batch_end_ms).member(row)


def _answered_by(row: ResultRow) -> dict[str, Any]:
    """The backend, and the worker's type of device with what it shared."""
    device = {"device": row.device} if _worker(row) else {}
    return {"backend": row.ran} | device


def _args(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


class _Place:
    """The position of one result on the trace."""

    def __init__(self, process: int, thread: int, offset_ms: float) -> None:
        self.process, self.thread, self.offset_ms = process, thread, offset_ms

    def result(self, row: ResultRow) -> Iterator[dict[str, Any]]:
        args = _args(row, "repeat", "phase", "cold", "new_tokens", "stop") | _answered_by(row)
        if row.error:
            yield self._moment(f"{row.sample}: no answer", args | {"error": row.error})
            return
        yield self._event(row.sample, 0.0, row.total_ms or 0.0, args)
        yield from self._stages(row.spans, "source", "original_ms", "cpu_ms", "waited_ms")
        yield from self._tokens(row)

    def batch(self, row: ResultRow) -> Iterator[dict[str, Any]]:
        """The stages of a batch, from the row of any of its samples."""
        args = _args(row, "repeat", "phase", "cold", "batch", "batch_tokens") | _answered_by(row)
        yield self._event(f"batch of {row.batch}", 0.0, row.batch_ms or 0.0, args)
        yield from self._stages(row.batch_spans, "source")

    def member(self, row: ResultRow) -> dict[str, Any]:
        return self._moment(f"{row.sample}: answered", _args(row, "new_tokens", "stop", "batch_id"))

    def _stages(self, spans: Spans, *names: str) -> Iterator[dict[str, Any]]:
        for name, span in spans.items():
            if span is not None:
                words = "token steps" if name == "steps" else name
                yield self._event(
                    words, span.start_ms, span.start_ms + span.ms, _args(span, *names)
                )

    def _tokens(self, row: ResultRow) -> Iterator[dict[str, Any]]:
        """A token's event begins at the previous token; the first belongs to the prefill."""
        times, ids = row.token_ms or (), row.token_ids or ()
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
